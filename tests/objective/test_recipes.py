import pytest
import torch
from torch import nn

from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import LOSSES
from aadml.objective import Embedded
from aadml.objective.composition import Space, compose_objective
from aadml.objective.left_out import rebuilding
from aadml.objective.recipes import RECIPES
from tests.sections import typed

ACROSS = ("audio-text", "text-audio")
COUNT, WIDTH, FEATURES = 12, 4, 5


def composed(name, relation="label"):
    """The objective that a recipe stands for, of audio and text, and a batch for it."""
    recipe = RECIPES[name]
    torch.manual_seed(0)
    objective = compose_objective(
        Space(("audio", "text"), WIDTH, FEATURES, 4),
        **typed(loss=recipe.loss, selection=recipe.selection or "all"),
        directions=recipe.directions or ACROSS,
    )
    random = torch.Generator().manual_seed(1)
    sides = {m: torch.randn(COUNT, WIDTH, generator=random, requires_grad=True) for m in ("audio", "text")}
    groups = torch.arange(COUNT) % 4 if relation == "label" else torch.arange(COUNT) // 2
    return objective, Embedded(vectors=sides, groups=groups, index=torch.arange(COUNT), relation=relation)


def score(name, relation="id"):
    objective, batch = composed(name, relation)
    return objective(batch, torch.Generator().manual_seed(0))["loss"].item(), batch


PLAIN = [name for name, recipe in RECIPES.items() if not isinstance(LOSSES[recipe.loss["name"]], type(nn.Module))]


@pytest.mark.parametrize("name", RECIPES)
def test_names_a_loss_and_its_options(name):
    assert RECIPES[name].loss["name"] in LOSSES
    assert RECIPES[name].description
    composed(name)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("relation", ["label", "id"])
def test_trains_by_label_and_by_id(name, relation):
    objective, batch = composed(name, relation)
    loss = objective(batch, torch.Generator().manual_seed(0))["loss"]
    assert loss > 0
    gradients = torch.autograd.grad(loss, list(batch.vectors.values()))
    assert all(torch.isfinite(g).all() for g in gradients)
    assert any(g.any() for g in gradients)


def hinges(batch, hardest):
    """Mean over i of the hinges of both directions at margin 0.2, as loops; captions of the same clip left out."""
    x, r = (v.detach().double() / v.detach().double().norm(dim=1, keepdim=True) for v in batch.vectors.values())
    s = x @ r.T
    total = 0.0
    for matrix in (s, s.T):
        for i in range(COUNT):
            others = [
                max(0.0, float(0.2 + matrix[i, j] - matrix[i, i]))
                for j in range(COUNT)
                if batch.groups[i] != batch.groups[j]
            ]
            total += max(others) if hardest else sum(others)
    return total / COUNT


def test_triplet_sum_is_the_sum_of_all_hinges_over_the_batch():
    loss, batch = score("triplet-sum")
    assert loss == pytest.approx(hinges(batch, hardest=False), rel=1e-5)


def test_triplet_max_is_the_hardest_hinge():
    loss, batch = score("triplet-max")
    assert loss == pytest.approx(hinges(batch, hardest=True), rel=1e-5)


def test_dsml_is_another_name_of_daml():
    for form in ("triplet", "contrastive", "n-pair"):
        assert RECIPES[f"dsml-{form}"].loss == RECIPES[f"daml-{form}"].loss


def test_n_pair_is_cross_entropy_over_one_pair_a_class():
    recipe = RECIPES["n-pair"]
    assert recipe.selection == {"name": "one-pair-a-class"}
    objective, batch = composed("n-pair")
    kept = [
        objective.selection(comparison, torch.Generator().manual_seed(3)) for comparison in objective.comparisons(batch)
    ]
    for comparison in kept:
        assert len(comparison.anchors) == 4
        chosen = comparison.positives.int().argmax(1)
        logits = comparison.dot[:, chosen]
        expected = nn.functional.cross_entropy(logits, torch.arange(4), reduction="none")
        assert torch.allclose(objective.losses[0](comparison).total, expected, atol=1e-5)


def test_a_loss_with_a_generator_has_one_a_direction_and_others_are_shared():
    objective, _ = composed("daml-triplet")
    there, back = objective.losses
    assert {id(p) for p in there.parameters()}.isdisjoint({id(p) for p in back.parameters()})
    assert {id(p) for p in objective.parameters()} == {id(p) for p in [*there.parameters(), *back.parameters()]}
    plain, _ = composed("complete-triplet")
    assert not list(plain.parameters())


@pytest.mark.parametrize("name", ["proxy-nca", "soft-triple", "arcface", "proxy-anchor"])
def test_a_space_of_which_no_classes_are_told_has_none(name):
    with pytest.raises(InputError, match="classes"):
        compose_objective(Space(("audio", "text"), WIDTH), **typed(loss=name), directions=["audio-text"])


@pytest.mark.parametrize("wrong", ["a-t", "ALL", "aardvark", "audio"])
def test_a_direction_that_is_none_is_refused_and_not_taken_for_all(wrong):
    with pytest.raises(InputError, match="directions: "):
        compose_objective(Space(("audio", "text"), WIDTH), **typed(loss="triplet"), directions=[wrong])


@pytest.mark.parametrize("name", ["daml", "hdml"])
def test_a_loss_that_makes_up_features_is_refused_where_there_are_none(name):
    with pytest.raises(InputError, match=f"loss: {name} generates features of a last layer"):
        compose_objective(Space(("audio", "text"), 4, classes=3), **typed(loss=name), directions=["all"])
    space = Space(("audio", "text"), 4, 8, 3)
    assert compose_objective(space, **typed(loss=name), directions=["all"])
    assert compose_objective(space, **typed(loss=name), directions=["both-text"])
    with pytest.raises(InputError, match=f"directions: {name} generates candidates of one modality, but both-both"):
        compose_objective(space, **typed(loss=name), directions=["both-both"])
    for proxy in ("expansion", "memory"):
        with pytest.raises(InputError, match=f"loss: {name} needs features of all candidates, .* another proxy"):
            compose_objective(space, **typed(loss=name, proxy=proxy), directions=["all"])


@pytest.mark.parametrize("proxy", ["expansion", "memory"])
@pytest.mark.parametrize("name", ["proxy-nca", "soft-triple", "arcface", "proxy-anchor"])
def test_a_loss_that_reads_no_candidates_is_refused_beside_a_proxy_that_appends_some(name, proxy):
    space, sections = Space(("audio", "text"), WIDTH, classes=3), typed(loss=name, proxy=proxy)
    with pytest.raises(InputError, match=f"loss: {name} compares anchors .* the proxy {proxy} only appends candidates"):
        compose_objective(space, **sections)
    with rebuilding():
        assert compose_objective(space, **sections)


def test_cross_clr_is_refused_beside_candidates_without_a_modality():
    space = Space(("audio", "text"), WIDTH, classes=3)
    with pytest.raises(InputError, match=r"loss: cross-clr reads the modality of each candidate, .* proxy expansion"):
        compose_objective(space, **typed(loss="cross-clr", proxy="expansion"))
    assert compose_objective(space, **typed(loss="cross-clr", proxy="memory"))
