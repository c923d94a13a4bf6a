"""Losses and encoders under `torch.compile`, as one graph; aot_eager traces as every backend does."""

import inspect
from dataclasses import replace

import pytest
import torch
from torch import nn

from aadml.comparison import Comparison
from aadml.losses import LOSSES
from aadml.methods.networks import LabelSpaceEncoder, NetworkOptions

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),  # of torch, while it traces
]
ONE_GRAPH = tuple(name for name in LOSSES if name not in ("daml", "hdml"))


@pytest.mark.parametrize("name", ONE_GRAPH)
def test_a_step_from_inputs_to_gradients_is_one_graph_and_costs_the_same(name):
    torch.manual_seed(0)
    torch._dynamo.reset()
    options = NetworkOptions(hidden=(8,), dropout=0.0)
    encoders, labels = nn.ModuleList(LabelSpaceEncoder(d, 5, options) for d in (4, 6)), torch.arange(30) % 4
    audio, visual, loss = torch.randn(30, 4), torch.randn(30, 6), LOSSES[name]
    loss = loss(dimension=5, classes=4) if inspect.isclass(loss) else loss

    def step(audio, visual):
        vectors, pairs = (encoders[0](audio), encoders[1](visual)), labels
        if isinstance(loss, nn.Module):  # all vectors are anchors, and candidates are not used
            vectors, pairs = (torch.cat(vectors),) * 2, labels.repeat(2)
        comparison = Comparison.of_labels(*vectors, pairs, pairs)
        if name == "cross-clr":
            comparison = replace(comparison, within=torch.arange(30) % 2 == 0)
        return loss(comparison).total.sum()

    values, gradients = [], []
    for one in (step, torch.compile(step, fullgraph=True, backend="aot_eager")):
        values.append(one(audio, visual))
        gradients.append(torch.autograd.grad(values[-1], list(encoders.parameters())))
    assert torch.allclose(*values, rtol=1e-5)
    for ours, compiled in zip(*gradients, strict=True):
        assert torch.allclose(ours, compiled, rtol=1e-4, atol=1e-4)


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
