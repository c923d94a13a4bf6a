import dataclasses
import json
import re

import h5py
import numpy as np
import pytest

from aadml.feature_extraction.feature_file import rows
from aadml.feature_extraction.feature_file.content import Shard
from aadml.feature_extraction.feature_file.reading import is_feature_file, read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from tests.edited_hdf5 import edited
from tests.feature_extraction.contents import content, masked, same, timed, with_texts


@pytest.mark.parametrize("key", ["label", "id", "split", "class_names"])
def test_names_the_key_that_is_missing(tmp_path, key):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        del file[key]
    with pytest.raises(InputError, match=f"contains no array /{key}"):
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
        ("label", 3, "/label is a single value or empty, but must be an array with rows; write rows"),
        ("audio_present", np.array([0, 1, 2, 1]), "/audio_present contains 2, but must contain one boolean per"),
        (
            "audio_present",
            np.ones(4),
            "/audio_present contains values of type float64, but must contain one boolean per clip; write 0",
        ),
        ("column", np.arange(4), "/column is not a group; write a group"),
        ("id", h5py.Empty("S1"), "/id has type |S1 and shape None, but must be a list of strings; write a one-dim"),
        ("id", np.array([[b"a", b"b"]] * 4), "/id has type |S1 and shape (4, 2), but must be a list of strings"),
        ("id", np.arange(4), "/id has type int64 and shape (4,), but must be a list of strings"),
        ("id", np.array([b"\xff", b"a", b"b", b"c"]), "/id contains strings that are not UTF-8"),
    ],
)
def test_refuses_a_key_of_another_type(tmp_path, key, value, message):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        if key in file:
            del file[key]
        file[key] = value
    with pytest.raises(InputError, match=re.escape(message)):
        read_features(tmp_path / "f.h5")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"format": "a"},
            "is not a feature file (its attribute `format` is not 'aadml-features'); pass a feature file",
        ),
        ({"format": "other"}, "is not a feature file (its attribute `format` is not 'aadml-features'); pass a feature"),
        (
            {"version": "3" * 30},
            f"is a feature file of version '{'3' * 20}', but this program reads versions 1 and 2; ",
        ),
    ],
)
def test_refuses_another_format_and_a_later_version(tmp_path, attributes, message):
    path = tmp_path / "f.h5"
    write_features(path, content())
    assert is_feature_file(path)
    with edited(path) as file:
        file.attrs.update(attributes)
    with pytest.raises(InputError, match=re.escape(message)):
        read_features(path)
    assert is_feature_file(path) == ("version" in attributes)
    assert not is_feature_file(tmp_path / "none.h5")


@pytest.mark.parametrize(
    ("provenance", "message"),
    [
        ("[]", "/audio: its attribute `provenance` is not a JSON object; write a JSON object"),
        ('{"notes": "a"}', "the notes in its attribute `provenance` are not a list of strings; write a list"),
        ('{"notes": ["a", 1]}', "the notes in its attribute `provenance` are not a list of strings; write a list"),
        ("{", "/audio: its attribute `provenance` is not JSON; write JSON"),
        ("", None),
    ],
)
def test_refuses_an_origin_that_is_not_an_object_with_sentences(tmp_path, provenance, message):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        file["audio"].attrs["provenance"] = provenance
    if message is None:
        assert read_features(tmp_path / "f.h5").provenance["audio"] == {}
        return
    with pytest.raises(InputError, match=re.escape(message)):
        read_features(tmp_path / "f.h5")


IMPOSSIBLE = [
    ('"count": 2', '"count": 0'),
    ('"index": 0', '"index": 2'),
    ('"index": 0', '"index": -1'),
    ('"total": 9', f'"total": {10**30}'),
    ('"total": 9', '"total": -9'),
]


def test_refuses_a_shard_that_is_not_described(tmp_path):
    path, shard = tmp_path / "f.h5", Shard(0, 2, 9, "abc", rows=np.arange(4))
    write_features(path, content(shard=shard))
    with h5py.File(path) as file:
        text = file["shard"].asstr()[()]
    assert json.loads(text) == {"index": 0, "count": 2, "total": 9, "manifest": "abc", "failures": []}
    for old, new, message in (
        ('"index": 0', '"index": "0"', "/shard does not describe a shard; extract the shard again"),
        ('"failures": []', '"more": []', "/shard does not describe a shard; extract the shard again"),
        *((old, new, "/shard does not describe a shard; extract the shard again") for old, new in IMPOSSIBLE),
        ("{", "[{", "/shard does not describe a shard; extract the shard again"),
        (
            '"index"',
            '"incomplete": "drop", "index"',
            "was extracted with --incomplete drop, which was removed; extract",
        ),
        ('"index"', '"incomplete": "keep", "index"', None),
    ):
        with edited(path) as file:
            del file["shard"]
            file["shard"] = text.replace(old, new, 1)
        if message is None:
            assert same(read_features(path), content(shard=shard))
            continue
        with pytest.raises(InputError, match=re.escape(message)):
            read_features(path)


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
        ("new.h5", "version '3', but this program reads versions 1 and 2"),
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
    [
        ("[", "is not JSON"),
        ('{"a": 1}', "is not a list of names"),
        ('["a b"]', "cannot be"),
        ('["pose"]', "no array /pose"),
    ],
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


def test_only_large_numbers_stay_in_the_file(tmp_path, monkeypatch):
    write_features(tmp_path / "f.h5", content())
    monkeypatch.setattr(rows, "LARGE", 49)  # audio has 48 bytes
    found = read_features(tmp_path / "f.h5").features
    assert {name: isinstance(values, np.memmap) for name, values in found.items()} == {"audio": False, "visual": True}


def test_texts_are_checked_before_they_are_sorted_to_clips(tmp_path):
    path = tmp_path / "f.h5"
    write_features(path, with_texts(rows=(0, 1, 2, 3, 3)))
    assert read_features(path).present == {}
    with edited(path) as file:
        file["text_row"][4] = 4
    with pytest.raises(
        InputError, match=r"/text_row contains 0 to 4, but must contain clips from 0 to 3 in ascending order"
    ):
        read_features(path)


def test_numbers_that_stay_in_the_file_are_checked_too(tmp_path, all_large):
    write_features(tmp_path / "f.h5", content())
    with edited(tmp_path / "f.h5") as file:
        file["visual"][2, 1] = np.nan
    with pytest.raises(InputError, match="/visual: row 2 contains NaN"):
        read_features(tmp_path / "f.h5")
