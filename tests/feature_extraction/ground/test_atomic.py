import os

import pytest

from feature_extraction.ground.atomic import remove_leftovers, write_text
from feature_extraction.ground.errors import InputError


def test_removes_what_a_kill_left_of_this_file_and_of_no_other(tmp_path):
    for name in [".f.ab_d1234.partial.h5", ".f.0.ab_d1234.partial.h5", ".g.ab_d1234.partial.h5", "f.h5", ".f.h5"]:
        (tmp_path / name).write_text("")
    remove_leftovers(tmp_path / "f.h5")
    kept = [".f.0.ab_d1234.partial.h5", ".f.h5", ".g.ab_d1234.partial.h5", "f.h5"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    remove_leftovers(tmp_path / "nowhere" / "f.h5")


def test_a_device_is_not_replaced_by_a_file(tmp_path):
    place = tmp_path / "pipe"
    os.mkfifo(place)
    with pytest.raises(InputError, match="pipe: is a device or a pipe"):
        write_text(place, "text")
    assert place.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_file_that_stands_for_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/a/b\.txt: cannot be written, as .*file is no folder"):
        write_text(tmp_path / "file" / "a" / "b.txt", "text")
