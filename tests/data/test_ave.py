import numpy as np
import pytest

from aadml.data.ave import AVE15, class_names_of_columns, read_annotations
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
        ("a&b&c\n", "line 1 has 3 fields"),
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
