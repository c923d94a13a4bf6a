"""What later versions of the feature file hold: times of sequences, masks, several texts, numbers left in the file."""

import dataclasses
import re

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.feature_file import (
    FeatureFile,
    Texts,
    Timeline,
    check,
    read_features,
    rows,
    write_features,
)
from aadml.feature_extraction.ground.errors import InputError
from tests.feature_extraction.contents import content, same


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
        ((0.0,) * 5, "/audio_times is float64 (5,); float64 (6,) is needed"),
        ((0.0, 1, 0, 1, 2, np.nan), "NaN, infinity or numbers below zero"),
        ((-1.0, 1, 0, 1, 2, 0), "NaN, infinity or numbers below zero"),
        ((0.0, 1, 0, 1, 0.5, 0), "/audio_times descends at row 4, within one clip"),
        ((1.0, 0, 0, 1, 2, 0), "/audio_times descends at row 1, within one clip"),
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
    with pytest.raises(InputError, match=r"holds '[ax]' 2 times; each name must occur once"):
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
        ({"present": {"audio": np.array([True, True, False, True])}}, "/audio: holds values of a clip for which"),
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
    [("[", "is not JSON"), ('{"a": 1}', "is not a list of names"), ('["a b"]', "cannot be"), ('["pose"]', "no /pose")],
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
        (Texts(np.ones((2, 2), np.float32), np.array([0, 4])), "clips from 0 to 3 in asc"),
        (Texts(np.ones((2, 2), np.float32), np.array([1, 0])), "clips from 0 to 3 in asc"),
        (Texts(np.ones((2, 2), np.float32), np.array([0])), r"/text_row is int64 \(1,\)"),
        (Texts(np.full((1, 2), np.nan, np.float32), np.array([0])), "/text holds NaN"),
        (Texts(np.ones((1, 2)), np.array([0])), r"/text is float64 \(1, 2\)"),
        (Texts(np.ones((1, 2), np.float32), np.array([0])), "not the first text of each clip"),
    ],
)
def test_texts_that_contradict_the_clips_are_refused(texts, reason):
    with pytest.raises(InputError, match=reason):
        check(with_texts(texts=texts), "f.h5")
