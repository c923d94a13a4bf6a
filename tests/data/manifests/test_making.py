import re
from collections import Counter

import pytest

from aadml.data.manifests.making import manifest
from aadml.feature_extraction.ground.errors import InputError
from tests.data.manifests.test_table import plain, rows_of, written


@pytest.mark.parametrize("split", [None, "column:split"])
def test_a_seed_that_draws_nothing_is_refused(media, split):
    lines = [f"media/{number}.mp4,{('train', 'test')[number % 2]}" for number in range(40)]
    table = written(media, "\n".join(["media,split", *lines]))
    with pytest.raises(InputError, match="--seed 3 has no effect"):
        manifest(table, output=media / "m.csv", split=split, seed=3)
    assert not (media / "m.csv").exists()
    drawn = [
        rows_of(manifest(table, output=media / "m.csv", split="random:0.5/0.2/0.3", seed=seed)) for seed in (3, 3, 4)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_missing_media_are_counted_and_left_out_only_if_asked(media):
    table = written(media, "media,label\nmedia/1.mp4,x\nmedia/none.mp4,x\nmedia/2.mp4,y\n")
    with pytest.raises(InputError, match=r"1 of 3 clips have no media file \(.*none\.mp4\); pass --skip-missing"):
        manifest(table)
    assert not (media / "table.manifest.csv").exists()
    notes = []
    path = manifest(table, skip_missing=True, on_note=notes.append)
    assert [row.id for row in rows_of(path)] == ["1", "2"]
    assert any("1 of 3 clips have no media file and were left out" in note for note in notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "random:0.9/0.2/0.2"}, "pass shares of at least 0 with the sum 1"),
        ({"split": "half"}, "write random:TRAIN/VALID/TEST"),
        ({"split": "column:fold"}, "--split column:fold: there is no column 'fold'"),
        ({"split": "column:note"}, "40 of 40 cells are not splits ('x' occurs 40 times)"),
        ({"split_by": "speaker"}, "--split-by speaker: there is no column 'speaker'; choose from note"),
        ({"split": "column:part", "split_by": "note", "columns": "part=split"}, "are in several splits"),
        ({"media": "none"}, "is not a folder of media"),
        ({"valid": 0.2}, "has no such option"),
    ],
)
def test_splits_and_options_that_cannot_be_are_refused(media, options, message):
    lines = ["media,label,note,split", *(f"media/{n}.mp4,c{n % 4},x,{'test' if n % 2 else 'train'}" for n in range(40))]
    with pytest.raises(InputError, match=re.escape(message)):
        manifest(written(media, "\n".join(lines)), **options)


def test_nothing_of_the_users_is_overwritten(media):
    table = plain(media, "media,label")
    before = table.read_bytes()
    with pytest.raises(InputError, match="exists and is not a manifest"):
        manifest(table, output=table)
    manifest(table)
    with pytest.raises(InputError, match="exists; pass --output"):
        manifest(table)
    manifest(table, output=media / "table.manifest.csv", seed=1)
    (media / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="exists and is not a manifest"):
        manifest(table, output=media / "notes.txt")
    assert table.read_bytes() == before
    with pytest.raises(InputError, match="is the input"):
        manifest(media / "table.manifest.csv", output=media / "table.manifest.csv")


@pytest.mark.parametrize(
    ("files", "labels", "splits"),
    [
        (["a.mp4", "b.wav"], [(), ()], {"train"}),
        (["cat/a.mp4", "dog/b.wav", "loose.mp4"], [("cat",), ("dog",)], {"train"}),
        (["train/a.mp4", "test/b.wav"], [(), ()], {"train", "test"}),
        (
            ["train/cat/a.mp4", "val/cat/c.mp4", "test/dog/b.wav"],
            [("cat",), ("dog",), ("cat",)],
            {"train", "valid", "test"},
        ),
    ],
)
def test_a_folder_is_a_source_with_labels_or_without(tmp_path, files, labels, splits):
    for name in files:
        path = tmp_path / "clips" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    rule = None if len(splits) > 1 else "random:1/0/0"
    path = manifest(tmp_path / "clips", split=rule)
    assert path == tmp_path / "clips.manifest.csv"
    rows = rows_of(path)
    assert Counter(row.labels for row in rows) == Counter(labels)
    assert {row.split for row in rows} == splits
    bare = rows_of(manifest(tmp_path / "clips", split=rule, no_labels=True, output=tmp_path / "bare.csv"))
    assert len(bare) == len(files)
    assert not any(row.labels for row in bare)


def test_an_empty_folder_and_a_lone_name_are_refused(tmp_path):
    with pytest.raises(InputError, match="contains no media"):
        manifest(tmp_path)
    with pytest.raises(InputError, match="is the name of a data set; pass its folder as well"):
        manifest("ave")
    with pytest.raises(InputError, match="does not exist"):
        manifest(tmp_path / "none")
