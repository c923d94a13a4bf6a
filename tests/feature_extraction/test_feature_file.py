import re
import resource

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.feature_file import (
    Shard,
    Timeline,
    check,
    is_feature_file,
    read_features,
    write_features,
)
from aadml.feature_extraction.ground.errors import InputError
from tests.feature_extraction.contents import content, same


def test_gives_back_what_was_written(tmp_path):
    written = content()
    write_features(tmp_path / "f.h5", written)
    assert same(read_features(tmp_path / "f.h5"), written)


def test_gives_back_a_shard_with_names_that_are_not_utf8(tmp_path):
    failures = ((1, ("b", "\udcff.mp4", "audio", "corrupt", "what")),)
    shard = Shard(0, 2, 9, "abc", np.array([0, 2, 4, 6]), failures)
    write_features(tmp_path / "f.h5", content(shard=shard))
    assert same(read_features(tmp_path / "f.h5"), content(shard=shard))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), min_size=4, max_size=4, unique=True
    )
)
def test_gives_back_any_utf8_names(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("any") / "f.h5"
    write_features(path, content(ids=tuple(ids)))
    assert read_features(path).ids == tuple(ids)


def test_equal_content_gives_equal_bytes(tmp_path):
    write_features(tmp_path / "one.h5", content())
    write_features(tmp_path / "two.h5", content())
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_names_the_rows_of_a_split():
    assert content().rows("train").tolist() == [0, 3]
    assert content(splits=("test",) * 4).rows("train").tolist() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": {}}, "holds no modality"),
        ({"features": {"Smell": np.ones((4, 1), np.float32)}}, "'Smell' cannot be the name of a modality"),
        ({"features": {"audio_times": np.ones((4, 1), np.float32)}}, "'audio_times' cannot be the name of a modality"),
        ({"features": {"audio": np.ones((3, 2), np.float32)}}, "/audio is float32 (3, 2); float32 (4, d) is needed"),
        ({"features": {"audio": np.ones(4, np.float32)}}, "/audio is float32 (4,); float32 (4, d) is needed"),
        ({"features": {"audio": np.ones((4, 2))}}, "/audio is float64 (4, 2); float32 (4, d) is needed"),
        ({"features": {"audio": np.array([[0], [1], [np.nan], [0]], np.float32)}}, "/audio: row 2 holds NaN"),
        ({"features": {"audio": np.array([[0], [np.inf], [1], [0]], np.float32)}}, "/audio: row 1 holds NaN"),
        ({"labels": np.array([0, 1, 0])}, "/label is int64 (3,); int64 (4,) is needed"),
        ({"labels": np.array([0, 1, 2, 0])}, "/label is 2 in row 2, but there are 2 class names"),
        ({"labels": np.array([0, -2, 1, 0])}, "/label is -2 in row 1"),
        ({"labels": np.array([0.0, 1, 1, 0])}, "/label is float64"),
        ({"labels": np.full(4, -2)}, "/label is -2 in row 0"),
        ({"all_labels": np.ones((4, 3), np.uint8)}, "/labels is uint8 (4, 3); uint8 (4, 2) is needed"),
        ({"all_labels": np.full((4, 2), 2, np.uint8)}, "zeros and ones"),
        (
            {"all_labels": np.array([[1, 1]] * 3 + [[1, 0]], np.uint8)},
            "/labels and /label contradict each other in row 3",
        ),
        ({"splits": ("train", "test")}, "/split has 2 rows"),
        ({"splits": ("train", "train", "exam", "test")}, "/split holds 'exam'; possible are train, valid, test"),
        ({"columns": {"speaker": ("x",)}}, "/column/speaker has 1 rows"),
        ({"sequences": {"text": Timeline(np.ones((1, 1), np.float32), np.arange(5))}}, "no pooled features"),
        (
            {"sequences": {"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 2, 1, 5, 6]))}},
            "/audio_offsets must ascend from 0 to 6",
        ),
        (
            {"sequences": {"audio": Timeline(np.ones((7, 3), np.float32), np.array([0, 2, 2, 5, 6]))}},
            "/audio_offsets must ascend from 0 to 7",
        ),
        ({"sequences": {"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 6]))}}, "int64 (5,) is needed"),
        ({"shard": Shard(0, 2, 9, "abc", np.array([0]))}, "/shard_rows is int64 (1,); int64 (4,) is needed"),
    ],
)
def test_refuses_content_that_contradicts_itself(tmp_path, changes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        write_features(tmp_path / "f.h5", content(**changes))
    assert list(tmp_path.iterdir()) == []


def test_refuses_a_file_without_clips():
    empty = content(features={"audio": np.ones((0, 1), np.float32)}, labels=np.zeros(0, np.int64), ids=(), splits=())
    with pytest.raises(InputError, match="holds no clips"):
        check(empty, "here")


@pytest.mark.parametrize("key", ["label", "id", "split", "class_names"])
def test_names_the_key_that_is_missing(tmp_path, key):
    write_features(tmp_path / "f.h5", content())
    with h5py.File(tmp_path / "f.h5", "a") as file:
        del file[key]
    with pytest.raises(InputError, match=f"holds no /{key}"):
        read_features(tmp_path / "f.h5")


def test_reads_val_as_valid(tmp_path):
    write_features(tmp_path / "f.h5", content())
    with h5py.File(tmp_path / "f.h5", "a") as file:
        file["split"][1] = "val"
    assert read_features(tmp_path / "f.h5").splits[1] == "valid"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("label", np.zeros(4), "/label holds float64; integers are needed"),
        ("audio", np.array([b"x"] * 4), "/audio holds |S1; real numbers are needed"),
        ("id", np.arange(4), "/id holds int64 (4,); a list of strings is needed"),
        ("id", np.array([b"\xff", b"a", b"b", b"c"]), "/id holds strings that are not UTF-8"),
    ],
)
def test_refuses_a_key_of_another_type(tmp_path, key, value, message):
    write_features(tmp_path / "f.h5", content())
    with h5py.File(tmp_path / "f.h5", "a") as file:
        del file[key]
        file[key] = value
    with pytest.raises(InputError, match=re.escape(message)):
        read_features(tmp_path / "f.h5")


@pytest.mark.slow
def test_refuses_what_is_not_a_feature_file(tmp_path):
    (tmp_path / "text.h5").write_text("id,label")
    h5py.File(tmp_path / "other.h5", "w").close()
    write_features(tmp_path / "new.h5", content())
    with h5py.File(tmp_path / "new.h5", "a") as file:
        file.attrs["version"] = 3
    write_features(tmp_path / "cut.h5", content())
    (tmp_path / "cut.h5").write_bytes((tmp_path / "cut.h5").read_bytes()[:3000])
    for name, message in [
        ("text.h5", "cannot be read as HDF5"),
        ("other.h5", "is not a feature file"),
        ("new.h5", "version 3; this program reads versions 1 and 2"),
        ("cut.h5", "cannot be read as HDF5"),
        ("none.h5", "no such file"),
        ("", "is a folder"),
    ]:
        with pytest.raises(InputError, match=message):
            read_features(tmp_path / name)
    assert not is_feature_file(tmp_path / "text.h5")
    assert not is_feature_file(tmp_path / "other.h5")
    assert is_feature_file(tmp_path / "new.h5")


def test_a_full_disk_is_an_input_error_and_leaves_the_old_file(tmp_path):
    write_features(tmp_path / "f.h5", content())
    before = (tmp_path / "f.h5").read_bytes()
    big = content(features={"audio": np.ones((4, 100_000), np.float32)}, sequences={}, fitted={})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(InputError, match="cannot be written"):
            write_features(tmp_path / "f.h5", big)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "f.h5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["f.h5"]
