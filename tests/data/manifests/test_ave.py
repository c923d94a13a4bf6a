import shutil
from collections import Counter

import h5py
import numpy as np
import pytest

from aadml.data.ave import AVE15
from aadml.data.manifests.ave import ave
from aadml.data.manifests.listing import write_manifest
from aadml.data.manifests.making import manifest
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import read_manifest


@pytest.fixture
def annotations(shared_data):
    return shared_data / "ave_annotations"


def counts(listing):
    return Counter(entry.split for entry in listing.entries)


def test_the_15_classes_have_the_papers_counts(annotations):
    listing = ave(annotations)
    of_class = Counter((*entry.labels, entry.split) for entry in listing.entries)
    for label, wanted in AVE15.items():
        assert tuple(of_class[label, split] for split in ("train", "valid", "test")) == wanted
    assert len(listing.entries) == 1955


def test_without_the_limit_there_are_2015_clips(annotations):
    assert counts(ave(annotations, clock_limit=None)) == {"train": 1625, "valid": 195, "test": 195}


def test_the_seed_chooses_the_clocks_and_nothing_else(annotations):
    one, same, other = (ave(annotations, seed=seed) for seed in (0, 0, 1))
    assert one.entries == same.entries
    changed = {entry.id for entry in one.entries} ^ {entry.id for entry in other.entries}
    assert changed
    assert {e.labels for listing in (one, other) for e in listing.entries if e.id in changed} == {("Clock",)}


def test_the_whole_of_ave_shares_8_test_and_10_validation_videos_with_train(annotations):
    listing = ave(annotations, classes=28)
    assert counts(listing) == {"train": 3339, "valid": 402, "test": 402}
    assert {pair: len(videos) for pair, videos in listing.shared().items()} == {
        "train-valid": 10,
        "train-test": 8,
        "valid-test": 0,
    }
    report = "\n".join(listing.report())
    assert "recordings shared by train-test: 8" in report
    assert report.count("sha256 ") == 4


@pytest.mark.parametrize("limit", [161, 1000])
def test_more_clocks_than_there_are_are_refused(annotations, limit):
    with pytest.raises(InputError, match="clock limit"):
        ave(annotations, clock_limit=limit)


@pytest.fixture
def small(tmp_path):
    lines = ["Cat&-a&good&0&10", "Bark&b&good&0&9", "Goat&c&good&0&10", "Cat&d&good&1&10"]
    (tmp_path / "Annotations.txt").write_text("\n".join(lines) + "\n")
    for name, rows in {"train": [0, 1], "val": [2], "test": [3]}.items():
        with h5py.File(tmp_path / f"{name}_order.h5", "w") as file:
            file["order"] = np.asarray(rows)
    (tmp_path / "AVE").mkdir()
    (tmp_path / "AVE" / "-a.mp4").write_text("video")
    return tmp_path


def test_videos_are_found_and_missing_ones_told(small, tmp_path):
    listing = ave(small, clock_limit=None)
    assert [entry.id for entry in listing.entries] == ["-a", "b", "d"]
    assert [entry.id for entry in listing.missing()] == ["b", "d"]
    assert "missing media files: 2 (b.mp4, d.mp4)" in listing.report()
    write_manifest(tmp_path / "m.csv", listing.entries)
    rows = read_manifest(tmp_path / "m.csv").rows
    assert [row.split for row in rows] == ["train", "train", "test"]
    assert rows[0].media["visual"].endswith("AVE/-a.mp4")
    assert rows[0].columns == {"video": "-a", "event_start": "0", "event_end": "10", "quality": "good"}


def test_the_names_of_missing_videos_are_written_beside_the_manifest(small):
    made = manifest("ave", small, clock_limit="none", output=small / "m.csv")
    assert made.with_name("m.missing.txt").read_text().splitlines()[1:] == ["b", "d"]
    (small / "AVE" / "b.mp4").write_text("video b")
    manifest("ave", small, clock_limit="none", output=small / "m.csv")
    assert made.with_name("m.missing.txt").read_text().splitlines()[1:] == ["d"]
    (small / "AVE" / "d.mp4").write_text("video d")
    manifest("ave", small, clock_limit="none", output=small / "m.csv")
    assert not made.with_name("m.missing.txt").exists()


def test_what_is_missing_or_contradicts_is_named(small):
    with pytest.raises(InputError, match=r"15 .* or 28"):
        ave(small, classes=10)
    with pytest.raises(InputError, match="is not a folder; pass --media"):
        ave(small, clock_limit=None, media=small / "absent")
    shutil.copy(small / "test_order.h5", small / "val_order.h5")
    with pytest.raises(InputError, match="do not list each of the"):
        ave(small)
    (small / "val_order.h5").unlink()
    with pytest.raises(InputError, match=r"lacks 'val_order\.h5'"):
        ave(small)
    with h5py.File(small / "val_order.h5", "w") as file:
        file["order"] = np.asarray([], dtype=np.int64)
    with pytest.raises(InputError, match=r"do not list each of the \d+ clips once"):
        ave(small)


def test_the_lists_of_the_archive_give_the_same_clips(small, tmp_path):
    lines = (small / "Annotations.txt").read_text().splitlines()
    zipped = tmp_path / "zip"
    zipped.mkdir()
    header = "Category&VideoID&Quality&StartTime&EndTime"
    (zipped / "Annotations.txt").write_text("\n".join([header, *lines]))
    for name, rows in {"train": [0, 1], "val": [2], "test": [3]}.items():
        (zipped / f"{name}Set.txt").write_text("\n".join(lines[row] for row in rows) + "\n")
    shutil.copytree(small / "AVE", zipped / "AVE")
    first, second = (ave(folder, classes=28).entries for folder in (small, zipped))
    assert [(e.id, e.labels, e.split, e.media.name) for e in first] == [
        (e.id, e.labels, e.split, e.media.name) for e in second
    ]
    with pytest.raises(InputError, match=f"run `aadml manifest ave {zipped}`"):
        manifest(zipped)
    (zipped / "testSet.txt").write_text("Cat&x&good&0&10\n")
    with pytest.raises(InputError, match=r"testSet\.txt: .* is in no line of Annotations\.txt"):
        ave(zipped)
    (zipped / "testSet.txt").write_text("Cat&-a&good&0&10\n")
    with pytest.raises(InputError, match="is listed twice"):
        ave(zipped)
    (zipped / "testSet.txt").write_text("")
    with pytest.raises(InputError):
        ave(zipped)


def test_the_papers_clips_come_from_either_form(annotations, tmp_path):
    lines = (annotations / "Annotations.txt").read_text().splitlines()
    (tmp_path / "Annotations.txt").write_text("\n".join(lines))
    for name in ("train", "val", "test"):
        with h5py.File(annotations / f"{name}_order.h5") as file:
            rows = file["order"][:].tolist()
        (tmp_path / f"{name}Set.txt").write_text("\n".join(lines[row] for row in rows))
    forms = [[(e.id, e.labels, e.split) for e in ave(folder).entries] for folder in (annotations, tmp_path)]
    assert forms[0] == forms[1]
