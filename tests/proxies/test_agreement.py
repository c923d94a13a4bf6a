"""Neighbors on which modalities agree: the least cosine of all, by loops."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies import exact_search
from aadml.proxies.contract import TrainingSet
from aadml.proxies.correlation import CorrelationGraph, GraphOptions
from aadml.proxies.graph import agreeing_neighbors, neighbors


def vectors(count, dimension, seed):
    return torch.randn(count, dimension, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_definition(modalities, k, labels, groups):
    cosines = [
        torch.nn.functional.normalize(one, dim=1) @ torch.nn.functional.normalize(one, dim=1).T for one in modalities
    ]
    lists = []
    for i in range(len(modalities[0])):
        least = {j: round(min(float(c[i, j]) for c in cosines), 12) for j in range(len(modalities[0]))}
        allowed = [j for j in least if groups[j] != groups[i] and labels[j] == labels[i]]
        ranked = sorted(allowed, key=lambda j: (-least[j], j))[:k]
        lists.append(ranked + [-1] * (k - len(ranked)))
    return lists


@given(
    count=st.integers(1, 40),
    k=st.integers(1, 7),
    classes=st.integers(1, 4),
    clips=st.integers(1, 40),
    distinct=st.integers(1, 40),
    slack=st.sampled_from([0, 8]),
    narrow=st.sampled_from([-1000, 1024]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None)
def test_equals_the_definition_with_ties_classes_and_duplicates(
    count, k, classes, clips, distinct, slack, narrow, seed
):
    random = torch.Generator().manual_seed(seed)
    pick = torch.randint(distinct, (count,), generator=random)
    modalities = [vectors(distinct, 3, seed)[pick], vectors(distinct, 5, seed + 1)[pick]]
    labels = torch.randint(classes, (count,), generator=random)
    groups = torch.randint(clips, (count,), generator=random)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_search, "SLACK_ITEMS", slack)
        patch.setattr(exact_search, "NARROW", narrow)
        patch.setattr(exact_search, "WIDE", narrow)
        lists = agreeing_neighbors(modalities, k=k, labels=labels, groups=groups)
    assert lists.index.tolist() == by_definition(modalities, k, labels.tolist(), groups.tolist())
    assert torch.equal(lists.mask, lists.index >= 0)


def test_of_one_modality_they_are_its_neighbors():
    bank = vectors(300, 6, 0).float()
    ours, plain = agreeing_neighbors([bank], k=5), neighbors(bank, k=5)
    assert torch.equal(ours.index, plain.index)
    torch.testing.assert_close(ours.similarity, plain.similarity)


def test_the_graph_gives_every_modality_the_same_lists():
    graph = CorrelationGraph(("audio", "visual"), GraphOptions(k=4, graph_modality="agreeing"))
    bank = {"audio": vectors(50, 4, 0), "visual": vectors(50, 4, 1)}
    graph.refresh(TrainingSet(bank, None, None, None, None))
    lists = graph.lists(torch.arange(50), bank)
    assert torch.equal(lists["audio"].index, lists["visual"].index)
    assert torch.equal(lists["audio"].index, agreeing_neighbors(list(bank.values()), k=4).index)


@pytest.mark.parametrize(
    ("given", "k", "message"),
    [
        ([torch.ones(3, 2)], 0, "k is 0; pass a whole number of at least 1"),
        ([torch.ones(3, 2), torch.ones(4, 2)], 1, "the same clips"),
        ([torch.full((3, 2), torch.nan)], 1, "NaN"),
    ],
)
def test_what_has_no_neighbors_is_refused(given, k, message):
    with pytest.raises(InputError, match=message):
        agreeing_neighbors(given, k=k)
