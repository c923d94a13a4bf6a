from collections import Counter

import pytest

from aadml.data.manifests.making import manifest
from aadml.data.manifests.vegas import vegas
from aadml.feature_extraction.ground.errors import InputError


@pytest.fixture
def folder(tmp_path):
    for label in ("baby_cry", "dog"):
        for number in range(10):
            path = tmp_path / "data" / label / "videos" / f"{label}_video_{number:05d}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.name)
    folds = tmp_path / "folds"
    folds.mkdir()
    for fold in range(5):
        names = [f"{label}_video_{number:05d}" for label in ("baby_cry", "dog") for number in (fold, fold + 5)]
        (folds / f"{fold}.txt").write_text("\n".join(names))
    return tmp_path


def test_a_fifth_of_each_class_is_drawn_for_test_without_folds(folder):
    counts = Counter((*entry.labels, entry.split) for entry in vegas(folder / "data").entries)
    assert counts == {(label, split): n for label in ("baby_cry", "dog") for split, n in (("train", 8), ("test", 2))}


def test_the_last_fold_is_the_test_split(folder):
    listing = vegas(folder / "data", folds=folder / "folds")
    tests = {entry.id for entry in listing.entries if entry.split == "test"}
    assert tests == {f"{label}_video_0000{number}" for label in ("baby_cry", "dog") for number in (4, 9)}
    assert set(listing.hashes) == {f"{fold}.txt" for fold in range(5)}


def test_videos_without_a_fold_and_ids_without_a_video_are_told(folder):
    (folder / "data" / "dog" / "videos" / "dog_video_00003.mp4").rename(folder / "data" / "dog" / "new.mp4")
    notes = " ".join(vegas(folder / "data", folds=folder / "folds").notes)
    assert "1 videos are in no fold" in notes
    assert "1 ids of the folds have no video" in notes


def test_the_ids_of_missing_videos_are_written_beside_the_manifest(folder):
    (folder / "data" / "dog" / "videos" / "dog_video_00003.mp4").unlink()
    notes = []
    made = manifest("vegas", folder / "data", folds=folder / "folds", output=folder / "m.csv", on_note=notes.append)
    assert made.with_name("m.missing.txt").read_text().splitlines()[1:] == ["dog_video_00003"]
    assert notes[-1] == f"the 1 missing videos are listed in {folder / 'm.missing.txt'}"


def test_what_cannot_be_listed_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        vegas(folder / "absent")
    with pytest.raises(InputError, match="is not a folder; pass a folder with one"):
        vegas(folder / "data", folds=folder / "none")
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match="contains no media"):
        vegas(folder / "empty")
    with pytest.raises(InputError, match="lists no ids"):
        vegas(folder / "data", folds=folder / "empty")
    (folder / "empty" / "fold.txt").write_text("other")
    with pytest.raises(InputError, match="list none of the 20 videos"):
        vegas(folder / "data", folds=folder / "empty")
