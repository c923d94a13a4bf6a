import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.graph import NeighborLists, neighbors, random_neighbors, united


def vectors(count, dimension=5, seed=0):
    return torch.randn(count, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_definition(bank, k, labels=None, groups=None):
    cosine = torch.nn.functional.normalize(bank, dim=1) @ torch.nn.functional.normalize(bank, dim=1).T
    groups = range(len(bank)) if groups is None else groups
    lists = []
    for i in range(len(bank)):
        allowed = [j for j in range(len(bank)) if groups[j] != groups[i] and (labels is None or labels[j] == labels[i])]
        ranked = sorted(allowed, key=lambda j, i=i: (-round(float(cosine[i, j]), 12), j))[:k]
        lists.append(ranked + [-1] * (k - len(ranked)))
    return lists


@given(
    count=st.integers(1, 40),
    classes=st.integers(1, 6),
    k=st.integers(1, 7),
    clips=st.one_of(st.none(), st.integers(1, 20)),
    labeled=st.booleans(),
    distinct=st.integers(1, 40),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=80, deadline=None)
def test_equals_the_definition_for_small_classes_duplicates_and_groups(
    count, classes, k, clips, labeled, distinct, seed
):
    generator = torch.Generator().manual_seed(seed)
    bank = vectors(distinct, 3, seed)[torch.randint(distinct, (count,), generator=generator)]
    labels = torch.randint(classes, (count,), generator=generator) if labeled else None
    groups = None if clips is None else torch.randint(clips, (count,), generator=generator)
    lists = neighbors(bank, k=k, labels=labels, groups=groups)
    assert lists.index.tolist() == by_definition(bank, k, labels, groups)
    assert torch.equal(lists.mask, lists.index >= 0)
    assert torch.equal(lists.mask, lists.similarity > -torch.inf)


def test_a_class_with_fewer_than_k_others_is_masked():
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    lists = neighbors(vectors(6), k=2, labels=labels)
    assert lists.mask.tolist() == [[True, True]] * 3 + [[True, False]] * 2 + [[False, False]]
    assert lists.index[3:].tolist() == [[4, -1], [3, -1], [-1, -1]]


def test_renumbering_the_rows_renumbers_the_lists():
    bank, labels = vectors(300, 6), torch.arange(300) % 4
    order = torch.randperm(300, generator=torch.Generator().manual_seed(1))
    lists, shuffled = neighbors(bank, k=3, labels=labels), neighbors(bank[order], k=3, labels=labels[order])
    assert torch.equal(order[shuffled.index], lists.index[order])


def test_queries_of_another_modality_find_the_class_of_their_clip_in_the_bank():
    bank, queries, labels = vectors(50), vectors(50, seed=1), torch.arange(50) % 5
    lists = neighbors(bank, queries, k=3, labels=labels)
    assert bool((labels[lists.index] == labels[:, None]).all())
    inside = neighbors(bank[labels == 2], queries[2:3], k=3)
    assert torch.equal((labels == 2).nonzero()[:, 0][inside.index], lists.index[2:3])


def test_lists_carry_no_gradient():
    bank = vectors(9).requires_grad_()
    assert not neighbors(bank, k=2).similarity.requires_grad


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": 0}, "k is 0; pass a whole number of at least 1"),
        (
            {"queries": torch.ones(3, 4)},
            r"shape \(6, 5\), but the queries have shape \(3, 4\); pass matrices of the same width",
        ),
        ({"queries": torch.ones(3, 5), "labels": torch.zeros(6)}, "there are 3 queries for 6 bank rows"),
        ({"queries": torch.full((3, 5), torch.nan)}, "NaN or infinity"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        neighbors(vectors(6), **({"k": 2} | arguments))


@given(
    count=st.integers(1, 40),
    classes=st.integers(1, 6),
    clips=st.one_of(st.none(), st.integers(1, 20)),
    k=st.integers(1, 7),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_random_neighbors_are_as_many_different_eligible_others_as_there_are(count, classes, clips, k, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (count,), generator=generator)
    groups = None if clips is None else torch.randint(clips, (count,), generator=generator)
    lists = random_neighbors(count, k=k, labels=labels, groups=groups, generator=generator)
    clip = range(count) if groups is None else groups
    for i in range(count):
        drawn = lists.index[i][lists.mask[i]].tolist()
        eligible = {j for j in range(count) if labels[j] == labels[i] and clip[j] != clip[i]}
        assert set(drawn) <= eligible
        assert len(set(drawn)) == len(drawn) == min(k, len(eligible))
        assert lists.index[i][~lists.mask[i]].tolist() == [-1] * (k - len(drawn))


@pytest.mark.slow
def test_random_neighbors_are_drawn_evenly():
    generator = torch.Generator().manual_seed(0)
    counts = torch.zeros(6, 6)
    for _ in range(3000):
        lists = random_neighbors(6, k=2, generator=generator)
        counts.scatter_add_(1, lists.index, torch.ones(6, 2))
    share = counts[~torch.eye(6, dtype=torch.bool)] / 3000
    assert float((share - 0.4).abs().max()) < 0.04  # 2 of 5 others; four standard deviations


def test_random_neighbors_repeat_with_the_seed():
    drawn = [random_neighbors(30, k=3, generator=torch.Generator().manual_seed(7)).index for _ in range(2)]
    assert torch.equal(*drawn)


def test_united_lists_hold_everybody_once():
    own = neighbors(vectors(30), k=3, labels=torch.arange(30) // 3)
    other = neighbors(vectors(30, seed=1), k=3, labels=torch.arange(30) // 3)
    both = united(own, other)
    assert torch.equal(both.index[:, :3], own.index)
    for i in range(30):
        held = both.index[i][both.mask[i]].tolist()
        assert sorted(held) == sorted(set(own.index[i].tolist() + other.index[i].tolist()) - {-1})
    assert torch.equal(both.mask, both.index >= 0)


def test_taking_rows_takes_whole_lists():
    lists = neighbors(vectors(9), k=2)
    taken = lists.take(torch.tensor([4, 0]))
    assert isinstance(taken, NeighborLists)
    assert len(taken) == 2
    assert torch.equal(taken.index, lists.index[[4, 0]])


def test_equals_the_definition_on_real_label_space_vectors(shared_data):
    with np.load(shared_data / "ave_label_space_embeddings" / "ave15_predictions_epoch500.npz") as file:
        vectors, labels = torch.from_numpy(file["audio"]), torch.from_numpy(file["label_inferred"])
    lists = neighbors(vectors, k=5, labels=labels)
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    cosine = (unit @ unit.T).masked_fill(labels[:, None] != labels[None], -2).fill_diagonal_(-2)
    best, index = cosine.sort(dim=1, descending=True, stable=True)
    apart = ((best[:, :5] - best[:, 1:6]) > 1e-11).all(1)
    assert float(apart.double().mean()) > 0.9
    assert torch.equal(lists.index[apart], index[apart, :5])
    torch.testing.assert_close(lists.similarity, best[:, :5], rtol=0, atol=1e-11)
