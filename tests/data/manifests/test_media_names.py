"""Media files by the names that tables give them."""

import os
from pathlib import Path

import pytest

from aadml.data.manifests.media_names import MediaIndex
from aadml.feature_extraction.ground.errors import InputError


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (("one",), "a/one.wav"), (("one.wav",), "a/one.wav"), (("a/one",), "a/one.wav"), (("one.mp4",), "one.mp4"),
        (("none", "b/two"), "b/two.MP4"), (("b/one", "none"), "b/one.mp4"), (("x.WAV", "y"), "x.WAV"),
        (("v1.5", "y"), "v1.5.mp4"),
    ],
)  # fmt: skip
def test_the_first_file_of_a_name_is_found_or_else_the_first_name_becomes_a_path(tmp_path, names, found):
    for name in ("a/one.wav", "a/two.mp4", "b/two.MP4"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert MediaIndex(tmp_path).find(*names) == tmp_path / found
    assert MediaIndex(tmp_path / "none").find("one") == tmp_path / "none" / "one.mp4"
    with pytest.raises(
        InputError, match=r"2 files have the name 'two' \(.*a/two\.mp4, .*b/two\.MP4\); rename the other"
    ):
        MediaIndex(tmp_path).find("two")


def test_a_file_with_spaces_around_its_name_is_found_by_the_stripped_name(tmp_path):
    for name in ("val/ a.wav", "val/b .wav", "val/ c.wav", "c.wav"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    index = MediaIndex(tmp_path)
    assert [index.find(f"val/{name}", name) for name in ("a.wav", "b", "b.wav", "b .wav")] == [
        tmp_path / "val" / name for name in (" a.wav", "b .wav", "b .wav", "b .wav")
    ]
    assert index.find("c.wav") == tmp_path / "c.wav"
    assert index.find(" c.wav") == tmp_path / "val" / " c.wav"


def test_files_in_linked_folders_are_found_once(tmp_path):
    far = tmp_path / "far"
    for name in ("train/one.mp4", "train/two.mp4", "data/videos/three.mp4"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    far.symlink_to(tmp_path / "train")
    data = tmp_path / "data"
    for link, target in (("away", far), ("back", far), ("again", data / "videos"), ("up", tmp_path), ("loop", data)):
        (data / link).symlink_to(target)
    index = MediaIndex(data)
    assert index.find("one") == data / "away" / "one.mp4"
    assert index.find("three") == data / "videos" / "three.mp4"


def test_files_of_the_folder_come_before_files_of_linked_folders(tmp_path, monkeypatch):
    store, data = tmp_path / "store", tmp_path / "data"
    for file in (store / "one.mp4", store / "two.mp4", data / "one.mp4", tmp_path / "locked" / "one.mp4"):
        file.parent.mkdir(exist_ok=True)
        file.touch()
    (data / "videos").mkdir()
    (data / "videos" / "two.mp4").symlink_to(store / "two.mp4")
    (data / "copies").symlink_to(data / "videos")
    (data / "backup").symlink_to(store)
    (data / "raw").symlink_to(tmp_path / "locked")
    (store / "three.mp4").touch()
    (store / "same.mp4").symlink_to(store / "three.mp4")
    (store / "again").mkdir()
    (store / "again" / "three.mp4").symlink_to(store / "three.mp4")

    def scandir(path, read=os.scandir):
        if Path(path).resolve() == tmp_path / "locked":
            raise PermissionError(path)
        return read(path)

    monkeypatch.setattr(os, "scandir", scandir)
    index = MediaIndex(data)
    assert index.find("one") == data / "one.mp4"
    assert index.find("two") == data / "videos" / "two.mp4"
    assert index.find("three") == data / "backup" / "again" / "three.mp4"
    (store / "again" / "four.mp4").touch()
    (store / "four.mp4").touch()
    with pytest.raises(InputError, match=r"2 files have the name 'four' \(.*backup/again/four\.mp4, .*backup/four"):
        MediaIndex(data).find("four")
