"""The same job again: nothing is done twice, and what changed is done alone."""

import os
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from aadml.feature_extraction.backbones import Extractor, extractor
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground import file_content
from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.feature_extraction.jobs import extract as extracting
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.ledger.ledger import open_ledger
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.media import Text
from tests.feature_extraction.small_jobs import AUDIO, decoded, extract, run, write_manifest


def mean_letter(letters):
    if (letters == ord("z")).any():
        raise ValueError("z")
    return letters.mean(keepdims=True)[None]


LETTERS = Extractor("letters", "text", 1, Text(), {}, mean_letter)


@pytest.mark.slow
def test_the_same_command_again_does_nothing_twice(small, monkeypatch):
    run(small, small / "f.h5")
    before = (small / "f.h5").read_bytes()
    seen = decoded(monkeypatch)
    assert run(small, small / "f.h5").reused == 4
    assert seen == []
    assert (small / "f.h5").read_bytes() == before


@pytest.mark.slow
def test_touching_or_moving_files_is_no_change(small, monkeypatch):
    run(small, small / "f.h5")
    os.utime(small / "clip 1.mp4")
    seen = decoded(monkeypatch)
    run(small, small / "f.h5")
    assert seen == []


@pytest.mark.slow
def test_a_renamed_clip_is_not_decoded_again_and_a_failure_is(small, monkeypatch):
    run(small, small / "f.h5")
    names = ["clip 0.mp4", "clip 1.mp4", "clip 2.mp4", "text.mp4"]
    write_manifest(small / "manifest.csv", [(f"renamed {name}", name) for name in names])
    seen = decoded(monkeypatch)
    assert run(small, small / "f.h5").reused == 3
    assert seen == [(3, "audio", "visual")]
    run(small, small / "new.h5")
    assert (small / "f.h5").read_bytes() == (small / "new.h5").read_bytes()


@pytest.mark.slow
def test_a_changed_file_is_described_again_alone(small, collection, monkeypatch):
    run(small, small / "f.h5")
    before = read_features(small / "f.h5")
    status = (small / "clip 1.mp4").stat()
    shutil.copy(collection / "-dash.mp4", small / "clip 1.mp4")
    os.utime(small / "clip 1.mp4", ns=(status.st_atime_ns, status.st_mtime_ns))  # a copy that pretends to be old
    seen = decoded(monkeypatch)
    run(small, small / "f.h5")
    after = read_features(small / "f.h5")
    assert seen == [(1, "audio", "visual")]
    changed = [not np.array_equal(before.features["audio"][row], after.features["audio"][row]) for row in range(3)]
    assert changed == [False, True, False]


def test_a_file_of_an_earlier_call_is_kept_where_no_clip_can_be_described(small):
    run(small, small / "f.h5")
    before = (small / "f.h5").read_bytes()
    shutil.rmtree(small / "f.h5.work")
    for clip in [*small.glob("*.mp4")]:
        clip.rename(clip.with_suffix(".away"))  # a disk that is not mounted
    outcome = run(small, small / "f.h5")
    assert outcome.path is None
    assert len(outcome.failures) == outcome.clips
    assert (small / "f.h5").read_bytes() == before


@pytest.mark.slow
def test_changed_settings_touch_only_their_modality(small, monkeypatch):
    run(small, small / "f.h5")
    seen = decoded(monkeypatch)
    run(small, small / "f.h5", (AUDIO, extractor("hog-color", "visual", {"frames_per_second": 2.0})))
    assert seen == [(number, "visual") for number in range(4)]


@pytest.mark.slow
def test_failures_are_tried_again_only_when_asked_for(small, collection, monkeypatch):
    run(small, small / "f.h5")
    seen = decoded(monkeypatch)
    run(small, small / "f.h5", retry_failed=True)
    assert seen == [(3, "audio", "visual")]


def test_a_file_that_appears_is_taken_up(small, collection, monkeypatch):
    (small / "clip 2.mp4").rename(small / "away")
    assert [failure.reason for failure in run(small, small / "f.h5").failures] == ["missing", "not-a-media-file"]
    (small / "away").rename(small / "clip 2.mp4")
    shutil.copy(collection / "clip 3.mp4", small / "text.mp4")
    seen = decoded(monkeypatch)
    assert run(small, small / "f.h5").failures == ()
    assert [number for number, *_ in seen] == [2, 3]
    assert not (small / "f.h5.failures.csv").exists()


@pytest.mark.slow
def test_damaged_values_are_described_again(small, monkeypatch):
    run(small, small / "f.h5", sequence=True)
    before = (small / "f.h5").read_bytes()
    values = small / "f.h5.work" / "values.f32"
    whole = values.read_bytes()
    for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[: len(whole) // 2], b""):
        values.write_bytes(damaged)
        with monkeypatch.context() as patch:
            seen = decoded(patch)
            outcome = run(small, small / "f.h5", sequence=True)
        assert (outcome.clips, len(outcome.failures)) == (4, 1)
        assert 1 <= len(seen) <= 3
        assert (small / "f.h5").read_bytes() == before


@pytest.mark.slow
def test_damaged_values_of_a_renamed_clip_are_described_again(small, monkeypatch):
    run(small, small / "f.h5")
    (small / "f.h5.work" / "values.f32").write_bytes(bytes((small / "f.h5.work" / "values.f32").stat().st_size))
    write_manifest(small / "manifest.csv", [("renamed", "clip 0.mp4")])
    seen = decoded(monkeypatch)
    assert run(small, small / "f.h5").failures == ()
    assert seen == [(0, "audio", "visual")]


def test_clips_whose_content_could_not_be_read_share_no_features(small, monkeypatch):
    def fails(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(file_content, "file_digest", fails)
    seen = decoded(monkeypatch)
    for clips in (1, 2):
        write_manifest(small / "manifest.csv", [(str(n), f"clip {n}.mp4") for n in range(clips)])
        assert run(small, small / "f.h5", (AUDIO,)).failures == ()
    assert seen == [(0, "audio"), (0, "audio"), (1, "audio")], "a record of unknown content is not used again"
    first, second = read_features(small / "f.h5").features["audio"]
    assert not np.array_equal(first, second)


def run_rows(folder, header, *rows, extractors):
    (folder / "manifest.csv").write_text("\n".join([header, *rows]))
    outcome = run(folder, folder / "f.h5", extractors)
    assert run(folder, folder / "new.h5", extractors).failures == outcome.failures
    assert (folder / "f.h5").read_bytes() == (folder / "new.h5").read_bytes()
    shutil.rmtree(folder / "new.h5.work")
    (folder / "new.h5").unlink()
    return outcome


def test_features_of_a_cell_that_was_emptied_are_not_used(small):
    pictures = extractor("hog-color", "visual")
    header, rest = "id,audio,visual,split", "b,clip 1.mp4,clip 1.mp4,train"
    run_rows(small, header, "a,clip 0.mp4,clip 0.mp4,train", rest, extractors=(AUDIO, pictures))
    outcome = run_rows(small, header, "a,clip 0.mp4,,train", rest, extractors=(AUDIO, pictures))
    assert [(failure.id, failure.reason) for failure in outcome.lacking] == [("a", "no-video")]
    assert read_features(small / "f.h5").has("visual").tolist() == [False, True]


def test_features_of_a_caption_that_was_deleted_are_not_used(tmp_path):
    header = "id,audio,split,caption_1,caption_2,caption_3"
    run_rows(tmp_path, header, "a,,train,aaaa,bbb,cc", "b,,train,dd,e,f", extractors=(LETTERS,))
    run_rows(tmp_path, header, "a,,train,aaaa,,cc", "b,,train,dd,e,f", extractors=(LETTERS,))
    texts = read_features(tmp_path / "f.h5").texts
    assert (texts.rows.tolist(), texts.values.ravel().tolist()[:2]) == ([0, 0, 1, 1, 1], [97.0, 99.0])


def test_a_caption_that_failed_and_was_deleted_is_no_failure(tmp_path):
    header = "id,audio,split,caption_1,caption_2"
    outcome = run_rows(tmp_path, header, "a,,train,aaaa,z", "b,,train,dd,e", extractors=(LETTERS,))
    assert [failure.modality for failure in outcome.failures] == ["text_2"]
    assert run_rows(tmp_path, header, "a,,train,aaaa,", "b,,train,dd,e", extractors=(LETTERS,)).failures == ()


@pytest.mark.parametrize(("shape", "sequence"), [((2,), False), ((1, 1), False), ((3, 2), True), ((1,), True)])
def test_values_of_another_shape_are_refused(tmp_path, shape, sequence):
    (tmp_path / "m.csv").write_text("id,audio,split,text\na,,train,aaaa\nb,,train,bb")
    job = partial(extract, read_manifest(tmp_path / "m.csv"), tmp_path / "f.h5", (LETTERS,), sequence=sequence)
    job()
    settings = ExtractionPlan(read_manifest(tmp_path / "m.csv"), tmp_path, (LETTERS,), sequence=sequence).settings
    with open_ledger(tmp_path / "f.h5.work") as ledger:
        ledger.append(ledger.find("b", "text", settings["text"]), np.zeros(shape, np.float32))
    message = r"f\.h5\.work: the values of text have another shape than the extractor letters computes; remove this"
    with pytest.raises(DamagedFileError, match=message):
        job()


def manifest_of(place, folder, count=2):
    place.write_text("\n".join(["id,media", *(f"{n},{folder}/clip {n}.mp4" for n in range(count))]))
    return read_manifest(place)


def test_moved_media_may_be_deleted_and_are_read_once(small, monkeypatch):
    for folder in ("one", "two"):
        (small / folder).mkdir()
        for number in range(2):
            shutil.copy(small / f"clip {number}.mp4", small / folder)
    extract(manifest_of(small / "m.csv", "one"), small / "f.h5", (AUDIO,))
    shutil.rmtree(small / "one")
    before = (small / "f.h5").read_bytes()
    assert extract(moved := manifest_of(small / "m.csv", "two"), small / "f.h5", (AUDIO,)).reused == 2
    with monkeypatch.context() as patch:
        patch.setattr(extracting, "content_of", lambda *_: pytest.fail("the stamp of the moved file is known"))
        assert extract(moved, small / "f.h5", (AUDIO,)).reused == 2
    shutil.rmtree(small / "two")
    assert extract(moved, small / "f.h5", (AUDIO,)).reused == 2
    assert (small / "f.h5").read_bytes() == before


def test_a_deleted_file_is_the_same_under_another_spelling_of_its_path(small, monkeypatch):
    monkeypatch.chdir(small)
    with monkeypatch.context() as patch:  # older ledgers have relative paths
        patch.setattr(extracting, "_absolute", lambda path: path)
        extract(manifest_of(Path("m.csv"), "."), small / "f.h5", (AUDIO,))
    for clip in small.glob("*.mp4"):
        clip.unlink()
    for spelling in ("m.csv", small / "m.csv", f"../{small.name}/m.csv"):
        assert extract(read_manifest(spelling), small / "f.h5", (AUDIO,)).failures == (), spelling


def test_media_may_be_deleted_once_their_clips_are_in_the_ledger(small, collection):
    shutil.copy(collection / "mute.mp4", small / "mute.mp4")
    lines = [
        "id,media,start,split",
        "a,clip 0.mp4,,train",
        "b,clip 1.mp4,0.5,test",
        "c,mute.mp4,,test",
        "d,text.mp4,,test",
    ]
    (small / "manifest.csv").write_text("\n".join(lines))
    first, before = run(small, small / "f.h5"), (small / "f.h5").read_bytes()
    for clip in [*small.glob("*.mp4")]:
        clip.unlink()
    again = run(small, small / "f.h5")
    assert (again.failures, again.lacking, again.reused) == (first.failures, first.lacking, 4)
    assert (small / "f.h5").read_bytes() == before
    assert [failure.reason for failure in run(small, small / "f.h5", retry_failed=True).failures] == ["missing"]
    for line in ("a,other.mp4,,train", "a,clip 0.mp4,0.25,train"):
        (small / "manifest.csv").write_text("\n".join([lines[0], line, *lines[2:]]))
        assert [failure.id for failure in run(small, small / "f.h5").failures] == ["a", "d"]
