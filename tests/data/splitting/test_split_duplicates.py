from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.comparison import moments
from aadml.comparison.stored_rows import StoredRows
from aadml.data.splitting import split_duplicates
from aadml.data.splitting.split_duplicates import duplicate_pairs, searched, without_duplicates
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import Timeline
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media.fingerprints import picture_fingerprint, sound_fingerprint


def drawn(**changes):
    return replace(synthetic(classes=3, train=90, valid=15, test=30, dimensions=(12, 16)), **changes)


def planted(content, copies, noise=1e-3):
    """Put rows in the place of others: {row: row it repeats}, with noise."""
    generator = np.random.default_rng(0)
    features = {name: values.copy() for name, values in content.features.items()}
    for row, origin in copies.items():
        for values in features.values():
            values[row] = values[origin] + noise * generator.standard_normal(values.shape[1])
    return replace(content, features=features)


def named(pairs):
    return {(pair.split, pair.id, pair.other_split, pair.other) for pair in pairs}


def test_data_without_duplicates_have_none():
    assert duplicate_pairs(drawn()) == []


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-2])
def test_a_clip_of_a_later_split_is_found_in_each_earlier_one(noise):
    content = drawn()
    train, valid, test = (content.rows(split).tolist() for split in ("train", "valid", "test"))
    copies = {train[0]: test[0], train[5]: valid[3], valid[7]: test[9]}
    content = planted(content, copies, noise)
    pairs = duplicate_pairs(content)
    ids = content.ids
    assert named(pairs) == {
        ("test", ids[test[0]], "train", ids[train[0]]),
        ("valid", ids[valid[3]], "train", ids[train[5]]),
        ("test", ids[test[9]], "valid", ids[valid[7]]),
    }
    assert all(set(pair.distances) == {"audio", "visual"} and max(pair.distances.values()) < 0.15 for pair in pairs)


@pytest.mark.parametrize(("drop", "gone"), [("train", "train"), ("test", "test")])
def test_all_copies_are_left_out_and_the_content_stays(drop, gone):
    content = drawn()
    train, test = content.rows("train").tolist(), content.rows("test").tolist()
    content = planted(content, {train[0]: test[0], train[1]: test[0], train[2]: test[0]})
    before = content.features["audio"].copy()
    left, notes = without_duplicates(content, drop)
    lost = set(content.ids) - set(left.ids)
    assert lost == {content.ids[row] for row in (train[:3] if drop == "train" else test[:1])}
    assert duplicate_pairs(left) == []
    assert notes == [f"{len(lost)} {gone} clips that are in two splits up to noise or encoding were left out"]
    np.testing.assert_array_equal(content.features["audio"], before)
    assert without_duplicates(left, drop)[1][0].startswith("no clips")


def test_clips_with_equal_texts_are_no_duplicates():
    content = drawn()
    captions = np.tile(np.eye(3, 16, dtype=np.float32), (45, 1))
    content = replace(content, features={"audio": content.features["audio"], "text": captions})
    assert duplicate_pairs(content) == []
    assert without_duplicates(content, "train")[0].ids == content.ids
    train, test = content.rows("train")[0], content.rows("test")[0]
    (pair,) = duplicate_pairs(planted(content, {train: test}))
    assert set(pair.distances) == {"audio"}


@pytest.mark.parametrize(("drop", "emptied", "other"), [("train", "valid", "test"), ("test", "test", "train")])
def test_duplicates_are_kept_if_a_split_would_have_no_other_clip(drop, emptied, other):
    content = drawn()
    train, valid, test = (content.rows(split).tolist() for split in ("train", "valid", "test"))
    copies = {"train": dict(zip(valid, test, strict=False)), "test": dict(zip(test, train, strict=False))}[drop]
    with pytest.raises(InputError) as error:
        without_duplicates(planted(content, copies, 0.0), drop)
    assert f"--drop-duplicates {drop} would remove all {emptied} clips" in str(error.value)
    assert f"--drop-duplicates {other}" in str(error.value)


def test_what_belongs_to_a_clip_goes_and_stays_with_it():
    content = drawn()
    n = len(content.ids)
    offsets = np.concatenate([[0], np.cumsum(np.arange(n) % 4)])
    values = np.repeat(np.arange(n, dtype=np.float32), np.arange(n) % 4)[:, None]
    content = replace(
        content,
        columns={"number": tuple(map(str, range(n)))},
        sequences={"audio": Timeline(values, offsets, np.zeros(len(values)))},
        fingerprints={"audio": np.arange(n * 4).reshape(n, 4).astype(np.uint8)},
    )
    rows = np.asarray([7, 3, 100, 4])
    left = content.select(rows)
    assert left.columns["number"] == ("7", "3", "100", "4")
    assert left.sequences["audio"].values[:, 0].tolist() == [7, 7, 7, 3, 3, 3]
    assert left.sequences["audio"].offsets.tolist() == [0, 3, 6, 6, 6]
    np.testing.assert_array_equal(left.fingerprints["audio"], content.fingerprints["audio"][rows])


def fingerprints(n, seed):
    return np.random.default_rng(seed).integers(1, 256, (n, 256)).astype(np.uint8)


def test_fingerprints_find_what_features_do_not():
    content = drawn()
    n = len(content.ids)
    prints = {"audio": fingerprints(n, 0), "visual": fingerprints(n, 1)}
    train, test = content.rows("train"), content.rows("test")
    prints["audio"][train[0]] = prints["audio"][test[0]]
    prints["visual"][train[1]] = prints["visual"][test[1]] ^ 3  # a little noise
    near = fingerprints(n, 2)[0].astype(int) - 128
    for name in prints:  # alike in both, in neither so much that it alone would tell
        prints[name][train[2]] = np.clip(prints[name][test[2]] + 0.2 * near, 1, 255)
    prints["audio"][[train[3], test[3]]] = 0  # silence is not the same sound
    pairs = duplicate_pairs(replace(content, fingerprints=prints))
    found = {(pair.id, pair.other): set(pair.distances) for pair in pairs}
    assert found == {
        (content.ids[test[0]], content.ids[train[0]]): {"audio fingerprint"},
        (content.ids[test[1]], content.ids[train[1]]): {"visual fingerprint"},
        (content.ids[test[2]], content.ids[train[2]]): {"audio fingerprint", "both fingerprints"},
    }


RATE, FRAMES = 8_000, 20  # of clips of 2 s


def filmed(seed):
    """Return sound (s,) and frames (t, 64, 64, 3): tones that come and go, and a spot that moves over a scene."""
    generator = np.random.default_rng(seed)
    time = np.arange(2 * RATE) / RATE
    rate, phase = generator.uniform(0.3, 1.5, (2, 12, 1))
    loud = np.clip(np.sin(2 * np.pi * (rate * time + phase)), 0, None) ** 2
    sound = (loud * np.sin(2 * np.pi * generator.uniform(150, 3000, (12, 1)) * time)).sum(axis=0) / 12
    scene = np.kron(generator.integers(0, 200, (8, 8, 3), dtype=np.uint8), np.ones((8, 8, 1), np.uint8))
    frames = np.repeat(scene[None], FRAMES, axis=0)
    for number, column in enumerate(np.linspace(4, 50, FRAMES).astype(int)):
        frames[number, 20:32, column : column + 12] = 255
    return sound.astype(np.float32), frames


COPIES = {
    "mirrored": lambda sound, frames: (sound, frames[:, :, ::-1]),
    "mirrored, other sound": lambda _, frames: (filmed(99)[0], frames[:, :, ::-1]),
    "0.3 s cut off": lambda sound, frames: (sound[int(0.3 * RATE) :], frames[3:]),
    "0.3 s later": lambda sound, frames: (
        np.concatenate([np.zeros(int(0.3 * RATE), np.float32), sound])[: len(sound)],
        np.concatenate([frames[:1], frames[:1], frames[:1], frames])[:FRAMES],
    ),
}


@pytest.mark.parametrize("copy", COPIES)
def test_mirrored_and_shifted_copies_are_found_and_nothing_else(copy):
    clips = [filmed(seed) for seed in range(24)]
    copies = [COPIES[copy](*clip) for clip in clips[:6]]
    known, rest = clips[:12], clips[12:]
    everything = [*known, *copies, *rest]
    prints = {
        "audio": np.stack([sound_fingerprint(sound, RATE) for sound, _ in everything]),
        "visual": np.stack([picture_fingerprint(frames) for _, frames in everything]),
    }
    content = synthetic(classes=2, train=len(known), valid=0, test=len(everything) - len(known), dimensions=(6, 8))
    splits = ("train",) * len(known) + ("test",) * (len(everything) - len(known))
    content = replace(content, splits=splits, fingerprints=prints)
    assert {(pair.id, pair.other) for pair in duplicate_pairs(content)} == {
        (content.ids[12 + number], content.ids[number]) for number in range(6)
    }


def test_fingerprints_of_another_size_are_not_compared():
    content = drawn()
    prints = np.ones((len(content.ids), 4), np.uint8)
    assert duplicate_pairs(replace(content, fingerprints={"audio": prints, "visual": prints})) == []


def test_of_what_would_take_long_a_sample_is_looked_for(monkeypatch):
    content = drawn()
    everybody = searched(content, limit=True)
    assert {split: len(rows) for split, rows in everybody.items()} == {"test": 30, "valid": 15}
    products = (30 * 90 + 15 * 90 + 30 * 15) * 28
    monkeypatch.setattr(split_duplicates, "_LARGEST", products / 3)
    rows = searched(content, limit=True)
    assert {split: len(own) for split, own in rows.items()} == {"test": 10, "valid": 5}
    assert all(set(own) <= set(content.rows(split)) for split, own in rows.items())
    test, train = content.rows("test"), content.rows("train")
    twice = planted(content, {int(one): int(other) for one, other in zip(test, train, strict=False)})
    found = duplicate_pairs(twice, limit=True)
    assert {pair.id for pair in found} == {content.ids[row] for row in rows["test"]}
    assert len(duplicate_pairs(twice)) == 30


@pytest.mark.slow
def test_small_blocks_find_the_same(monkeypatch):
    content = drawn()
    test, train = content.rows("test"), content.rows("train")
    prints = {"audio": fingerprints(len(content.ids), 0), "visual": fingerprints(len(content.ids), 1)}
    prints["audio"][test[5]] = prints["audio"][train[40]]
    twice = replace(planted(content, {int(test[3]): int(train[80]), int(test[9]): int(train[2])}), fingerprints=prints)
    found = duplicate_pairs(twice)
    assert len(found) == 3
    monkeypatch.setattr(moments, "_NUMBERS_AT_ONCE", 200)
    again = duplicate_pairs(twice)
    for one, other in zip(found, again, strict=True):
        assert (one.id, one.other) == (other.id, other.other)
        assert one.distances == pytest.approx(other.distances, rel=1e-5)


def test_as_many_clips_are_searched_as_the_limit_allows(monkeypatch):
    content = drawn(fingerprints={"audio": np.zeros((135, 4), np.uint8)})
    # 28 dimensions and 9 shifts of 4 bytes; test clips are compared with 105 clips, validation clips with 90
    products = (30 * (90 + 15) + 15 * 90) * (28 + 4 * 9)
    for share, counts in ((1.0, (30, 15)), (0.999, (29, 14)), (0.5, (15, 7)), (1e-9, (1, 1))):
        monkeypatch.setattr(split_duplicates, "_LARGEST", share * products)
        found = searched(content, limit=True)
        assert tuple(len(found[split]) for split in ("test", "valid")) == counts
        assert all(set(rows) <= set(content.rows(split)) for split, rows in found.items())
        assert [len(rows) for rows in searched(content, limit=False).values()] == [30, 15]
    assert searched(content.select(content.rows("train")), limit=True)["test"].tolist() == []


def test_a_joint_fingerprint_weighs_modalities_by_their_usual_distances(monkeypatch):
    seen = []
    monkeypatch.setattr(split_duplicates, "_joint", lambda rows, present: seen.append((rows, present)) or [])
    generator = np.random.default_rng(0)
    prints = {
        m: generator.integers(1, high, (135, 256)).astype(np.uint8) for m, high in (("audio", 9), ("visual", 200))
    }
    prints["audio"][3] = 0
    every = np.arange(135)
    list(split_duplicates._compared(drawn(fingerprints=prints), every))
    ((rows, present),) = seen
    assert np.flatnonzero(~present).tolist() == [3]
    usual = {
        m: split_duplicates.usual_distance(StoredRows.of(values[values.any(axis=1)].astype(np.float32)))
        for m, values in prints.items()
    }
    expected = np.concatenate([prints[m] / usual[m] for m in split_duplicates.FINGERPRINT_SHARES], axis=1)
    np.testing.assert_allclose(rows.batch(torch.arange(135)).numpy(), expected, rtol=1e-5)
    assert usual["visual"] > 5 * usual["audio"] > 0
    prints["audio"][:] = 9  # equal sounds have no usual distance, and their fingerprints count as they are
    list(split_duplicates._compared(drawn(fingerprints=prints), every))
    np.testing.assert_array_equal(seen[1][0].batch(torch.arange(135))[:, :256].numpy(), prints["audio"])
