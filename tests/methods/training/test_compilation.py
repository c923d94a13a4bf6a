"""`training.compile`: equal results, steps that stay uncompiled, and methods and losses that cannot be compiled."""

import math
from functools import partial

import pytest
import torch

from aadml.comparison import Comparison, Terms
from aadml.configuration.from_arguments import assemble
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import LOSSES
from aadml.objective.composition import LossSection
from aadml.objective.embedded import Embedded
from aadml.objective.objective import Objective, compiled
from aadml.runs.prepare import prepare

SMALL = {"training.epochs": 2, "training.batch": 20, "training.learning_rate": 0.005}


def trained(features, name, compiles, **chosen):
    settings = SMALL | {"training.compile": compiles}
    prepared = prepare(assemble(data=features, settings=settings, loss=name, **chosen))
    prepared.model.method.fit(prepared.splits.train, prepared.splits.valid)
    return prepared.model.method.state()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch, while it traces
@pytest.mark.parametrize("name", ["aa-hard-triplet", "xbm-contrastive", "proxy-anchor"])
def test_compiled_losses_train_the_same_weights(features, name):
    torch._dynamo.reset()
    eager, compiled = trained(features, name, compiles=False), trained(features, name, compiles=True)
    assert all(torch.allclose(eager[key], compiled[key], atol=1e-4) for key in eager)


@pytest.mark.filterwarnings("ignore")  # of torch, while it traces
@pytest.mark.parametrize("name", ["nt-xent", "dsl", "posterior-nca"])
def test_a_loss_with_a_learned_temperature_is_one_graph(features, name, monkeypatch):
    torch._dynamo.reset()
    traced = partial(torch.compile, backend="eager")
    monkeypatch.setattr(torch, "compile", traced)
    eager, compiled = (trained(features, name, compiles=compiles, method="pairs") for compiles in (False, True))
    start = math.log(1 / LossSection.of(name).options.temperature)
    assert abs(compiled["matching.log_scale"] - start) > 1e-4
    assert all(torch.allclose(eager[key], compiled[key], atol=1e-4) for key in eager)


@pytest.mark.filterwarnings("ignore")  # of torch, while it traces
def test_a_study_may_compile_a_loss_with_more_values_of_an_option_than_graphs_of_one_function(monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    vectors, labels = torch.randn(2, 12, 4), torch.arange(12) % 3
    comparison = Comparison.of_labels(*vectors, labels, labels)
    for number in range(getattr(torch._dynamo.config, "recompile_limit", 8) + 2):
        loss = partial(LOSSES["contrastive"], margin=1 + number / 8)
        assert torch.allclose(compiled(loss)(comparison).total, loss(comparison).total, rtol=1e-5)


@pytest.mark.filterwarnings("ignore")  # of torch, while it traces
def test_a_compiled_loss_with_a_total_of_another_shape_is_refused(monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))

    def scalar(comparison):
        terms = LOSSES["contrastive"](comparison)
        return Terms(terms.total.sum(), terms.active, terms.possible)

    labels = torch.arange(12) % 3
    vectors = {name: torch.randn(12, 4, requires_grad=True) for name in ("audio", "visual")}
    batch = Embedded(vectors, labels, torch.arange(12))
    objective = Objective(scalar, lambda comparison, generator: comparison, None, directions=["audio-visual"])
    objective.compiled = True
    with pytest.raises(InputError, match=r"total.*Tensor of shape \(12,\)"):
        objective(batch, torch.Generator())


@pytest.mark.filterwarnings("ignore")  # of torch, while it traces
def test_a_compiled_loss_without_terms_needs_no_gradient(monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    nothing = torch.zeros(12)
    labels, vectors = (
        torch.arange(12) % 3,
        {name: torch.randn(12, 4, requires_grad=True) for name in ("audio", "visual")},
    )
    terms = Terms(nothing, nothing.long(), nothing.long())
    objective = Objective(lambda _: terms, lambda comparison, _: comparison, None, directions=["audio-visual"])
    objective.compiled = True
    assert objective(Embedded(vectors, labels, torch.arange(12)), torch.Generator())["loss"] == 0


def test_the_steps_that_compute_gradients_twice_are_not_compiled(features, monkeypatch):
    sizes = []

    def compiled(loss, *, fullgraph):
        assert fullgraph
        return lambda comparison: (sizes.append(len(comparison.anchors)), loss(comparison))[1]

    monkeypatch.setattr(torch, "compile", compiled)
    weights = trained(features, "aa-triplet", compiles=True)
    assert (
        sizes == [20] * 2 * 2 * 2 * 2
    )  # the last two of three batches of two epochs, two directions, proxies and clips
    assert all(
        torch.equal(weights[key], value) for key, value in trained(features, "aa-triplet", compiles=False).items()
    )


def test_a_method_or_a_loss_that_cannot_be_compiled_is_refused_before_training(features):
    with pytest.raises(InputError, match=r"training\.compile is true, but this method has no metric loss"):
        prepare(assemble(data=features, method="acmr", settings={"training.compile": True}))
    with pytest.raises(InputError, match=r"training\.compile is true, but a loss with a generator cannot be compiled"):
        prepare(assemble(data=features, loss="daml-triplet", settings={"training.compile": True}))


def test_what_the_compiler_cannot_follow_is_an_input_error(features, monkeypatch):
    def fails(comparison):
        raise torch._dynamo.exc.Unsupported("a branch on data\nfar below")

    monkeypatch.setattr(torch, "compile", lambda loss, *, fullgraph: fails)
    with pytest.raises(InputError, match=r"training\.compile: the loss cannot be compiled \(a branch on data"):
        trained(features, "aa-triplet", compiles=True)


@pytest.mark.filterwarnings("ignore")  # of torch, while it traces
@pytest.mark.parametrize("score", ["squared_distance", "distance", "dot", "cosine"])
def test_a_loss_of_any_score_of_a_comparison_can_be_compiled(monkeypatch, score):
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))

    def by_score(comparison):
        total = ((1 - getattr(comparison, score)) * comparison.positives).sum(1)
        return Terms(total, (total != 0).long(), comparison.positives.sum(1))

    labels = torch.arange(12) % 3
    vectors = {name: torch.randn(12, 4, requires_grad=True) for name in ("audio", "visual")}
    objective = Objective(by_score, lambda comparison, _: comparison, None, directions=["audio-visual"])
    losses = []
    for objective.compiled in (False, True):
        losses.append(objective(Embedded(vectors, labels, torch.arange(12)), torch.Generator())["loss"])
    assert torch.equal(*losses)
