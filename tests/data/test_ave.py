from collections import Counter
from dataclasses import replace

import h5py
import numpy as np
import pytest

from aadml.data.ave import (
    AVE15,
    class_names_of_columns,
    left_out_of_clock,
    read_annotations,
    read_splits,
    with_drawn_clock,
)
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError


def test_the_counts_of_the_15_classes_are_the_published_totals():
    assert len(AVE15) == 15
    assert np.asarray(list(AVE15.values())).sum(axis=0).tolist() == [1577, 189, 189]


def test_videos_that_stand_in_several_lines_are_told_apart(tmp_path):
    path = tmp_path / "Annotations.txt"
    path.write_text("Rodents, rats, mice&-id&good&0&10\nCat&other&good&3&4\nDog&-id&good&0&2\n")
    lines = read_annotations(path)
    assert [line.name for line in lines] == ["-id@0", "other", "-id@2"]
    assert lines[0].label == "Rodents, rats, mice"
    assert (lines[1].start, lines[1].end) == ("3", "4")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a&b&c\n", "line 1 has 3 fields; write the five fields class&video&quality&start&end"),
        ("Category&VideoID&Quality&StartTime&EndTime\n\na&b&c\n", "line 3 has 3 fields"),
        ("", "contains no annotations"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    path = tmp_path / "Annotations.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_annotations(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_annotations(tmp_path / "absent.txt")


def test_columns_are_numbered_where_annotations_do_not_tell(tmp_path):
    codes = np.asarray([0, 2, 1])
    assert class_names_of_columns(codes, None, 4) == ("column 0", "column 1", "column 2", "background")
    path = tmp_path / "Annotations.txt"
    path.write_text("Cat&a&good&0&1\nCat&b&good&0&1\nDog&c&good&0&1\n")
    assert class_names_of_columns(codes, read_annotations(path), 4)[0] == "column 0"  # two columns would be cats


def test_the_real_annotations_are_read(shared_data):
    lines = read_annotations(shared_data / "ave_annotations" / "Annotations.txt")
    assert len(lines) == 4143
    assert len({line.video for line in lines}) == 4097
    assert len({line.name for line in lines}) == 4143
    assert set(AVE15) < {line.label for line in lines}


def test_clips_of_clock_are_drawn_in_the_proportions_of_the_splits():
    split_of = {row: ("train", "valid", "test")[max(0, row % 10 - 7)] for row in range(10, 170)}
    left_out = left_out_of_clock(split_of, 100, seed=3)
    assert Counter(split for row, split in split_of.items() if row not in left_out) == {
        "train": 80, "valid": 10, "test": 10
    }  # fmt: skip
    assert sorted(left_out)[:6] == [15, 16, 17, 20, 21, 25]
    assert left_out == left_out_of_clock(split_of, 100, seed=3) != left_out_of_clock(split_of, 100, seed=4)
    assert len(left_out_of_clock(split_of, 0, seed=3)) == 160
    assert Counter(split_of[row] for row in left_out_of_clock(split_of, 16, seed=3)) == {
        "train": 116, "valid": 14, "test": 14
    }  # fmt: skip
    assert left_out_of_clock(dict.fromkeys(range(8), "train") | {8: "valid", 9: "test"}, 10, seed=3) == set()
    for limit, split, count in ((-1, "train", -1), (161, "train", 129)):
        with pytest.raises(
            InputError, match=f"clock limit {limit} needs {count} {split} clips of Clock, but there are"
        ):
            left_out_of_clock(split_of, limit, seed=3)


def test_a_hundred_clips_of_clock_are_kept(make_content):
    content = synthetic(classes=2, train=96, valid=22, test=22, dimensions=(2, 3))
    content = replace(content, class_names=("Clock", "Cat"), labels=np.arange(140) % 20 // 18)
    drawn = with_drawn_clock(content, 0)
    assert np.bincount(drawn.labels).tolist() == [100, 14]
    assert list(drawn.ids) == [name for name in content.ids if name in {*drawn.ids}]
    with pytest.raises(InputError, match="Clock has 100 clips, but a draw of 100 needs more; pass all clips"):
        with_drawn_clock(drawn, 0)
    with pytest.raises(
        InputError, match=r"have no class Clock \(the first classes are Dog, Cat\); pass features of AVE"
    ):
        with_drawn_clock(replace(content, class_names=("Dog", "Cat")), 0)


def test_clips_in_no_split_and_in_two_are_named(tmp_path):
    lines = [f"Cat&v{n}&good&{n}&9" for n in range(7)]
    (tmp_path / "Annotations.txt").write_text("\n".join(lines))
    annotations = read_annotations(tmp_path / "Annotations.txt")
    for name, rows in (("train", (4, 0)), ("val", (6,)), ("test", (1, 2, 3, 5))):
        (tmp_path / f"{name}Set.txt").write_text("\n".join(lines[row] for row in rows))
    assert read_splits(tmp_path, annotations) == ["train", "test", "test", "test", "train", "test", "valid"]
    (tmp_path / "testSet.txt").write_text(lines[1])
    with pytest.raises(InputError, match=r": 3 clips are in no split \(v2, v3, v5\); use AVE's files"):
        read_splits(tmp_path, annotations)
    (tmp_path / "testSet.txt").write_text(lines[0])
    with pytest.raises(
        InputError, match=r"testSet.txt: the annotation 'Cat' of the video 'v0' is listed twice; use AV"
    ):
        read_splits(tmp_path, annotations)
    (tmp_path / "trainSet.txt").unlink()
    for name, rows in (("train", [4, 0]), ("val", [[6]]), ("test", [1, 2, 3, 5])):
        with h5py.File(tmp_path / f"{name}_order.h5", "w") as file:
            file["order"] = rows
    assert read_splits(tmp_path, annotations) == ["train", "test", "test", "test", "train", "test", "valid"]
    with pytest.raises(
        InputError, match="the order files contain 7 rows and do not list each of the 6 clips once; use"
    ):
        read_splits(tmp_path, annotations[:6])


def test_a_column_has_the_most_frequent_class_of_its_clips(tmp_path):
    (tmp_path / "a").write_text("".join(f"{label}&v{n}&good&0&1\n" for n, label in enumerate("ABBCCCB")))
    lines, codes = read_annotations(tmp_path / "a"), np.asarray([0, 0, 0, 2, 2, 3, 3])
    assert class_names_of_columns(codes, lines, 4) == ("B", "column 1", "C", "background")
    twice = class_names_of_columns(np.asarray([0, 0, 0, 2, 1, 1, 1]), lines, 4)
    assert twice == tuple(f"column {number}" for number in range(4))
