import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from aadml.data.splitting.division import DEFAULT_RULE, divide, divided, shares_of
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile
from aadml.feature_extraction.ground.errors import InputError

SHARES = (0.7, 0.1, 0.2)
SPLITS = ("train", "valid", "test")


def counts(splits):
    found = Counter(splits)
    return tuple(found[split] for split in SPLITS)


def test_single_clips_reach_the_shares_exactly_in_every_class():
    labels = [(f"c{number % 10}",) for number in range(500)]
    splits = divide(labels, range(500), SHARES, 0)
    assert counts(splits) == (350, 50, 100)
    for label in set(labels):
        assert counts([split for split, of in zip(splits, labels, strict=True) if of == label]) == (35, 5, 10)


def random_pairs(**repeated):
    """Return 300 pairs of distinct features, except for `repeated`: modality -> number of distinct rows."""
    features = {
        m: np.random.default_rng(n).random((300, 4), dtype=np.float32) for n, m in enumerate(("audio", "visual"))
    }
    for modality, count in repeated.items():
        features[modality] = np.random.default_rng(5).random((count, 4), dtype=np.float32)[np.arange(300) % count]
    names = tuple(map(str, range(300)))
    return FeatureFile(features, np.full(300, UNLABELLED), names, ("train",) * 300, ())


def test_clips_with_equal_features_except_text_are_in_one_split():
    plain = divided(random_pairs(), DEFAULT_RULE, 0)
    assert plain.notes() == ("the split was drawn at random (0.7/0.1/0.2, seed 0): 210 train, 30 valid, 60 test",)
    repeated = divided(random_pairs(visual=60), DEFAULT_RULE, 0)
    note = "the split was drawn at random (0.7/0.1/0.2, seed 0, no recording divided): 210 train, 30 valid, 60 test"
    assert repeated.notes() == (note,)
    assert all(len(set(repeated.splits[row::60])) == 1 for row in range(60))
    for others in (random_pairs(text=60), replace(random_pairs(), features={"audio": np.zeros((300, 4), np.float32)})):
        assert divided(others, DEFAULT_RULE, 0).splits == plain.splits


def test_copies_are_divided_if_no_share_could_be_reached():
    few = divided(random_pairs(audio=2), DEFAULT_RULE, 0)
    assert few.splits == divided(random_pairs(), DEFAULT_RULE, 0).splits
    assert few.notes() == (
        "the split was drawn at random (0.7/0.1/0.2, seed 0, 2 recordings divided): 210 train, 30 valid, 60 test",
    )


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 99, 1000])
def test_clips_without_labels_are_divided_as_nearly_as_whole_numbers_allow(n):
    found = counts(divide([()] * n, range(n), SHARES, 1))
    assert sum(found) == n
    assert all(abs(count - share * n) < 1 for count, share in zip(found, SHARES, strict=True))


def test_many_small_classes_reach_the_shares_together():
    labels = [(f"c{number // 5}",) for number in range(500)]
    splits = divide(labels, range(500), SHARES, 0)
    assert counts(splits) == (350, 50, 100)
    for label in set(labels):
        train, _, test = counts([split for split, of in zip(splits, labels, strict=True) if of == label])
        assert train
        assert test


def test_the_same_seed_gives_the_same_division_and_another_seed_another():
    labels = [(str(number % 3),) for number in range(60)]
    one, same, other = (divide(labels, range(60), SHARES, seed) for seed in (0, 0, 1))
    assert one == same != other


@hypothesis_settings(max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=7),
    shares=st.sampled_from([(0.7, 0.1, 0.2), (0.5, 0.25, 0.25), (0.8, 0.0, 0.2), (0.9, 0.1, 0.0)]),
    seed=st.integers(0, 3),
)
@example(sizes=[4, 7, 9, 9, 9, 19, 19], shares=(0.5, 0.25, 0.25), seed=0)
def test_groups_stay_whole_and_come_as_near_as_any_division(sizes, shares, seed):
    """Against all divisions of the groups, by the distance from the wanted counts that the documentation names."""
    groups = [number for number, size in enumerate(sizes) for _ in range(size)]
    splits = divide([()] * len(groups), groups, shares, seed)
    assert len({(group, split) for group, split in zip(groups, splits, strict=True)}) == len(sizes)
    wanted = [share * len(groups) for share in shares]
    possible = [number for number in range(3) if shares[number]]

    def cost(found):
        return sum((found[s] - wanted[s]) ** 2 / wanted[s] for s in possible)

    best = min(
        cost([sum(size for size, s in zip(sizes, places, strict=True) if s == split) for split in range(3)])
        for places in itertools.product(possible, repeat=len(sizes))
    )
    assert cost(counts(splits)) <= 2 * best + 1e-6


def test_speakers_with_several_classes_are_never_divided():
    rows = [(f"speaker {number % 13}", f"class {number % 4}") for number in range(400)]
    splits = divide([(label,) for _, label in rows], [speaker for speaker, _ in rows], SHARES, 0)
    assert len({(speaker, split) for (speaker, _), split in zip(rows, splits, strict=True)}) == 13
    found = counts(splits)
    assert all(abs(count / 400 - share) < 0.06 for count, share in zip(found, SHARES, strict=True))
    assert {label for (_, label), split in zip(rows, splits, strict=True) if split == "test"} == {
        f"class {number}" for number in range(4)
    }


def test_clips_of_several_classes_count_in_each():
    labels = [("a", "b") if number % 2 else ("a",) for number in range(100)]
    splits = divide(labels, range(100), (0.5, 0.0, 0.5), 0)
    assert counts(splits) == (50, 0, 50)
    assert counts([split for split, of in zip(splits, labels, strict=True) if "b" in of]) == (25, 0, 25)


@pytest.mark.parametrize(
    "text", ["", "0.7", "0.7/0.3", "0.7/0.2/0.2", "a/b/c", "-0.1/0.1/1", "0/0.5/0.5", "nan/0/1", "1/0/0/0"]
)
def test_shares_that_cannot_be_are_refused(text):
    with pytest.raises(
        InputError, match=f"shares '{text}'( are not three numbers; write|: the sum is .*, and the smallest)"
    ):
        shares_of(text)
    with pytest.raises(InputError, match=r"the sum is 1\.1, and the smallest share is 0.2; pass shares of at least 0"):
        shares_of("0.7/0.2/0.2")


def test_shares_are_read():
    assert shares_of("0.7/0.1/0.2") == (0.7, 0.1, 0.2)
    assert shares_of("1/0/0") == (1, 0, 0)


def test_the_division_of_a_seed_stays_the_same():
    labels = [(f"c{n % 3}", *(["d"] if n % 4 == 0 else [])) for n in range(36)]
    letters = "".join(split[1] for split in divide(labels, [n // 3 if n % 5 else n % 7 for n in range(36)], SHARES, 3))
    assert letters == "rrrrrrrrrrrrrrrrrreeerrrrrraaareeeer"
    assert "".join(split[1] for split in divide(labels, range(36), SHARES, 3)) == "rrrrerrrrererrerraerrrrrerrrarrrraer"
