import pytest

from aadml.data.splitting.folds import first_five, read_folds
from aadml.feature_extraction.ground.errors import InputError


def test_ids_lose_folders_and_endings_and_belong_to_their_first_fold(tmp_path):
    (tmp_path / "a.txt").write_text("clips/x.mp4\ny.npy\n")
    (tmp_path / "b.txt").write_text("z\nx\n")
    split_of, notes, note = read_folds(tmp_path)
    assert split_of == {"x": "train", "y": "train", "z": "test"}
    assert notes == ["1 ids are in the folds more than once: x"]
    assert note == "fold 2 of 2 ('b.txt') is the test split"


def test_binary_folds_and_folders_without_ids_are_refused(tmp_path):
    with pytest.raises(InputError, match="lists no ids"):
        read_folds(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match="cannot be read as a text file of ids"):
        read_folds(tmp_path)


def test_of_many_names_five_are_shown():
    assert first_five(list("abc")) == "a, b, c"
    assert first_five(list("abcdefg")) == "a, b, c, d, e and 2 more"
