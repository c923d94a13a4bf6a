import os
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.data.manifests.folder import folder
from aadml.data.manifests.listing import write_manifest
from aadml.data.manifests.splitting import with_splits
from aadml.data.splitting.division import divide
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import read_manifest


def tree(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def test_folders_of_splits_are_kept(tmp_path):
    tree(tmp_path, "train/cat/a.mp4", "train/dog/b.wav", "val/cat/c.mp4", "test/dog/d.mkv", "test/dog/deep/e.MP4")
    entries = {entry.id: (*entry.labels, entry.split) for entry in folder(tmp_path).entries}
    assert entries == {
        "a": ("cat", "train"),
        "b": ("dog", "train"),
        "c": ("cat", "valid"),
        "d": ("dog", "test"),
        "e": ("dog", "test"),
    }


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["train/cat/a.mp4", "train/dog/b.mp4"], {("cat", "train"), ("dog", "train")}),
        (["train/cat/a.mp4", "valid/dog/b.mp4"], {("cat", "train"), ("dog", "valid")}),
        (["Testing/a.mp4", "Testing/b.mp4"], {("test",)}),
        (
            [f"training_{kind}/{n}" for n in ("cat/1", "dog/2") for kind in ("audio", "images")],
            {("cat", "train"), ("dog", "train")},
        ),
        (["train horn/a.mp4", "train/b.mp4"], {("train horn", ""), ("train", "")}),
    ],
)
def test_top_folders_are_splits_if_all_have_names_of_splits(tmp_path, names, expected):
    ends = {True: ".wav", False: ".png"}
    tree(tmp_path, *(name if "." in name else name + ends["audio" in name] for name in names))
    assert {(*entry.labels, entry.split) for entry in folder(tmp_path).entries} == expected


def test_hidden_loose_and_other_files_are_left_aside(tmp_path):
    tree(tmp_path, "cat/a.mp4", "cat/.b.mp4", ".hidden/c.mp4", "cat/notes.txt", "loose.mp4", "dog/d.mp4")
    listing = folder(tmp_path)
    assert {entry.id for entry in listing.entries} == {"a", "d"}
    assert "1 media files outside the folders of classes were left out" in listing.notes


def test_files_of_the_same_bytes_stay_in_one_split_and_are_told(tmp_path):
    tree(tmp_path, *(f"cat/{number}.mp4" for number in range(30)))
    for number in range(15):
        (tmp_path / f"cat/twin{number:02d}.mp4").write_bytes((tmp_path / f"cat/{number}.mp4").read_bytes())
    listing = with_splits(folder(tmp_path), "random:0.5/0.1/0.4", None, 0)
    splits = {entry.id: entry.split for entry in listing.entries}
    assert all(splits[f"twin{number:02d}"] == splits[str(number)] for number in range(15))
    assert len(listing.repeated()) == 15
    assert not any(listing.shared().values())


def test_ids_grow_until_they_differ(tmp_path):
    tree(tmp_path, "cat/a.mp4", "cat/a.wav")
    assert {entry.id for entry in folder(tmp_path).entries} == {"a.mp4", "a.wav"}
    tree(tmp_path, "dog/a.mp4")
    assert {entry.id for entry in folder(tmp_path).entries} == {"cat/a.mp4", "cat/a.wav", "dog/a.mp4"}


def test_any_file_name_reaches_the_manifest_and_comes_back(tmp_path):
    odd = [b"-dash.mp4", b"with space.mp4", b"new\nline.mp4", b'comma,"quote".mp4', b"latin\xe9.mp4"]
    (tmp_path / "cat").mkdir()
    for name in odd:
        (tmp_path / "cat" / os.fsdecode(name)).write_bytes(name)
    write_manifest(tmp_path / "m.csv", with_splits(folder(tmp_path), None, None, 0).entries)
    rows = read_manifest(tmp_path / "m.csv").rows
    for row in rows:
        with open(row.media["audio"], "rb") as file:  # noqa: PTH123 - the name as the reader gives it
            assert file.read() in odd
        row.id.encode()
    assert len({row.media["audio"] for row in rows}) == len(odd)
    (tmp_path / "cat" / r"latin\xe9.mp4").write_bytes(b"")
    with pytest.raises(InputError, match=re.escape(r"two files have the name 'cat/latin\xe9.mp4' as UTF-8; rename")):
        folder(tmp_path)


@pytest.mark.slow
@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4), test=st.floats(0, 0.5), seed=st.integers(0, 5))
def test_division_covers_every_class(sizes, test, seed):
    labels = [(str(label),) for label, size in enumerate(sizes) for _ in range(size)]
    splits = divide(labels, range(len(labels)), (1 - test, 0.0, test), seed)
    assert splits == divide(labels, range(len(labels)), (1 - test, 0.0, test), seed)
    for label, size in enumerate(sizes):
        counts = Counter(split for split, of in zip(splits, labels, strict=True) if of == (str(label),))
        assert counts["train"] >= 1
        assert (counts["test"] > 0) == (test > 0 and size > 1)


def test_what_cannot_be_listed_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        folder(tmp_path / "absent")
    with pytest.raises(InputError, match="contains no media"):
        folder(tree(tmp_path, "notes.txt"))


def entries(root):
    listing = folder(root)
    return {(*entry.labels, entry.split, entry.media.name, entry.visual.name) for entry in listing.entries}, listing


def test_folders_of_sounds_and_pictures_are_pairs(tmp_path):
    names = [f"{label}/{kind}/{n}.{end}" for label in ("cat", "dog") for n in (1, 2)
             for kind, end in (("sound", "wav"), ("images", "jpg"))]  # fmt: skip
    tree(tmp_path, *names, "top.wav", "cat/sound/lone.wav", "dog/images/lone.png", "dog/images/notes.txt")
    found, listing = entries(tmp_path)
    assert found == {(label, "", f"{n}.wav", f"{n}.jpg") for label in ("cat", "dog") for n in (1, 2)}
    assert listing.notes[0].startswith("4 pairs of a sound and a picture")
    assert "1 sounds without a partner of the same name were left out" in listing.notes
    assert "1 pictures without a partner of the same name were left out" in listing.notes
    assert listing.notes[-1] == "files with other endings were left out (.txt 1)"


@pytest.mark.parametrize(
    "form", ["{split}_{kind}/{label}/{n}", "{kind}/{split}/{label}/{n}", "{split}/{label}/my {kind}/{n}"]
)
def test_splits_may_stand_anywhere_in_paired_folders(tmp_path, form):
    cases = [(split, label) for split in ("training", "testing") for label in ("cat", "dog")]
    for split, label in cases:
        for kind, end in (("audio", "wav"), ("videos", "mp4")):
            tree(tmp_path, form.format(split=split, kind=kind, label=label, n=f"{label}1") + f".{end}")
    words = {"training": "train", "testing": "test"}
    assert entries(tmp_path)[0] == {(label, words[split], f"{label}1.wav", f"{label}1.mp4") for split, label in cases}


def test_paired_folders_without_labels_or_without_pairs(tmp_path):
    tree(
        tmp_path / "a", "training_sounds/1.wav", "training_images/1.png", "testing_sounds/2.wav", "testing_images/2.png"
    )
    assert entries(tmp_path / "a")[0] == {("train", "1.wav", "1.png"), ("test", "2.wav", "2.png")}
    tree(tmp_path / "b", "sounds/1.wav", "images/2.png")
    with pytest.raises(InputError, match="no sound has the name of a picture"):
        folder(tmp_path / "b")


def test_media_that_paired_folders_leave_out_are_noted(tmp_path):
    tree(tmp_path, "sounds/a.mp3", "sounds/a.wav", "sounds/b.wav", "sounds/b.png", "images/a.png", "images/b.png")
    found, listing = entries(tmp_path)
    assert found == {("", "a.mp3", "a.png"), ("", "b.wav", "b.png")}
    reason = "their folder has an earlier file of the same name, or is for other media"
    assert f"2 media files were left out (a.wav, b.png): {reason}" in listing.notes


def test_a_class_named_after_sounds_is_a_class(tmp_path):
    tree(tmp_path, "train horn/a.mp4", "wind sound/b.wav", "video game/c.mp4")
    assert {entry.labels for entry in folder(tmp_path).entries} == {("train horn",), ("wind sound",), ("video game",)}


def test_files_of_the_same_bytes_are_listed_by_name(tmp_path):
    tree(tmp_path, "train/cat/a.mp4", "test/cat/b.mp4", "test/dog/c.mp4")
    (tmp_path / "test/cat/b.mp4").write_text("train/cat/a.mp4")
    report = folder(tmp_path).report()
    assert "recordings in more than one row: 1 (b.mp4 = a.mp4)" in report
    assert "recordings shared by train-test: 1 (b.mp4 = a.mp4)" in report


def test_pairs_with_equal_pictures_are_listed_by_name(tmp_path):
    tree(tmp_path, "train sounds/a.wav", "train images/a.png", "test sounds/b.wav", "test images/b.png")
    (tmp_path / "test images/b.png").write_text("train images/a.png")
    report = folder(tmp_path).report()
    assert "recordings shared by train-test: 1 (b.wav+b.png = a.wav+a.png)" in report
