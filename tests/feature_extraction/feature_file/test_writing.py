import dataclasses
import itertools
import json
import resource

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.feature_file import rows
from aadml.feature_extraction.feature_file.content import PendingFit, Shard
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from tests.feature_extraction.contents import content, masked, nine_clips, same, timed, with_texts


def test_gives_back_what_was_written(tmp_path):
    written = content()
    write_features(tmp_path / "f.h5", written)
    assert same(read_features(tmp_path / "f.h5"), written)


def test_gives_back_a_shard_with_names_that_are_not_utf8(tmp_path):
    failures = ((1, ("b", "\udcff.mp4", "audio", "corrupt", "what")),)
    shard = Shard(0, 2, 9, "abc", failures=failures, rows=np.array([0, 2, 4, 6]))
    write_features(tmp_path / "f.h5", content(shard=shard))
    assert same(read_features(tmp_path / "f.h5"), content(shard=shard))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), min_size=4, max_size=4, unique=True
    )
)
def test_gives_back_any_utf8_names(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("any") / "f.h5"
    write_features(path, content(ids=tuple(ids)))
    assert read_features(path).ids == tuple(ids)


def test_a_shard_describes_its_part_of_the_job_and_origins_are_text(tmp_path):
    part = {"index": 0, "count": 2, "total": 9, "manifest": "abc", "failures": []}
    later = {"pending": {"audio": {"name": "pca", "dimension": 3, "eight_bit": True}}, "sequence": True}
    shard = Shard(0, 2, 9, "abc", rows=np.arange(4))
    pending = dataclasses.replace(shard, pending={"audio": PendingFit("pca", 3, True)}, sequence=True)
    for written, described in ((shard, part), (pending, part | later)):
        named = content(shard=written, provenance={"visual": {"weights": "ä"}})
        write_features(tmp_path / "f.h5", named)
        read = read_features(tmp_path / "f.h5")
        assert same(read.shard, written)
        assert read.provenance == {"audio": {}, "visual": {"weights": "ä"}}
        with h5py.File(tmp_path / "f.h5") as file:
            assert json.loads(file["shard"].asstr()[()]) == described
            assert file["visual"].attrs["provenance"] == '{"weights": "ä"}'


def test_equal_content_gives_equal_bytes(tmp_path):
    write_features(tmp_path / "one.h5", content())
    write_features(tmp_path / "two.h5", content())
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_a_full_disk_is_an_input_error_and_leaves_the_old_file(tmp_path):
    write_features(tmp_path / "f.h5", content())
    before = (tmp_path / "f.h5").read_bytes()
    big = content(features={"audio": np.ones((4, 100_000), np.float32)}, sequences={}, fitted={})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(InputError, match="cannot be written"):
            write_features(tmp_path / "f.h5", big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "f.h5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["f.h5"]


def test_keeps_the_times_of_a_sequence_in_version_2_and_reads_version_1(tmp_path):
    write_features(tmp_path / "new.h5", timed())
    write_features(tmp_path / "old.h5", content())
    for name, version, times in [("new.h5", 2, timed().sequences["audio"].times), ("old.h5", 1, None)]:
        with h5py.File(tmp_path / name) as file:
            assert file.attrs["version"] == version
        np.testing.assert_array_equal(read_features(tmp_path / name).sequences["audio"].times, times)


FIRST_VERSION, SECOND_VERSION = (
    {
        "plain": content(sequences={}, columns={}),
        "columns": content(sequences={}, columns={"speaker": ("a", "b", "c", "d")}),
        "fingerprints": content(fingerprints={"audio": np.arange(1024, dtype=np.uint8).reshape(4, 256)}),
    },
    {
        "masks": masked(),
        "names": content(
            features={**content().features, "hand_pose": np.ones((4, 2), np.float32)},
            provenance={**content().provenance, "hand_pose": {"extractor": "mine"}},
        ),
        "unlabelled": content(labels=np.full(4, -1), class_names=()),
        "several labels": content(all_labels=np.ones((4, 2), np.uint8)),
    },
)


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_is_written_in_the_lowest_version_that_holds_it_and_comes_back_as_it_was(tmp_path, version):
    for name, written in (FIRST_VERSION, SECOND_VERSION)[version - 1].items():
        write_features(tmp_path / f"{name}.h5", written)
        with h5py.File(tmp_path / f"{name}.h5") as file:
            assert file.attrs["version"] == version, name
            assert ("modalities" in file.attrs) == (name == "names")
            assert sorted(file["column"]) == sorted(written.columns)
        read = read_features(tmp_path / f"{name}.h5")
        assert same(read, written), name
        assert {m: there.tolist() for m, there in read.present.items()} == {
            m: there.tolist() for m, there in written.present.items()
        }


def test_a_mask_that_hides_nobody_is_not_written(tmp_path):
    write_features(tmp_path / "one.h5", content())
    write_features(tmp_path / "two.h5", content(present={"audio": np.ones(4, bool)}))
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_several_texts_a_clip_are_kept(tmp_path):
    written = with_texts()
    write_features(tmp_path / "f.h5", written)
    read = read_features(tmp_path / "f.h5")
    assert same(read, dataclasses.replace(written, provenance=read.provenance))
    assert read.has("text").tolist() == [True, True, False, True]
    assert "2 of 4 clips have several texts, 6 in all" in read.notes()
    with h5py.File(tmp_path / "f.h5") as file:
        assert file.attrs["version"] == 2
        assert file["text"].shape == (6, 2)
        assert file["text_row"][()].tolist() == [0, 0, 1, 3, 3, 3]


def starting_anew():
    """Times that begin anew with each clip."""
    offsets = nine_clips().sequences["audio"].offsets
    return np.concatenate([np.arange(stop - start) for start, stop in itertools.pairwise(offsets)]) * 0.5


def test_small_blocks_give_the_same_bytes_and_are_read_as_the_same(tmp_path, monkeypatch):
    whole = nine_clips(times=starting_anew())
    write_features(tmp_path / "whole.h5", whole)
    monkeypatch.setattr(rows, "_BYTES", 24)
    write_features(tmp_path / "blocks.h5", whole)
    assert (tmp_path / "blocks.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    found = read_features(tmp_path / "blocks.h5")
    np.testing.assert_array_equal(found.features["audio"], whole.features["audio"])
    np.testing.assert_array_equal(found.sequences["audio"].values, whole.sequences["audio"].values)
    np.testing.assert_array_equal(found.sequences["audio"].times, starting_anew())
