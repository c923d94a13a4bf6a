import dataclasses
import re
import resource

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feature_extraction.feature_file import (
    FeatureFile,
    Shard,
    Texts,
    Timeline,
    check,
    is_feature_file,
    read_features,
    rows,
    write_features,
)
from feature_extraction.ground.errors import InputError


def content(n: int = 4, **changes) -> FeatureFile:
    generator = np.random.default_rng(0)
    full = FeatureFile(
        features={
            "audio": generator.normal(size=(n, 3)).astype(np.float32),
            "visual": generator.normal(size=(n, 5)).astype(np.float32),
        },
        labels=np.arange(n, dtype=np.int64) % 2,
        ids=tuple(f"clip {number} é\n" for number in range(n)),
        splits=("train", "valid", "test", "train")[:n],
        class_names=("dog", "Uhu ö"),
        provenance={"audio": {"extractor": "log-mel", "weights": None}, "visual": {"extractor": "hog-color"}},
        columns={"caption_1": tuple("ab, cd"[:n]), "speaker": ("",) * n},
        sequences={"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 2, 2, 5, 6]))} if n == 4 else {},
        fitted={"visual": {"mean": np.ones(5, np.float32)}},
    )
    return dataclasses.replace(full, **changes)


def same(one: FeatureFile, other: FeatureFile) -> bool:
    def plain(value):
        if isinstance(value, np.ndarray):
            return (value.dtype.str, value.shape, value.tobytes())
        if dataclasses.is_dataclass(value):
            return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        return value

    return plain(one) == plain(other)


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
        ({"features": {"audio": np.ones((3, 2), np.float32)}}, "/audio has 3 rows, but there are 4 ids"),
        ({"features": {"audio": np.ones(4, np.float32)}}, r"/audio has shape (4,)"),
        ({"features": {"audio": np.ones((4, 2))}}, "/audio holds float64; float32 is needed"),
        ({"features": {"audio": np.array([[0], [1], [np.nan], [0]], np.float32)}}, "/audio: row 2 holds NaN"),
        ({"features": {"audio": np.array([[0], [np.inf], [1], [0]], np.float32)}}, "/audio: row 1 holds NaN"),
        ({"labels": np.array([0, 1, 0])}, "/label has 3 rows"),
        ({"labels": np.array([0, 1, 2, 0])}, "/label is 2 in row 2, but there are 2 class names"),
        ({"labels": np.array([0, -2, 1, 0])}, "/label is -2 in row 1"),
        ({"labels": np.array([0.0, 1, 1, 0])}, "/label is float64"),
        ({"labels": np.full(4, -2)}, "/label is -2 in row 0"),
        ({"all_labels": np.ones((4, 3), np.uint8)}, "uint8 (4, 2), are needed"),
        ({"all_labels": np.full((4, 2), 2, np.uint8)}, "zeros and ones"),
        ({"all_labels": np.array([[1, 1]] * 3 + [[1, 0]], np.uint8)}, "row 3 lacks the class that /label names"),
        ({"splits": ("train", "test")}, "/split has 2 rows"),
        ({"splits": ("train", "train", "exam", "test")}, "/split holds 'exam'; possible are train, valid, test"),
        ({"columns": {"speaker": ("x",)}}, "/column/speaker has 1 rows"),
        ({"sequences": {"text": Timeline(np.ones((1, 1), np.float32), np.arange(5))}}, "no pooled features"),
        ({"sequences": {"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 2, 1, 5, 6]))}}, "step back"),
        ({"sequences": {"audio": Timeline(np.ones((7, 3), np.float32), np.array([0, 2, 2, 5, 6]))}}, "from 0 to 7"),
        ({"sequences": {"audio": Timeline(np.ones((6, 3), np.float32), np.array([0, 6]))}}, "int64 (5,) is needed"),
        ({"shard": Shard(0, 2, 9, "abc", np.array([0]))}, "/shard_rows has 1 rows"),
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


def timed(times=(0.5, 1.5, 0.0, 0.96, 1.92, 0.25)):
    timeline = Timeline(np.ones((6, 3), np.float32), np.array([0, 2, 2, 5, 6]), np.asarray(times))
    return content(sequences={"audio": timeline})


def test_keeps_the_times_of_a_sequence_in_version_2_and_reads_version_1(tmp_path):
    write_features(tmp_path / "new.h5", timed())
    write_features(tmp_path / "old.h5", content())
    for name, version, times in [("new.h5", 2, timed().sequences["audio"].times), ("old.h5", 1, None)]:
        with h5py.File(tmp_path / name) as file:
            assert file.attrs["version"] == version
        np.testing.assert_array_equal(read_features(tmp_path / name).sequences["audio"].times, times)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ((0.0,) * 5, "its times are float64 (5,); float64 (6,) is needed"),
        ((0.0, 1, 0, 1, 2, np.nan), "NaN, infinity or numbers below zero"),
        ((-1.0, 1, 0, 1, 2, 0), "NaN, infinity or numbers below zero"),
        ((0.0, 1, 0, 1, 0.5, 0), "go back at row 4, within one clip"),
        ((1.0, 0, 0, 1, 2, 0), "go back at row 1, within one clip"),
    ],
)
def test_refuses_times_that_cannot_be(tmp_path, times, message):
    with pytest.raises(InputError, match=re.escape(message)):
        write_features(tmp_path / "f.h5", timed(times))


def test_finds_the_row_that_stands_at_a_moment():
    timeline = timed().sequences["audio"]
    assert timeline.rows_at(0, [0.0, 0.4, 0.5, 1.4, 1.5, 99]).tolist() == [-1, -1, 0, 0, 1, 1]
    assert timeline.rows_at(1, [0.0, 1.0]).tolist() == [-1, -1]
    assert timeline.rows_at(2, [0.0, 0.96, 1.0, 2.0]).tolist() == [2, 3, 3, 4]
    assert timeline.rows_at(3, np.arange(2) + 0.5).tolist() == [5, 5]
    with pytest.raises(ValueError, match="no times"):
        content().sequences["audio"].rows_at(0, [0.0])


@pytest.mark.parametrize("changes", [{"ids": ("a", "b", "a", "d")}, {"class_names": ("x", "x")}])
def test_refuses_a_name_that_stands_for_two_things(tmp_path, changes):
    with pytest.raises(InputError, match=r"holds '[ax]' 2 times; each name must stand for one thing"):
        write_features(tmp_path / "f.h5", content(**changes))


def masked(**changes):
    """Content of which the clip in row 2 has no sound, and no rows of it over time."""
    there = np.array([True, True, False, True])
    whole = content()
    features = {**whole.features, "audio": whole.features["audio"] * there[:, None]}
    return dataclasses.replace(whole, features=features, sequences={}, present={"audio": there}, **changes)


FIRST_VERSION, SECOND_VERSION = (
    {"plain": content(sequences={}), "columns": content(sequences={}, columns={"speaker": ("a", "b", "c", "d")})},
    {
        "masks": masked(),
        "names": content(
            features={**content().features, "hand_pose": np.ones((4, 2), np.float32)},
            provenance={**content().provenance, "hand_pose": {"extractor": "mine"}},
        ),
        "unlabelled": content(labels=np.full(4, -1), class_names=()),
        "several labels": content(all_labels=np.ones((4, 2), np.uint8)),
    },
)


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
def test_a_file_is_written_in_the_lowest_version_that_holds_it_and_comes_back_as_it_was(tmp_path, version):
    for name, written in (FIRST_VERSION, SECOND_VERSION)[version - 1].items():
        write_features(tmp_path / f"{name}.h5", written)
        with h5py.File(tmp_path / f"{name}.h5") as file:
            assert file.attrs["version"] == version, name
        read = read_features(tmp_path / f"{name}.h5")
        assert same(read, written), name
        assert {m: there.tolist() for m, there in read.present.items()} == {
            m: there.tolist() for m, there in written.present.items()
        }


def test_a_mask_that_hides_nobody_is_not_written(tmp_path):
    write_features(tmp_path / "one.h5", content())
    write_features(tmp_path / "two.h5", content(present={"audio": np.ones(4, bool)}))
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_clips_are_chosen_with_their_masks():
    chosen = masked().select(np.array([2, 0]))
    assert chosen.has("audio").tolist() == [False, True]
    assert chosen.has("visual").tolist() == [True, True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"present": {"audio": np.array([1, 1, 0, 1])}}, "/audio_present is int64 (4,); bool (4,) is needed"),
        ({"present": {"audio": np.array([True])}}, "/audio_present is bool (1,); bool (4,) is needed"),
        ({"present": {"text": np.ones(4, bool)}}, "/text_present has no features beside it"),
        ({"present": {"audio": np.array([True, True, False, True])}}, "/audio: holds numbers of a clip that"),
        (
            {"features": {"audio": np.zeros((4, 1), np.float32)}, "present": {"audio": np.zeros(4, bool)}},
            "has no modality at all",
        ),
    ],
)
def test_refuses_masks_that_contradict_the_features(tmp_path, changes, message):
    with pytest.raises(InputError, match=re.escape(message)):
        write_features(tmp_path / "f.h5", content(**{"sequences": {}, **changes}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("listed", "message"),
    [("[", "is not JSON"), ('{"a": 1}', "is no list of names"), ('["a b"]', "cannot be"), ('["pose"]', "no /pose")],
)
def test_refuses_a_list_of_modalities_that_does_not_hold(tmp_path, listed, message):
    write_features(tmp_path / "f.h5", content())
    with h5py.File(tmp_path / "f.h5", "a") as file:
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
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        values, origin = file["audio"][()], dict(file["audio"].attrs)
        del file["audio"]
        file.create_dataset("audio", data=values.astype(kept.get("dtype", "f4")), **kept)
        file["audio"].attrs.update(origin)
    found = read_features(tmp_path / "f.h5")
    assert not isinstance(found.features["audio"], np.memmap)
    assert same(found, written)


def test_numbers_that_stay_in_the_file_are_checked_too(tmp_path, all_large):
    write_features(tmp_path / "f.h5", content())
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        file["visual"][2, 1] = np.nan
    with pytest.raises(InputError, match="/visual: row 2 holds NaN"):
        read_features(tmp_path / "f.h5")


def with_texts(rows=(0, 0, 1, 3, 3, 3), **changes) -> FeatureFile:
    values = np.random.default_rng(1).normal(size=(len(rows), 2)).astype(np.float32)
    texts = Texts.sorted(values, np.asarray(rows, dtype=np.int64))
    first, there = texts.first_of_each(4)
    several = content(texts=texts, present={} if there.all() else {"text": there})
    return dataclasses.replace(several, features=several.features | {"text": first}, **changes)


def test_several_texts_a_clip_are_kept(tmp_path):
    written = with_texts()
    write_features(tmp_path / "f.h5", written)
    read = read_features(tmp_path / "f.h5")
    assert same(read, dataclasses.replace(written, provenance=read.provenance))
    assert read.has("text").tolist() == [True, True, False, True]
    assert "2 of 4 clips have several texts, 6 in all" in read.notes()
    with h5py.File(tmp_path / "f.h5") as file:
        assert file.attrs["version"] == 2
        assert file["text"].shape == (6, 2)
        assert file["text_row"][()].tolist() == [0, 0, 1, 3, 3, 3]


@given(st.lists(st.integers(0, 3), min_size=1), st.lists(st.integers(0, 3)))
def test_texts_follow_their_clips(rows, chosen):
    values = np.arange(len(rows), dtype=np.float32)[:, None]
    found = Texts.sorted(values, np.asarray(rows, dtype=np.int64)).select(np.asarray(chosen, dtype=np.int64))
    expected = [(place, number) for place, clip in enumerate(chosen) for number, row in enumerate(rows) if row == clip]
    assert list(zip(found.rows.tolist(), found.values[:, 0].tolist(), strict=True)) == expected
    first, there = found.first_of_each(len(chosen))
    assert there.tolist() == [clip in rows for clip in chosen]
    assert first[:, 0].tolist() == [rows.index(clip) if clip in rows else 0 for clip in chosen]


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (Texts(np.ones((2, 2), np.float32), np.array([0, 4])), "clips 0 to 3 in order"),
        (Texts(np.ones((2, 2), np.float32), np.array([1, 0])), "clips 0 to 3 in order"),
        (Texts(np.ones((2, 2), np.float32), np.array([0])), r"/text_row is int64 \(1,\)"),
        (Texts(np.full((1, 2), np.nan, np.float32), np.array([0])), "finite float32"),
        (Texts(np.ones((1, 2)), np.array([0])), "finite float32"),
        (Texts(np.ones((1, 2), np.float32), np.array([0])), "not the first text of each clip"),
    ],
)
def test_texts_that_contradict_the_clips_are_refused(texts, reason):
    with pytest.raises(InputError, match=reason):
        check(with_texts(texts=texts), "f.h5")
