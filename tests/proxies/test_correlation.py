import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.contract import TrainingSet
from aadml.proxies.correlation import CorrelationGraph, GraphOptions
from aadml.proxies.graph import neighbors

MODALITIES = ("audio", "visual")
COUNT = 40
LABELS = torch.arange(COUNT) % 4
ROWS = torch.tensor([5, 0, 39, 17])


def vectors(seed=0, dimension=5):
    generator = torch.Generator().manual_seed(seed)
    return {m: torch.randn(COUNT, dimension, generator=generator) for m in MODALITIES}


def lists(bank, labels=LABELS, inputs=None, groups=None, seed=0, **options):
    graph = CorrelationGraph(MODALITIES, GraphOptions(**options))
    graph.refresh(TrainingSet(bank, labels, inputs, torch.Generator().manual_seed(seed), groups))
    return graph.lists(ROWS, {m: v[ROWS] for m, v in bank.items()})


def same(found, expected) -> bool:
    return all(torch.equal(found[m].index, expected[m].index[ROWS]) for m in MODALITIES)


def test_neighbors_are_nearest_of_the_class_in_the_bank():
    bank = vectors()
    assert same(lists(bank), {m: neighbors(v, k=3, labels=LABELS) for m, v in bank.items()})


def test_without_labels_all_clips_may_be_neighbors():
    bank = vectors()
    assert same(lists(bank, labels=None), {m: neighbors(v, k=3) for m, v in bank.items()})


def test_a_cross_graph_compares_an_anchor_with_the_other_modality():
    bank = vectors()
    found = lists(bank, graph_modality="cross")
    for modality, other in (MODALITIES, MODALITIES[::-1]):
        for place, row in enumerate(ROWS.tolist()):
            cosine = torch.cosine_similarity(bank[modality][row], bank[other], dim=1)
            allowed = [i for i in range(COUNT) if LABELS[i] == LABELS[row] and i != row]
            assert found[modality].index[place].tolist() == sorted(allowed, key=lambda i: -cosine[i])[:3]


def test_random_neighbors_need_draws():
    graph = CorrelationGraph(MODALITIES, GraphOptions(neighbors="random"))
    with pytest.raises(InputError, match="random neighbors need a generator"):
        graph.refresh(TrainingSet(vectors(), LABELS, None, None, None))
    ours, again, other = (lists(vectors(), neighbors="random", seed=seed)["audio"].index for seed in (0, 0, 1))
    assert torch.equal(ours, again)
    assert not torch.equal(ours, other)
    assert (LABELS[ours] == LABELS[ROWS][:, None]).all()


def test_captions_of_one_clip_are_never_neighbors():
    bank, groups = vectors(), torch.arange(COUNT) // 5
    found = lists(bank, labels=None, groups=groups)
    assert same(found, {m: neighbors(v, k=3, groups=groups) for m, v in bank.items()})
    assert bool((groups[found["audio"].index] != groups[ROWS][:, None]).all())


def test_embedding_space_follows_the_bank_though_the_inputs_stay():
    inputs = vectors(1)
    graph = CorrelationGraph(MODALITIES, GraphOptions())
    graph.refresh(TrainingSet(vectors(), LABELS, inputs, None, None))
    graph.refresh(TrainingSet(vectors(3), LABELS, inputs, None, None))
    found = graph.lists(ROWS, vectors(3))["audio"].index
    assert torch.equal(found, lists(vectors(3))["audio"].index)
    assert not torch.equal(found, lists(vectors())["audio"].index)


def test_input_space_compares_features_and_looks_once(monkeypatch):
    bank, inputs = vectors(), {"audio": vectors(1)["audio"], "visual": vectors(2, 9)["visual"]}
    assert same(
        lists(bank, inputs=inputs, space="input"), {m: neighbors(v, k=3, labels=LABELS) for m, v in inputs.items()}
    )
    graph = CorrelationGraph(MODALITIES, GraphOptions(space="input"))
    graph.refresh(TrainingSet(bank, LABELS, inputs, None, None))
    first = graph.lists(ROWS, bank)
    calls = []
    monkeypatch.setattr("aadml.proxies.correlation.neighbors", lambda *a, **o: calls.append(1) or neighbors(*a, **o))
    graph.refresh(TrainingSet(vectors(3), LABELS.clone(), inputs, None, None))
    assert not calls
    assert torch.equal(graph.lists(ROWS, bank)["audio"].index, first["audio"].index)
    assert torch.equal(graph.bank["audio"], vectors(3)["audio"])
    graph.refresh(TrainingSet(bank, LABELS.flip(0), inputs, None, None))
    assert len(calls) == 2
    graph.refresh(TrainingSet(bank, LABELS.flip(0), {m: v.clone() for m, v in inputs.items()}, None, None))
    assert len(calls) == 4


@pytest.mark.parametrize("known", ["labels", "groups"])
def test_what_becomes_known_of_the_same_features_makes_new_lists(known):
    bank, codes = vectors(), {"labels": None, "groups": None}
    graph = CorrelationGraph(MODALITIES, GraphOptions(space="input"))
    for given in (codes, {**codes, known: LABELS}, codes):
        graph.refresh(TrainingSet(bank, given["labels"], bank, None, given["groups"]))
        assert same(graph.lists(ROWS, bank), {m: neighbors(v, k=3, **given) for m, v in bank.items()})


def test_embedding_lists_follow_every_refresh():
    graph = CorrelationGraph(MODALITIES, GraphOptions())
    for seed in range(2):
        graph.refresh(TrainingSet(vectors(seed), LABELS, None, None, None))
        expected = {m: neighbors(v, k=3, labels=LABELS) for m, v in vectors(seed).items()}
        assert same(graph.lists(ROWS, vectors(seed)), expected)


def test_random_neighbors_are_drawn_anew_at_every_refresh_and_repeat_with_the_seed():
    bank = vectors()
    once, again, other = (lists(bank, neighbors="random", seed=seed)["audio"].index for seed in (0, 0, 1))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    assert bool((LABELS[once] == LABELS[ROWS][:, None]).all())


def test_the_bank_is_detached():
    bank = {m: v.requires_grad_() for m, v in vectors().items()}
    graph = CorrelationGraph(MODALITIES, GraphOptions())
    graph.refresh(TrainingSet(bank, LABELS, None, None, None))
    assert not any(v.requires_grad for v in graph.bank.values())


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"k": 10}, {}, "k is 10, but the largest class has 10 clips; pass at most 9"),
        ({}, {"labels": torch.arange(len(LABELS))}, "the largest class has 1 clip; choose data with more clips"),
        ({"k": 40}, {"labels": None}, "the training set has 40 clips; pass at most 39"),
        ({"neighbors": "random"}, {"generator": None}, "random neighbors need a generator"),
        ({"space": "input"}, {"inputs": None}, "needs features in memory"),
    ],
)
def test_what_is_missing_or_too_much_is_said(options, arguments, message):
    graph = CorrelationGraph(MODALITIES, GraphOptions(**options))
    given = {"labels": LABELS, "inputs": vectors(), "generator": torch.Generator(), "groups": None} | arguments
    with pytest.raises(InputError, match=message):
        graph.refresh(TrainingSet(vectors(), **given))


def test_lists_before_any_refresh_are_refused():
    graph = CorrelationGraph(MODALITIES, GraphOptions())
    graph.remember(vectors())
    with pytest.raises(InputError, match="no neighbor lists yet"):
        graph.lists(ROWS, vectors())
