import h5py
import numpy as np
import pytest

from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.replacement import refuse_other_clips, refuse_other_vectors
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError

WINDOWS = ("a@0.0-1.0", "a@1.0-2.0")


@pytest.fixture
def path(tmp_path):
    features = {"audio": np.array([[0, 0], [1, 2]], np.float32), "visual": np.ones((2, 3), np.float32)}
    labels, columns = np.zeros(2, np.int64), {"recording": ("a", "a")}
    content = FeatureFile(features, labels, WINDOWS, ("train", "test"), ("x",), columns=columns)
    write_features(tmp_path / "f.h5", content)
    return tmp_path / "f.h5"


@pytest.mark.parametrize("names", [["a"], ["b", WINDOWS[1]]])
def test_a_file_of_a_clip_or_recording_may_be_replaced(path, names):
    refuse_other_clips(path, names, "m.csv")


@pytest.mark.parametrize("names", [["b"], []])
def test_a_file_of_other_clips_is_kept(path, names):
    with pytest.raises(InputError, match=r"f\.h5 shares none of its 2 clips with m\.csv, so this feature file is not"):
        refuse_other_clips(path, names, "m.csv")


def test_a_file_of_which_most_clips_would_be_lost_is_kept(tmp_path):
    ids = ("a", "b", "c")
    content = FeatureFile({"audio": np.ones((3, 2), np.float32)}, np.zeros(3, np.int64), ids, ("train",) * 3, ("x",))
    write_features(tmp_path / "g.h5", content)
    refuse_other_clips(tmp_path / "g.h5", ["a", "b", "d", "e", "f"], "m.csv")
    with pytest.raises(InputError, match=r"g\.h5 shares 1 of its 3 clips with m\.csv, so"):
        refuse_other_clips(tmp_path / "g.h5", ["a", "d"], "m.csv")


def test_a_file_with_an_equal_vector_may_be_replaced(path):
    refuse_other_vectors(path, {"audio": np.array([[1, 2], [5, 6]], np.float64), "flow": np.zeros((2, 3))}, "a.npz")


@pytest.mark.parametrize("features", [{"audio": [[0, 0], [2, 1]]}, {"visual": [[1, 2]]}, {"flow": [[1, 2]]}, {}])
def test_a_file_without_an_equal_vector_is_kept(path, features):
    with pytest.raises(InputError, match=r"f\.h5 shares no vector with a\.npz, so this feature file is not"):
        refuse_other_vectors(path, {m: np.array(rows, np.float32) for m, rows in features.items()}, "a.npz")


def test_a_missing_damaged_or_empty_file_may_be_replaced(path):
    refuse_other_clips(path.with_name("none.h5"), [], "m.csv")
    path.write_bytes(path.read_bytes()[:2000])
    refuse_other_clips(path, [], "m.csv")
    path.write_bytes(b"")
    refuse_other_vectors(path, {}, "a.npz")


@pytest.mark.parametrize("value", [3, "x", h5py.Empty("f4")])
def test_an_output_whose_ids_are_no_list_is_refused_in_one_line(tmp_path, value):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["id"] = value
    with pytest.raises(InputError, match=r"f\.h5 shares none of its 1 clips with m\.csv, so"):
        refuse_other_clips(tmp_path / "f.h5", ["a"], "m.csv")


def test_ids_that_are_neither_numbers_nor_text_are_not_read(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file.create_dataset("id", (2,), h5py.vlen_dtype(np.uint8))[:] = [np.ones(3, np.uint8)] * 2
    with pytest.raises(InputError, match=r"f\.h5 shares none of its 1 clips with m\.csv, so"):
        refuse_other_clips(tmp_path / "f.h5", ["a"], "m.csv")
