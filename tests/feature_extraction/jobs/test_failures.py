import pytest

from aadml.feature_extraction.jobs.failures import (
    Failure,
    deciding,
    deciding_reason,
    is_list_of_failures,
    write_failures,
)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([], ""),
        (["no-audio"], ""),
        (["no-audio", "no-video"], "no-audio"),
        (["corrupt"], "corrupt"),
        (["no-audio", "missing"], "missing"),
    ],
)
def test_a_clip_is_kept_if_it_only_lacks_some_modalities(reasons, expected):
    assert deciding_reason(reasons, 2) == expected
    failures = [Failure("a", "a.mp4", str(number), reason, "") for number, reason in enumerate(reasons)]
    failure = deciding(failures, 2)
    assert (failure.reason if failure else "") == expected


def test_the_list_of_failures_is_csv_with_paths_as_bytes(tmp_path):
    path = tmp_path / "f.h5.failures.csv"
    write_failures(path, [Failure("a", "\udcff.mp4", "audio", "corrupt", "a, b")])
    assert path.read_bytes() == b'id,media,modality,reason,detail\na,\xff.mp4,audio,corrupt,"a, b"\n'
    assert is_list_of_failures(path)
    path.write_text("name,media\n")
    assert not is_list_of_failures(path)
