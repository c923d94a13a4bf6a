"""What every proxy must hold, present and future, as it comes: with its default options."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.ground.options import schema
from aadml.objective import Embedded
from aadml.objective.composition import Space, compose_objective
from aadml.proxies import PROXIES
from aadml.proxies.contract import TrainingSet
from tests.sections import typed

EVERY = sorted(PROXIES)
SIZE, DIMENSION = 24, 4
LABELS = torch.arange(SIZE) % 4

LEARNS_NOTHING = {
    "identity": "a clip stands for itself",
    "memory": "a clip stands for itself",
    "class-mean": "means have no parameters",
    "expansion": "a clip stands for itself",
}

every = pytest.mark.parametrize("name", EVERY)
few = settings(max_examples=15)
seeds = st.integers(0, 2**32 - 1)


def vectors(seed, count=SIZE, modalities=("audio", "visual")):
    generator = torch.Generator().manual_seed(seed)
    return {m: torch.randn(count, DIMENSION, generator=generator, dtype=torch.float64) for m in modalities}


def ready(name, bank, labels=LABELS, seed=0):
    """A proxy over a bank, in evaluation mode, as it is made from `seed`."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        proxy = PROXIES[name](DIMENSION, tuple(bank)).double().eval()
    proxy.refresh(TrainingSet(bank, labels, bank, torch.Generator().manual_seed(seed)))
    return proxy


def rows_of(bank, rows):
    return {m: values[rows] for m, values in bank.items()}


@every
def test_every_option_is_documented(name):
    assert all(option.sentence for option in schema(PROXIES[name]).values())


def compose(name, **options):
    space = Space(("audio", "visual"), DIMENSION, classes=4)
    return compose_objective(
        space, **typed(loss="triplet", proxy={"name": name} | options), directions=("audio-visual", "visual-audio")
    )


@every
@pytest.mark.parametrize("modalities", [("audio", "visual"), ("text", "audio"), ("audio", "visual", "text")])
def test_a_proxy_has_the_shape_and_type_of_its_clip_in_every_modality(name, modalities):
    bank = vectors(0, modalities=modalities)
    found = ready(name, bank)(rows_of(bank, torch.arange(5)), torch.arange(5))
    assert found.keys() == bank.keys()
    for values in found.values():
        assert values.shape == (5, DIMENSION)
        assert values.dtype == torch.float64
        assert torch.isfinite(values).all()


@every
@few
@given(seed=seeds)
def test_the_order_of_a_batch_is_irrelevant(name, seed):
    bank = vectors(seed)
    proxy, rows = ready(name, bank), torch.randperm(SIZE, generator=torch.Generator().manual_seed(seed))[:7]
    straight = proxy(rows_of(bank, rows), rows)
    reverse = proxy(rows_of(bank, rows.flip(0)), rows.flip(0))
    for m in bank:
        torch.testing.assert_close(reverse[m].flip(0), straight[m])


@every
@few
@given(seed=seeds)
def test_a_clip_is_seen_without_regard_to_the_clips_beside_it(name, seed):
    bank = vectors(seed)
    proxy, rows = ready(name, bank), torch.arange(6)
    together = proxy(rows_of(bank, rows), rows)
    for row in rows.split(1):
        alone = proxy(rows_of(bank, row), row)
        for m in bank:
            torch.testing.assert_close(alone[m][0], together[m][row[0]])


@every
@few
@given(seed=seeds)
def test_gradients_are_finite_and_reach_every_clip_through_its_own_proxy_alone(name, seed):
    bank, rows = vectors(seed), torch.arange(6)
    proxy = ready(name, bank)
    for m in bank:
        points = {side: values.requires_grad_() for side, values in rows_of(bank, rows).items()}
        proxy(points, rows)[m][2].square().sum().backward()
        gradient = points[m].grad
        assert torch.isfinite(gradient).all()
        assert gradient[2].any()
        assert not gradient[[0, 1, 3, 4, 5]].any()


@every
@few
@given(seed=seeds)
def test_a_new_item_is_seen_alone_without_a_label_and_without_its_partner(name, seed):
    bank, new = vectors(seed), vectors(seed + 1, count=5)
    proxy = ready(name, bank)
    other = ready(name, bank, labels=LABELS.flip(0))
    for m, values in new.items():
        together = proxy.from_bank(values, m, k=2)
        assert together.shape == values.shape
        torch.testing.assert_close(torch.cat([proxy.from_bank(row, m, k=2) for row in values.split(1)]), together)
        torch.testing.assert_close(other.from_bank(values, m, k=2), together)


@every
def test_the_same_seed_makes_the_same_proxy_and_draws_after_are_left_alone(name):
    bank, rows = vectors(3), torch.arange(6)
    first, second = (ready(name, bank, seed=1)(rows_of(bank, rows), rows) for _ in range(2))
    assert all(torch.equal(first[m], second[m]) for m in bank)
    proxy = ready(name, bank)
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    proxy(rows_of(bank, rows), rows)
    assert torch.equal(torch.rand(3), expected)


@every
def test_what_was_learned_is_all_in_the_state(name):
    bank, rows = vectors(4), torch.arange(6)
    one, other = ready(name, bank, seed=1), ready(name, bank, seed=2)
    assert bool(list(one.parameters())) is (name not in LEARNS_NOTHING)
    other.load_state_dict(one.state_dict())
    for m, values in one(rows_of(bank, rows), rows).items():
        assert torch.equal(other(rows_of(bank, rows), rows)[m], values)


@every
def test_labels_are_not_needed_where_there_are_none(name):
    bank, rows = vectors(5), torch.arange(4)
    found = ready(name, bank, labels=None)(rows_of(bank, rows), rows)
    assert all(torch.isfinite(values).all() for values in found.values())


@every
def test_an_objective_takes_it_by_name_and_trains_through_it(name):
    objective, bank, rows = compose(name).double(), vectors(6), torch.arange(SIZE)
    if objective.proxy is not None:
        objective.proxy.refresh(TrainingSet(bank, LABELS, bank, torch.Generator().manual_seed(0)))
        assert objective.proxy.aa_on in ("all", "anchor", "reference")
        assert 0 <= objective.proxy.aa_mix <= 1
    points = {m: values.clone().requires_grad_() for m, values in bank.items()}
    objective(Embedded(points, LABELS, rows), torch.Generator().manual_seed(0))["loss"].backward()
    assert all(torch.isfinite(values.grad).all() and values.grad.any() for values in points.values())


def test_every_exception_names_a_proxy():
    assert LEARNS_NOTHING.keys() <= PROXIES.keys()
