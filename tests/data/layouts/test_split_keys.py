import re

import numpy as np
import pytest

from aadml.data.layouts import LAYOUTS
from aadml.data.reading import open_data
from aadml.feature_extraction.ground.errors import InputError


def test_split_keys_are_recognized(write_h5, split_keys):
    content = open_data(write_h5(**split_keys))
    assert content.splits == ("train",) * 12 + ("test",) * 6
    assert content.class_names == ("3", "5", "9")
    assert content.labels[:4].tolist() == [2, 0, 1, 2]
    assert np.array_equal(content.features["audio"][12:], split_keys["audio_test"].astype(np.float32))
    assert content.features["visual"].shape == (18, 7)


@pytest.mark.parametrize("part", ["valid", "val", "validation", "dev"])
def test_a_validation_part_is_read_where_there_is_one(write_h5, split_keys, part):
    more = {f"{name}_{part}": split_keys[f"{name}_test"] for name in ("audio", "visual", "lab")}
    content = open_data(write_h5(**split_keys, **more))
    assert content.splits.count("valid") == 6
    assert not content.notes()


def test_arrays_that_are_not_read_are_named(write_h5, split_keys):
    path = write_h5(**split_keys, text_train=np.ones((12, 2)), id=np.arange(18))
    assert open_data(path).notes() == ("arrays were left out: id, text_train",)


@pytest.mark.parametrize("form", ["column", "one-hot", "mixed"])
def test_labels_may_be_a_column_or_one_hot(write_h5, split_keys, form):
    plain = open_data(write_h5("plain.h5", **split_keys))
    for part in ("train", "test"):
        labels = split_keys[f"lab_{part}"]
        if form == "column" or (form == "mixed" and part == "test"):
            split_keys[f"lab_{part}"] = labels[:, None].astype(np.float32)
        elif form == "one-hot":
            split_keys[f"lab_{part}"] = np.eye(10, dtype=np.int8)[labels]
    assert open_data(write_h5(**split_keys)).labels.tolist() == plain.labels.tolist()


@pytest.mark.parametrize("key", ["audio_train", "visual_test", "lab_train"])
def test_a_missing_key_is_named_with_the_keys_found(write_h5, split_keys, key):
    del split_keys[key]
    with pytest.raises(
        InputError, match=rf"contains no '{key}'; pass a file with this key .keys found: .*visual_train|lab_test"
    ):
        open_data(write_h5(**split_keys))


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("lab_test", lambda v: v[:-1], "'audio_test' has 6 rows, but 'lab_test' has 5 rows"),
        ("visual_train", lambda v: v[:-1], "'visual_train' has 11"),
        ("audio_test", lambda v: v[:, :-1], r"'audio_train' has shape \(12, 4\), but 'audio_test' has shape \(6, 3\)"),
        ("audio_train", lambda v: v * np.nan, "row 0 contains NaN"),
        ("audio_train", lambda v: v.astype("S4"), "pass numbers|differ only in"),
        ("lab_train", lambda v: np.float64(3), "differ only in the number of rows"),
        ("lab_train", lambda v: v + 0.5, "which is not a whole number"),
        ("audio_train", lambda v: v[:0], "has 0|rows"),
    ],
)
def test_split_keys_that_contradict_each_other_are_refused(write_h5, split_keys, key, change, message):
    split_keys[key] = change(split_keys[key])
    with pytest.raises(InputError, match=message):
        open_data(write_h5(**split_keys))


@pytest.mark.parametrize("suffix", ["h5", "npz"])
def test_keys_that_begin_with_the_part_are_refused_with_the_list_of_layouts(write_h5, tmp_path, suffix):
    arrays = {f"{part}_{name}": np.ones((2, 3)) for part in ("train", "test") for name in ("audios", "visuals")}
    arrays |= {f"{part}_labels": np.zeros(2) for part in ("train", "test")}
    path = tmp_path / f"first.{suffix}"
    np.savez(path, **arrays) if suffix == "npz" else write_h5(path.name, **arrays)
    known = f"or pass a feature file, or one of the layouts {', '.join(LAYOUTS)} (see `aadml list datasets`)"
    message = "has no known layout (it contains test_audios, test_labels, test_visuals, train_audios, "
    with pytest.raises(InputError, match=f"{re.escape(message)}.*{re.escape(known)}$"):
        open_data(path)
    with pytest.raises(InputError, match="split-first"):
        open_data(path, layout="split-first")
