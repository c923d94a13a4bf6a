import csv
from collections import Counter

import numpy as np
import pytest

from aadml.data.sample_clips import SampleClips, sample_data
from aadml.data.samples.events import EVENTS
from aadml.feature_extraction.ground.errors import InputError

SMALL = {"clips": 20, "seconds": 0.5}
COLUMNS = ("id", "media", "label", "split", *(f"caption_{number}" for number in range(1, 6)))


def rows(manifest):
    with manifest.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("clips")
    sample_data(target, **SMALL, workers=2)
    return target


def test_one_worker_is_this_process_and_more_are_others(tmp_path, monkeypatch):
    class StartedError(Exception):
        pass

    def pool(work, workers, conditions):
        raise StartedError(workers)

    monkeypatch.setattr("aadml.data.sample_clips.WorkerPool", pool)
    sample_data(tmp_path / "one", **SMALL, workers=1)
    with pytest.raises(StartedError) as started:
        sample_data(tmp_path / "clips", **SMALL, workers=9)
    assert started.value.args == (2,)  # each of at least as many clips as there are events


def test_the_manifest_names_every_clip_with_label_split_and_captions(folder):
    listed = rows(folder / "manifest.csv")
    assert tuple(listed[0]) == COLUMNS
    assert len({row["id"] for row in listed}) == 20
    assert {row["label"] for row in listed} == set(EVENTS)
    assert all((folder / row["media"]).stat().st_size > 2000 for row in listed)
    assert all(len({row[f"caption_{number}"] for number in range(1, 6)}) == 5 for row in listed)
    assert {path.name for path in folder.rglob("*")} == {f"{r['id']}.mp4" for r in listed} | {"clips", "manifest.csv"}


def test_one_process_writes_the_same_bytes_as_two(folder, tmp_path):
    done = []
    sample_data(tmp_path, **SMALL, workers=1, progress=done.append)
    assert sum(done) == 20
    for path in folder.rglob("*.*"):
        assert path.read_bytes() == (tmp_path / path.relative_to(folder)).read_bytes(), path.name


def test_a_clip_does_not_depend_on_how_many_there_are():
    few, many = SampleClips(clips=10, seconds=0.5).render(4), SampleClips(clips=500, seconds=0.5).render(4)
    assert np.array_equal(few.sound, many.sound)
    assert np.array_equal(few.pictures, many.pictures)


def test_the_default_set_is_balanced_in_every_split():
    wanted = SampleClips()
    counts = Counter((wanted.label(index), wanted.split(index)) for index in range(wanted.clips))
    assert counts == {
        (label, split): number for label in EVENTS for split, number in {"train": 12, "valid": 3, "test": 5}.items()
    }


def test_an_interrupted_rendering_leaves_whole_clips_and_no_manifest(tmp_path):
    (tmp_path / "manifest.csv").write_text("id,media,label,split\nbird-0007,clips/bird-0007.mp4,bird,train\n")

    def stop(count):
        raise KeyboardInterrupt

    for workers in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            sample_data(tmp_path, **SMALL, workers=workers, progress=stop)
        assert not (tmp_path / "manifest.csv").exists()
        assert all(path.stat().st_size > 2000 for path in (tmp_path / "clips").iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "id,media,label,split\nmine,a.wav,x,train\n",
        "id,media,label,split\nbird-0007,clips/bird-0007.mp4,bird,train\nmine,a.wav,x,train\n",
        "bird-0007,clips/bird-0007.mp4,bird,train\n",
    ],
)
def test_a_manifest_of_other_clips_is_kept(tmp_path, text):
    (tmp_path / "manifest.csv").write_text(text)
    with pytest.raises(InputError, match=r"manifest\.csv exists and is not a manifest of sample clips"):
        sample_data(tmp_path, **SMALL, workers=1)
    assert (tmp_path / "manifest.csv").read_text() == text
    assert not (tmp_path / "clips").exists()


def test_a_broken_clip_of_an_earlier_run_is_made_anew(folder, tmp_path):
    broken = tmp_path / "clips" / "bird-0007.mp4"
    broken.parent.mkdir()
    broken.write_bytes(b"half a file")
    sample_data(tmp_path, **SMALL, workers=1)
    assert broken.read_bytes() == (folder / "clips" / "bird-0007.mp4").read_bytes()


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"clips": 0}, "clips"),
        ({"seconds": 0.1}, "seconds"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_rendered_is_refused_by_name(tmp_path, wrong, word):
    with pytest.raises(InputError, match=word):
        sample_data(tmp_path, **wrong)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="is a file"):
        sample_data(tmp_path / "taken", **SMALL)


def test_a_failure_in_a_process_is_told_in_this_one(tmp_path):
    (tmp_path / "clips" / "bird-0007.mp4").mkdir(parents=True)
    with pytest.raises(InputError, match=r"bird-0007\.mp4"):
        sample_data(tmp_path, **SMALL, workers=2)
    assert not list((tmp_path / "clips").glob(".*"))


def test_one_short_clip_can_be_rendered(tmp_path):
    assert len(rows(sample_data(tmp_path, clips=1, seconds=0.5, workers=1))) == 1


@pytest.mark.parametrize(
    ("clips", "workers", "count"), [(11, 9, 2), (20, 9, 2), (21, None, 3), (99, None, 3), (99, 4, 4)]
)
def test_a_process_renders_ten_clips_at_least(tmp_path, monkeypatch, clips, workers, count):
    counts = []

    def rendered(sample, folder, workers):
        counts.append(workers)
        yield from ((index, ("a", "b")) for index in range(sample.clips))

    monkeypatch.setattr("aadml.data.sample_clips._rendered", rendered)
    monkeypatch.setattr("aadml.data.sample_clips.processors", lambda: 3)
    listed = rows(sample_data(tmp_path, clips=clips, seconds=0.5, workers=workers))
    assert counts == [count]
    assert (len(listed), listed[10]["id"], listed[10]["label"]) == (clips, "bouncing-ball-0010", "bouncing ball")
    assert (listed[10]["media"], listed[10]["caption_2"]) == ("clips/bouncing-ball-0010.mp4", "b")
    assert [row["split"] for row in listed[:11]] == ["train"] * 10 + ["test"]


@pytest.mark.parametrize("name", ["clips", "clips/bird-0007.mp4", "manifest.csv"])
def test_sample_clips_are_not_written_through_a_link(tmp_path, name):
    folder, victim = tmp_path / "samples", tmp_path / "mine"
    (folder / name).parent.mkdir(parents=True)
    victim.mkdir()
    (folder / name).symlink_to(victim)
    with pytest.raises(InputError, match=f"{name} is a symbolic link"):
        sample_data(folder, **SMALL, workers=1)
    assert not [*victim.iterdir()]
    assert (folder / name).is_symlink()
