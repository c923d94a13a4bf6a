"""Segments and windows of recordings in extraction jobs."""

import csv

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.ground.worker_pool import Finished
from aadml.feature_extraction.jobs import windows
from aadml.feature_extraction.jobs.merge import merge
from aadml.feature_extraction.jobs.windows import Windows, read_windows, windowed, without_window
from aadml.feature_extraction.manifest import Manifest, Row, read_manifest
from aadml.feature_extraction.media.inputs import MediaFailure
from tests.feature_extraction.small_jobs import decoded, failures
from tests.sound_files import RATE, noise, write_wav

SOUND = {"audio": "log-mel", "visual": "none", "workers": 1}


def manifest(path, *rows, columns="id,media,label,split"):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns.split(","), *rows])
    return path


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """A recording of 12 seconds, and a short one."""
    folder = tmp_path_factory.mktemp("recordings")
    write_wav(folder / "long.wav", noise(12 * RATE))
    write_wav(folder / "short.wav", noise(round(1.5 * RATE), 1))
    return folder


def times(text, start, end):
    return [(window.start, window.end) for window in read_windows(text).of(Segment(start, end))]


def test_windows_of_a_recording():
    assert times("4s", 0.0, 12.0) == [(0.0, 4.0), (4.0, 8.0), (8.0, 12.0)]
    assert times("4s/2s", 0.0, 8.1) == [(0.0, 4.0), (2.0, 6.0), (4.0, 8.0)]
    assert times("4s", 0.0, 10.0) == [(0.0, 4.0), (4.0, 8.0), (8.0, 10.0)]
    assert times("4", 0.0, 9.99) == [(0.0, 4.0), (4.0, 8.0)]  # the last is shorter than half
    assert times("4s/5.5s", 1.25, 13.0) == [(1.25, 5.25), (6.75, 10.75)]
    assert times("4s", 0.0, 0.3) == [(0.0, 0.3)]
    assert times("0.1s", 0.0, 0.35) == [(0.0, 0.1), (0.1, 0.2), (0.2, 0.3), (0.3, 0.35)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "10m",
        "-1s",
        "1s/0s",
        "1s/",
        "a",
        "nan",
        "1e9",
        "10s/5s/2s",
        "٣s",
        "0.009s",
        "1s/0.009s",
        "1000001s",
        "x" * 90,
    ],
)
def test_other_lengths_of_windows_are_refused(text):
    with pytest.raises(InputError) as caught:
        read_windows(text)
    advice = "pass LENGTH or LENGTH/STEP from 0.01 s to 1,000,000 s, such as 10s or 10s/5s"
    assert str(caught.value) == f"windows {text[:80]} is not a length of windows; {advice}"


def test_windows_have_a_hundredth_of_a_second_at_least_and_a_million_seconds_at_most():
    assert read_windows("0.01s/1000000s") == Windows(0.01, 1e6)
    assert read_windows("2.5/1.25") == Windows(2.5, 1.25)


@pytest.mark.parametrize(("workers", "count", "opened"), [(None, 2, 2), (1, 2, 1), (None, 0, 1), (9, 2, 2)])
def test_recordings_are_read_by_as_many_workers_as_there_are_files(monkeypatch, workers, count, opened):
    pools = []

    class Pool:
        def __init__(self, work, workers, conditions):
            pools.append((workers, conditions.processor_limit))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def work_off(self, paths):
            return [Finished(path, len(path) * 2.0) for path in paths]

    monkeypatch.setattr(windows, "WorkerPool", Pool)
    monkeypatch.setattr(windows, "processors", lambda: 3)
    media = [{"audio": "aa", "visual": "bbb"}, {"audio": "aa", "visual": ""}][:count]
    rows = tuple(Row(str(number), files, "", "test", {}) for number, files in enumerate(media))
    found = windowed(Manifest("m.csv", rows, ()), Windows(4.0, 4.0), workers)
    assert pools == [(opened, 600.0)]
    assert [row.id for row in found.rows] == ["0@0.0-4.0", "0@4.0-6.0", "1@0.0-4.0"][: 3 * count]


def test_a_recording_of_a_million_windows_or_without_an_end_is_one_clip():
    def ids(end, **columns):
        row = Row("a", {"audio": "a", "visual": ""}, "", "test", {"recording": "r", **columns})
        return [(clip.id, clip.columns) for clip in windows._clips(row, Windows(0.01, 1e-5), {"a": end})]

    whole = [("a", {"start": "", "end": "", "recording": "r"})]
    assert ids(10.0) == ids(0.0) == whole
    assert len(ids(0.012345678)) > 1
    assert ids(4.0, start="5") == [("a", {"start": "5", "end": "", "recording": "r"})]
    assert ids(5.0012345678, start="5") == [("a@5.0-5.001235", {"start": "5.0", "end": "5.001235", "recording": "r"})]


def test_windows_are_clips_with_times_and_the_name_of_their_recording(recordings, tmp_path):
    path = manifest(recordings / "all.csv", ["a", "long.wav", "x", "train"], ["b", "short.wav", "y", "test"])
    outcome = aadml.extract(path, tmp_path / "w.h5", windows="5s", **SOUND)
    content = read_features(tmp_path / "w.h5")
    assert outcome.clips == 3
    assert content.ids == ("a@0.0-5.0", "a@5.0-10.0", "b@0.0-1.5")
    assert content.columns == {
        "start": ("0.0", "5.0", "0.0"), "end": ("5.0", "10.0", "1.5"), "recording": ("a", "a", "b"),
    }  # fmt: skip
    assert content.splits == ("train", "train", "test")
    write_wav(tmp_path / "c.wav", noise(12 * RATE)[5 * RATE : 10 * RATE])
    cut = manifest(tmp_path / "cut.csv", ["c", "c.wav", "x", "train"])
    aadml.extract(cut, tmp_path / "c.h5", **SOUND)
    assert content.features["audio"][1].tobytes() == read_features(tmp_path / "c.h5").features["audio"][0].tobytes()


def test_segments_are_windowed_within_their_times(recordings):
    rows = [["a", "long.wav", "x", "train", "2", "9"], ["b", "long.wav", "x", "test", "", ""]]
    path = manifest(recordings / "segments.csv", *rows, columns="id,media,label,split,start,end")
    found = windowed(read_manifest(path), Windows(6.0, 6.0), workers=1)
    assert [row.id for row in found.rows] == ["a@2.0-8.0", "b@0.0-6.0", "b@6.0-12.0"]
    assert {row.columns["recording"] for row in found.rows} == {"a"}  # one file is one recording
    assert without_window("b@6.0-12.0") == ("b", Segment(6.0, 12.0))
    assert without_window("b@home") is None


def test_a_recording_that_cannot_be_opened_is_a_clip_that_fails(recordings, tmp_path):
    path = manifest(recordings / "gone.csv", ["a", "none.wav", "x", "train"], ["b", "short.wav", "x", "train"])
    outcome = aadml.extract(path, tmp_path / "f.h5", windows="1s", **SOUND)
    assert [(failure.id, failure.reason) for failure in outcome.failures] == [("a", "missing")]
    assert read_features(tmp_path / "f.h5").ids == ("b@0.0-1.0", "b@1.0-1.5")


def test_an_existing_recording_that_cannot_be_read_is_an_error(recordings, monkeypatch):
    def fails(path):
        raise MediaFailure(reason, "Input/output error")

    class Pool:
        def __init__(self, work, *_):
            self.work = work

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def work_off(self, paths):
            return [Finished(path, self.work(path, print)) for path in paths]

    monkeypatch.setattr(windows, "WorkerPool", Pool)
    monkeypatch.setattr(windows, "recording_seconds", fails)

    def ids(name, **columns):
        row = Row("a", {"audio": str(recordings / name)}, "", "test", columns)
        return [clip.id for clip in windowed(Manifest("m.csv", (row,), ()), Windows(4.0, 4.0)).rows]

    reason = "missing"
    with pytest.raises(InputError, match=r"short\.wav: .* the file cannot be read \(Input/output error\); repeat"):
        ids("short.wav")
    assert ids("short.wav", start="0", end="1") == ["a@0.0-1.0"]  # needs no length
    assert ids("none.wav") == ids("") == ["a"]  # the second one is a folder
    reason = "corrupt"
    assert ids("short.wav") == ["a"]


def test_a_window_with_the_id_of_another_clip_is_refused(recordings):
    path = manifest(recordings / "twice.csv", ["a", "short.wav", "x", "train"], ["a@0.0-1.5", "none.wav", "x", "train"])
    with pytest.raises(InputError, match=r"a window and another clip have the id 'a@0.0-1.5'; change the id of one"):
        windowed(read_manifest(path), Windows(6.0, 6.0), workers=1)


def test_a_segment_is_decoded_again_only_if_its_times_change(recordings, tmp_path, monkeypatch):
    def job(*ends):
        rows = [[f"{n}", "long.wav", "x", "train", n, end] for n, end in enumerate(ends)]
        aadml.extract(
            manifest(recordings / "m.csv", *rows, columns="id,media,label,split,start,end"), tmp_path / "f.h5", **SOUND
        )
        return read_features(tmp_path / "f.h5").features["audio"]

    seen = decoded(monkeypatch)
    first = job("3", "4", "")
    assert len({row.tobytes() for row in first}) == 3
    second = job("3", "5", "")
    assert seen == [(0, "audio"), (1, "audio"), (2, "audio"), (1, "audio")]
    np.testing.assert_array_equal(np.flatnonzero((first != second).any(axis=1)), [1])


def test_shards_of_windows_are_merged_to_the_bytes_of_the_whole_job(recordings, tmp_path):
    path = manifest(recordings / "all.csv", ["a", "long.wav", "x", "train"], ["b", "short.wav", "y", "test"])
    aadml.extract(path, tmp_path / "whole.h5", windows="3s/2s", **SOUND)
    for shard in range(2):
        aadml.extract(path, tmp_path / "f.h5", windows="3s/2s", shard=(shard, 2), **SOUND)
    merge([], tmp_path / "f.h5")
    assert (tmp_path / "f.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()


def test_segments_beyond_a_recording_fail_with_a_reason(recordings, tmp_path):
    times = {"a": ("20", "30"), "b": ("8", "14"), "c": ("8", "")}
    rows = [[name, "long.wav", "x", "train", *segment] for name, segment in times.items()]
    path = manifest(recordings / "far.csv", *rows, columns="id,media,label,split,start,end")
    aadml.extract(path, tmp_path / "f.h5", **SOUND)
    found = failures(tmp_path / "f.h5")
    assert {name: row["reason"] for name, row in found.items()} == {"a": "outside", "b": "outside"}
    assert found["b"]["detail"] == "the segment ends at 14.0 s, but the sound ends at 12.000 s"
