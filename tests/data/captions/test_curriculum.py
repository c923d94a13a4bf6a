import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.data.captions.curriculum import _fill, check_partition, objective, partition
from aadml.feature_extraction.ground.errors import InputError


def in_random_batches(vectors):
    order = torch.randperm(len(vectors), generator=torch.Generator().manual_seed(0))
    return objective(vectors, order.view(-1, 10))


def clustered(count=330, dimension=16, clusters=12, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centers = torch.randn(clusters, dimension, generator=generator)
    place = torch.randint(0, clusters, (count,), generator=generator)
    return centers[place] + 0.7 * torch.randn(count, dimension, generator=generator)


def test_the_objective_is_the_sum_of_similarities_within_batches():
    vectors = clustered(24).double()
    batches = torch.randperm(24).view(4, 6)
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    pairs = sum(float(unit[i] @ unit[j]) for rows in batches for i in rows for j in rows if i != j)
    assert objective(vectors, batches) == pytest.approx(pairs + 24)


@pytest.mark.parametrize("hard", [True, False])
@settings(max_examples=15, deadline=None)
@given(count=st.integers(4, 70), size=st.integers(2, 9), seed=st.integers(0, 5))
def test_every_item_is_in_one_batch_at_most_and_only_the_remainder_is_left_out(hard, count, size, seed):
    size = min(size, count)
    batches = partition(clustered(count), size, hard=hard, sweeps=3, seed=seed)
    assert batches.shape == (count // size, size)
    assert len(batches.unique()) == batches.numel()
    assert 0 <= int(batches.min()) <= int(batches.max()) < count


def test_hard_is_harder_than_random_and_random_than_easy():
    vectors = clustered()
    hard, easy = (objective(vectors, partition(vectors, 10, hard=hard)) for hard in (True, False))
    random = in_random_batches(vectors)
    assert hard > 1.3 * random
    assert easy < 0.8 * random


@pytest.mark.parametrize("hard", [True, False])
def test_equal_seeds_give_equal_batches_and_other_seeds_others(hard):
    first, again, other = (partition(clustered(), 10, hard=hard, sweeps=5, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("hard", "sweeps", "apart", "first", "score"),
    [
        (True, 0, False, [51, 36, 37, 62, 60, 32, 5, 8, 57, 23], 255.07795),
        (True, 0, True, [43, 36, 62, 32, 5, 8, 57, 23, 16, 45], 190.77686),
        (False, 0, False, [37, 31, 57, 40, 21, 15, 27, 22, 52, 58], 53.977597),
        (False, 2, False, [37, 10, 57, 3, 53, 15, 46, 22, 52, 56], 37.925751),
    ],
)
def test_the_batches_of_a_seed_stay_the_same(hard, sweeps, apart, first, score):
    vectors, codes = clustered(63), [torch.arange(63) // 4] if apart else []
    batches = partition(vectors, 10, hard=hard, sweeps=sweeps, codes=codes, seed=2)
    assert batches[0].tolist() == first
    assert objective(vectors, batches) == pytest.approx(score, rel=1e-4)
    assert {*range(63)} - {*batches.ravel().tolist()} == {25, 38, 49}


def pairings(items):
    if not items:
        yield []
    for i in range(1, len(items)):
        for rest in pairings(items[1:i] + items[i + 1 :]):
            yield [[items[0], items[i]], *rest]


@pytest.mark.slow
def test_eight_items_in_pairs_reach_the_best_of_all_105_partitions():
    for seed in range(4):
        vectors = clustered(8, 4, seed=seed)
        values = [objective(vectors, torch.tensor(p)) for p in pairings(list(range(8)))]
        assert len(values) == 105
        for hard in (True, False):
            best = max(values) if hard else min(values)
            reached = [
                objective(vectors, partition(vectors, 2, hard=hard, seed=20 * seed + restart)) for restart in range(20)
            ]
            found = max(reached) if hard else min(reached)
            assert found == pytest.approx(best, rel=1e-5), (seed, hard)


def test_the_items_left_out_change_from_seed_to_seed_and_all_get_their_turn():
    left = [set(range(23)) - set(partition(clustered(23), 5, hard=False, sweeps=0, seed=s).flatten().tolist())
            for s in range(8)]  # fmt: skip
    assert all(len(items) == 3 for items in left)
    assert not left[0] & left[1]
    assert set().union(*left) == set(range(23))


def meet(batches, code):
    return any(len(set(code[rows].tolist())) < len(rows) for rows in batches)


def test_duplicates_never_share_a_hard_batch():
    vectors = clustered()
    caption = torch.arange(330) // 5 + 1000  # the five captions of a clip are alike, so they attract each other
    vectors = vectors[torch.arange(330) // 5] + 0.01 * vectors
    clip = torch.arange(330) % 110
    plain = partition(vectors, 10, hard=True)
    assert meet(plain, caption)
    apart = partition(vectors, 10, hard=True, codes=[caption, clip])
    assert len(apart.unique()) == 330
    assert not meet(apart, caption)
    assert not meet(apart, clip)
    assert objective(vectors, apart) > in_random_batches(vectors)


def test_what_cannot_be_done_is_said():
    vectors = clustered(20)
    with pytest.raises(InputError, match="batches of 30"):
        partition(vectors, 30, hard=False)
    with pytest.raises(InputError, match="6 items are duplicates"):
        partition(vectors, 4, hard=True, codes=[torch.tensor([0] * 6 + list(range(1, 15)))])


def test_the_items_without_duplicates_are_sought_among_the_nearest_four_batches():
    size, count = 3, 40
    # item i is the i-th nearest of item 0
    for alike, expected in ((11, [0, 12, 1]), (12, [0, 1, 2])):
        codes = torch.tensor([0] * (alike + 1) + list(range(1, count - alike)))[:, None]
        scores = torch.linspace(1, 0, count)
        scores[0] = -torch.inf
        assert _fill(size, codes, scores, 0) == expected


@pytest.mark.parametrize(
    ("count", "size", "codes", "says"),
    [
        (20, 1, [], "batches of 1 cannot be built from 20 items; choose a batch size from 2 to the number of"),
        (20, 21, [], "batches of 21 cannot be built from 20 items; choose a batch size from 2 to the number of"),
        (20, 20, [], None), (20, 2, [], None), (20, 5, [[0] * 4 + [*range(1, 17)]], None),
        (20, 5, [[*range(20)], [0] * 5 + [*range(1, 16)]],
         "5 items are duplicates of each other, but there are only 4 batches to separate them; choose smaller batches"),
    ],
)  # fmt: skip
def test_a_partition_is_checked_before_vectors_are_computed(count, size, codes, says):
    tensors = [torch.tensor(code) for code in codes]
    if says is None:
        check_partition(count, size, tensors, seed=0)
        return
    with pytest.raises(InputError, match=f"curriculum: {says}"):
        check_partition(count, size, tensors, seed=0)


def test_the_items_that_a_seed_leaves_out_need_no_separation():
    code = torch.tensor([0, 0, 0, 1, 2, 3, 4])  # of seven items, three share two batches
    left_out = [
        ({*range(7)} - {*partition(clustered(7), 3, hard=False, seed=s).ravel().tolist()}).pop() for s in range(7)
    ]
    for seed, item in enumerate(left_out):
        if item < 3:
            check_partition(7, 3, [code], seed=seed)
        else:
            with pytest.raises(InputError, match="3 items are duplicates of each other, but there are only 2 batches"):
                check_partition(7, 3, [code], seed=seed)
