import dataclasses
import re

import h5py
import numpy as np
import pytest

from aadml.feature_extraction.feature_file import rows
from aadml.feature_extraction.feature_file.reading import is_feature_file, read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from tests.edited_hdf5 import edited
from tests.feature_extraction.contents import content, masked, same, timed


@pytest.mark.parametrize("key", ["label", "id", "split", "class_names"])
def test_names_the_key_that_is_missing(tmp_path, key):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        del file[key]
    with pytest.raises(InputError, match=f"contains no /{key}"):
        read_features(tmp_path / "f.h5")


def test_reads_val_as_valid(tmp_path):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        file["split"][1] = "val"
    assert read_features(tmp_path / "f.h5").splits[1] == "valid"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("label", np.zeros(4), "/label contains float64, but must contain integers"),
        ("audio", np.array([b"x"] * 4), "/audio contains |S1, but must contain real numbers"),
        ("id", np.arange(4), "/id has type int64 (4,), but must be a list of strings"),
        ("id", np.array([b"\xff", b"a", b"b", b"c"]), "/id contains strings that are not UTF-8"),
    ],
)
def test_refuses_a_key_of_another_type(tmp_path, key, value, message):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        del file[key]
        file[key] = value
    with pytest.raises(InputError, match=re.escape(message)):
        read_features(tmp_path / "f.h5")


@pytest.mark.slow
def test_refuses_what_is_not_a_feature_file(tmp_path):
    (tmp_path / "text.h5").write_text("id,label")
    h5py.File(tmp_path / "other.h5", "w").close()
    write_features(tmp_path / "new.h5", content())
    with edited(tmp_path / "new.h5") as file:
        file.attrs["version"] = 3
    write_features(tmp_path / "cut.h5", content())
    (tmp_path / "cut.h5").write_bytes((tmp_path / "cut.h5").read_bytes()[:3000])
    for name, message in [
        ("text.h5", "cannot be read as HDF5"),
        ("other.h5", "is not a feature file"),
        ("new.h5", "version 3, but this program reads versions 1 and 2"),
        ("cut.h5", "cannot be read as HDF5"),
        ("none.h5", "does not exist"),
        ("", "is a folder"),
    ]:
        with pytest.raises(InputError, match=message):
            read_features(tmp_path / name)
    assert not is_feature_file(tmp_path / "text.h5")
    assert not is_feature_file(tmp_path / "other.h5")
    assert is_feature_file(tmp_path / "new.h5")


@pytest.mark.parametrize(
    ("listed", "message"),
    [("[", "is not JSON"), ('{"a": 1}', "is not a list of names"), ('["a b"]', "cannot be"), ('["pose"]', "no /pose")],
)
def test_refuses_a_list_of_modalities_that_does_not_hold(tmp_path, listed, message):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        file.attrs["modalities"] = listed
    with pytest.raises(InputError, match=message):
        read_features(tmp_path / "f.h5")


@pytest.fixture
def all_large(monkeypatch):
    monkeypatch.setattr(rows, "LARGE", 1)


@pytest.mark.parametrize("written", [content(), timed(), masked()], ids=["plain", "timed", "masked"])
def test_numbers_that_stay_in_the_file_are_the_same(tmp_path, all_large, written):
    write_features(tmp_path / "f.h5", written)
    before = (tmp_path / "f.h5").read_bytes()
    found = read_features(tmp_path / "f.h5")
    assert all(isinstance(values, np.memmap) for values in found.features.values())
    assert same(found, written)
    for values in found.features.values():
        values += 1  # a private page
    assert (tmp_path / "f.h5").read_bytes() == before
    write_features(tmp_path / "f.h5", content(2))  # replaced by renaming: what was read stays
    assert same(dataclasses.replace(found, features=written.features), written)


@pytest.mark.parametrize(
    "kept", [{"chunks": (2, 2)}, {"chunks": (2, 2), "compression": "gzip"}, {"dtype": "f8"}, {"dtype": ">f4"}]
)
def test_numbers_that_lie_otherwise_are_read(tmp_path, all_large, kept):
    written = content()
    write_features(tmp_path / "f.h5", written)
    with edited(tmp_path / "f.h5") as file:
        values, origin = file["audio"][()], dict(file["audio"].attrs)
        del file["audio"]
        file.create_dataset("audio", data=values.astype(kept.get("dtype", "f4")), **kept)
        file["audio"].attrs.update(origin)
    found = read_features(tmp_path / "f.h5")
    assert not isinstance(found.features["audio"], np.memmap)
    assert same(found, written)


def test_numbers_that_stay_in_the_file_are_checked_too(tmp_path, all_large):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        file["visual"][2, 1] = np.nan
    with pytest.raises(InputError, match="/visual: row 2 contains NaN"):
        read_features(tmp_path / "f.h5")
