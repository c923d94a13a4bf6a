"""Every reading against its definition: loops over anchors, explicit softmax over the weights of the linear layers."""

import pytest
import torch

from aadml.proxies.attention import Attention, AttentionOptions
from aadml.proxies.readings import READINGS, Keys

ANCHORS, NEIGHBORS, DIMENSION, HEADS = 6, 3, 4, 4
KINDS = ["mha", "identity-start", "free"]


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def module(kind="mha") -> Attention:
    attention = Attention(DIMENSION, AttentionOptions(attention=kind)).double()
    for i, parameter in enumerate(attention.parameters()):
        parameter.data += 0.3 * drawn(*parameter.shape, seed=50 + i)
    return attention


def batch(mask=None) -> Keys:
    queries = drawn(ANCHORS, 1, DIMENSION, seed=1)
    mask = torch.ones(ANCHORS, NEIGHBORS, dtype=torch.bool) if mask is None else mask
    return Keys(drawn(ANCHORS, DIMENSION), queries, drawn(ANCHORS, NEIGHBORS, DIMENSION, seed=2), mask)


def call(attention, pairs, values):
    """One call: a softmax over (query, key) pairs, then the output projection."""
    if attention.kind == "free":
        cosines = torch.stack([torch.cosine_similarity(query, key, dim=0) for query, key in pairs])
        return sum(
            w * value for w, value in zip(torch.softmax(cosines / attention.temperature, 0), values, strict=True)
        )
    size = DIMENSION // HEADS
    heads = []
    for h in range(HEADS):
        part = slice(h * size, (h + 1) * size)
        logits = torch.stack(
            [attention.query(query)[part] @ attention.key(key)[part] / size**0.5 for query, key in pairs]
        )
        weights = torch.softmax(logits, 0)
        heads.append(sum(w * attention.value(value)[part] for w, value in zip(weights, values, strict=True)))
    return attention.output(torch.cat(heads))


def by_definition(reading, attention, given):
    rows = []
    for i in range(ANCHORS):
        there = [j for j in range(given.keys.shape[1]) if given.mask[i, j]]
        x, keys = given.anchors[i], given.keys[i]
        queries = given.queries[i].expand_as(keys)
        if reading == "R1":
            calls = [call(attention, [(queries[j], keys[j])], [x]) for j in there]
            rows.append(sum(calls) / len(calls))
        elif reading == "R3":
            rows.append(call(attention, [(queries[j], keys[j]) for j in there], [keys[j] for j in there]))
        elif reading == "R5":
            calls = []
            for j in range(given.keys.shape[1]):
                with_key = [r for r in range(ANCHORS) if given.mask[r, j]]
                values = [given.anchors[r] for r in with_key]
                calls.append(call(attention, [(queries[j], given.keys[r, j]) for r in with_key], values))
            rows.append(sum(calls) / len(calls))
        elif reading == "R6":
            pairs = [(given.queries[i, 0], x)] + [(queries[j], keys[j]) for j in there]
            rows.append(call(attention, pairs, [x] + [keys[j] for j in there]))
    return torch.stack(rows)


@pytest.mark.parametrize("reading", sorted(READINGS))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbors", [2, 3])
def test_equals_its_definition(reading, kind, neighbors):
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]]).bool()
    attention, whole = module(kind), batch(mask)
    given = Keys(whole.anchors, whole.queries, whole.keys[:, :neighbors], whole.mask[:, :neighbors])
    expected = by_definition(reading, attention, given)
    torch.testing.assert_close(READINGS[reading](attention, given), expected, rtol=1e-9, atol=1e-9)


def test_r1_is_an_affine_map_of_the_anchor_whatever_the_graph():
    attention, given = module(), batch()
    expected = attention.output(attention.value(given.anchors))
    torch.testing.assert_close(READINGS["R1"](attention, given), expected)
    for count in (1, 2):
        other = Keys(
            given.anchors, drawn(ANCHORS, 1, DIMENSION, seed=9), 5 * given.keys[:, :count], given.mask[:, :count]
        )
        torch.testing.assert_close(READINGS["R1"](attention, other), expected)
    alone = Keys(given.anchors, given.queries, given.keys, torch.zeros_like(given.mask))
    torch.testing.assert_close(READINGS["R1"](attention, alone), expected)


def test_r1_leaves_query_and_key_without_gradient():
    attention, given = module(), batch()
    READINGS["R1"](attention, given).square().sum().backward()
    for layer in (attention.query, attention.key):
        largest = max(float(layer.weight.grad.abs().max()), float(layer.bias.grad.abs().max()))
        assert largest == 0  # over one key the softmax is 1
    assert float(attention.value.weight.grad.abs().max()) > 0.01


@pytest.mark.parametrize("reading", ["R3", "R5", "R6"])
def test_other_readings_train_query_and_key(reading):
    attention, given = module(), batch()
    READINGS[reading](attention, given).square().sum().backward()
    assert float(attention.query.weight.grad.abs().max()) > 1e-6
    assert float(attention.key.weight.grad.abs().max()) > 1e-6


def test_r5_depends_on_who_else_is_in_the_batch_and_the_others_do_not():
    attention, given = module(), batch()
    half = Keys(*(part[:3] for part in (given.anchors, given.queries, given.keys, given.mask)))
    for name, reading in READINGS.items():
        same = torch.allclose(reading(attention, given)[:3], reading(attention, half))
        assert same == (name != "R5")


def test_r5_equals_pytorch_given_two_dimensional_tensors():
    attention, given = module(), batch()
    peer = torch.nn.MultiheadAttention(DIMENSION, HEADS, dtype=torch.float64)
    with torch.no_grad():
        layers = (attention.query, attention.key, attention.value)
        peer.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
        peer.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
        peer.out_proj.weight.copy_(attention.output.weight)
        peer.out_proj.bias.copy_(attention.output.bias)
    calls = [peer(given.queries[:, 0], given.keys[:, j], given.anchors)[0] for j in range(NEIGHBORS)]
    torch.testing.assert_close(READINGS["R5"](attention, given), sum(calls) / NEIGHBORS)


def test_r6_of_an_anchor_without_neighbors_attends_to_itself():
    attention, given = module(), batch(mask=torch.zeros(ANCHORS, NEIGHBORS, dtype=torch.bool))
    torch.testing.assert_close(READINGS["R6"](attention, given), attention.output(attention.value(given.anchors)))
