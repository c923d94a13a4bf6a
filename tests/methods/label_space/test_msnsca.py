"""MSNSCA: scales of one item attend to each other; no other item, no partner is there."""

import math

import pytest
import torch
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.label_space.scales import ItemAttention, ScaleNetwork
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 7}, 3)


def learner(**options):
    torch.manual_seed(0)
    small = {"dimension": 4, "width": 12, "visual_hidden": 6, "dropout": 0.0}
    return METHODS["msnsca"](CONTEXT, Training(), **(small | options)).learner


def batch(b=7):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, Epoch("train", 0, 1))


def test_a_vector_of_128_has_three_tokens_of_128():
    """Lengths as published: 65 after the strided convolution, 32 and 16 after pooling, 1 at the end."""
    network = ScaleNetwork(128)
    lengths = []
    for module in (*network.stem, *network.branches[1]):
        module.register_forward_hook(lambda _module, _inputs, output: lengths.append(output.shape[2]))
    with torch.no_grad():
        assert network(torch.randn(2, 128)).shape == (2, 3, 128)
    assert lengths == [65, 32, 32, 16, 16, 1]


@pytest.mark.parametrize("dimension", [8, 9, 64])
def test_short_vectors_have_tokens_too(dimension):
    with torch.no_grad():
        assert torch.isfinite(ScaleNetwork(6)(torch.randn(2, dimension))).all()


@torch.no_grad()
def test_attention_is_its_definition():
    torch.manual_seed(0)
    attention, queries, tokens = ItemAttention(6), torch.randn(2, 2, 6), torch.randn(2, 3, 6)
    found = attention(queries, tokens)
    for item in range(2):
        q, k, v = attention.query(queries[item]), attention.key(tokens[item]), attention.value(tokens[item])
        for row in range(2):
            weights = torch.softmax(torch.tensor([float(q[row] @ t) / math.sqrt(6) for t in k]), 0)
            torch.testing.assert_close(found[item, row], queries[item, row] + attention.output(weights @ v))


def test_an_item_depends_on_no_other_item():
    one, given = learner().eval(), batch()
    features = given.features["visual"].clone().requires_grad_()
    one.embed(features, "visual")[2].square().sum().backward()
    moved = features.grad.abs().sum(1) > 0
    assert moved.tolist() == [row == 2 for row in range(7)]


def test_every_scale_counts():
    one, given = learner(), batch()
    one.embed(given.features["audio"], "audio").square().sum().backward()
    for branch in one.scales["audio"].branches:
        assert branch[0].weight.grad.abs().max() > 0
    assert one.across_scales.query.weight.grad.abs().max() > 0


def test_the_loss_is_the_sum_of_its_terms():
    one, given = learner(center_weight=0.25).eval(), batch()
    assert one.weights == {"label": 1.0, "apart": 0.1, "center": 0.25}
    one.weights |= {"label": 0.5, "apart": 2.0}
    z = {m: one.embed(given.features[m], m) for m in CONTEXT.modalities}
    expected = 2.0 * sum((x - y).norm() for x, y in zip(z["audio"], z["visual"], strict=True)) / 7
    for m, values in z.items():
        expected = expected + 0.5 * F.cross_entropy(one.classifiers[m](values), given.labels)
        squares = [(x - one.centers[c]).square().sum() / 2 for x, c in zip(values, given.labels.tolist(), strict=True)]
        expected = expected + 0.25 * sum(squares) / 7
    loss = one.players()["all"].loss(given)["loss"]
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert one.centers.grad.abs().max() > 0


def test_attention_and_shared_layers_are_one_for_all_modalities():
    own = {"own", "scales", "classifiers"}
    for name, _ in learner().named_parameters():
        assert (name.split(".")[0] in own) == any(m in name for m in CONTEXT.modalities)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 7}, "width is 7; pass a whole number from 8"),
        ({"dimension": 0}, "dimension is 0; pass a whole number from 1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        learner(**vars(checked_options(METHODS["msnsca"], OptionValues(**{"width": 12} | options), "method")))


@pytest.mark.parametrize("part", ["own", "classifiers"])
def test_the_layers_of_a_modality_and_its_classifier_have_no_biases(part):
    layers = [layer for layer in getattr(learner(), part).modules() if isinstance(layer, torch.nn.Linear)]
    assert layers
    assert all(layer.bias is None for layer in layers)


def test_batch_norm_scales_and_shifts_nothing():
    norms = [one for one in learner().own.modules() if isinstance(one, torch.nn.BatchNorm1d)]
    assert len(norms) == 2
    assert all(one.weight is None for one in norms)
