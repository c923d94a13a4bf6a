"""Losses and encoders under `torch.compile`, as one graph; aot_eager traces as every backend does."""

import inspect
from dataclasses import replace
from functools import partial

import pytest
import torch
from functorch.compile import make_boxed_func
from torch import nn
from torch._dynamo.backends.common import aot_autograd

from aadml.comparison import Comparison
from aadml.losses import LOSSES
from aadml.methods.networks import LabelSpaceEncoder, NetworkOptions
from aadml.objective.objective import compiled

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        tuple(map(int, torch.__version__.split(".")[:2])) < (2, 11),
        reason="earlier versions cannot trace a comparison that the step itself builds, unlike `training.compile`",
    ),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),  # of torch, while it traces
]
ONE_GRAPH = tuple(name for name in LOSSES if name not in ("daml", "hdml"))


def steps_of(name, device, backend):
    """Return the value and the gradients of a step, from inputs to weights: eager, and compiled as one graph."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    options = NetworkOptions(hidden=(8,), dropout=0.0)
    encoders = nn.ModuleList(LabelSpaceEncoder(d, 5, options) for d in (4, 6)).to(device)
    audio, visual, loss = torch.randn(30, 4).to(device), torch.randn(30, 6).to(device), LOSSES[name]
    loss = loss(dimension=5, classes=4).to(device) if inspect.isclass(loss) else loss
    labels = torch.arange(30, device=device) % 4

    def step(audio, visual):
        vectors, pairs = (encoders[0](audio), encoders[1](visual)), labels
        if isinstance(loss, nn.Module):  # all vectors are anchors, and candidates are not used
            vectors, pairs = (torch.cat(vectors),) * 2, labels.repeat(2)
        comparison = Comparison.of_labels(*vectors, pairs, pairs)
        if name == "cross-clr":
            comparison = replace(comparison, within=torch.arange(30, device=device) % 2 == 0)
        return loss(comparison).total.sum()

    values = [one(audio, visual) for one in (step, torch.compile(step, fullgraph=True, backend=backend))]
    return values, [torch.autograd.grad(value, list(encoders.parameters())) for value in values]


@pytest.mark.parametrize("name", ONE_GRAPH)
@pytest.mark.parametrize(
    ("device", "backend"), [("cpu", "aot_eager"), pytest.param("cuda", "inductor", marks=pytest.mark.gpu)]
)
def test_a_step_from_inputs_to_gradients_is_one_graph_and_costs_the_same(name, device, backend):
    values, gradients = steps_of(name, device, backend)
    assert torch.allclose(*values, rtol=1e-5)
    for ours, other in zip(*gradients, strict=True):
        assert torch.allclose(ours, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_a_comparison_of_vectors_costs_the_same(name, monkeypatch):
    """The graphs of `training.compile` begin with a comparison."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    torch.manual_seed(0)
    torch._dynamo.reset()
    points = [torch.randn(30, 5, requires_grad=True) for _ in range(2)]
    labels, loss = torch.arange(30) % 4, LOSSES[name]
    loss = loss(dimension=5, classes=4) if inspect.isclass(loss) else loss
    comparison = Comparison.of_labels(*points, labels, labels)
    if name == "cross-clr":
        comparison = replace(comparison, within=torch.arange(30) % 2 == 0)

    def total(comparison):
        return loss(comparison).total.sum()

    totals = total(comparison), compiled(total)(comparison)
    # proxies replace the candidates, which then have no gradient
    gradients = [torch.autograd.grad(value, points, allow_unused=True) for value in totals]
    assert torch.allclose(*totals, rtol=1e-5)
    for ours, other in zip(*gradients, strict=True):
        assert ours is other is None or torch.allclose(ours, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_no_product_has_a_factor_of_zero_because_a_compiler_multiplies_what_is_not_initialized(name):
    products = []

    def collect(graph, _):
        products.extend(node for node in graph.graph.nodes if "addmm" in str(node.target))
        return make_boxed_func(graph.forward)

    steps_of(name, "cpu", aot_autograd(fw_compiler=collect, bw_compiler=collect))
    assert products  # those of the encoders
    assert not [node for node in products if node.kwargs.get("beta") == 0]


def test_an_encoder_that_drops_units_is_one_graph():
    torch._dynamo.reset()
    encoder, inputs = LabelSpaceEncoder(4, 5, NetworkOptions(hidden=(8, 8), dropout=0.5)), torch.randn(30, 4)
    compiled = torch.compile(encoder, fullgraph=True, backend="aot_eager")
    outputs = compiled(inputs)
    outputs.sum().backward()
    assert not torch.equal(outputs, compiled(inputs))


@pytest.mark.parametrize("name", ["angular", "n-pair", "ranking"])
def test_anchors_that_are_the_candidates_compile_too(name):
    torch.manual_seed(0)
    torch._dynamo.reset()
    vectors, labels = torch.randn(12, 5, requires_grad=True), torch.arange(12) % 4
    comparison = Comparison.of_labels(vectors, vectors, labels, labels, itself=torch.arange(12))
    gradients = [
        torch.autograd.grad(loss(comparison).total.sum(), vectors)[0]
        for loss in (LOSSES[name], torch.compile(LOSSES[name], fullgraph=True, backend="aot_eager"))
    ]
    assert torch.allclose(*gradients, rtol=1e-4, atol=1e-4)
