from typing import get_args

import pytest
import torch
from torch import nn

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.proxies.attention import Attention, AttentionOptions, Kind


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attending(dimension, **options) -> Attention:
    return Attention(
        dimension, AttentionOptions(**vars(checked_options(AttentionOptions, OptionValues(**options), "proxy")))
    )


def peer(attention: Attention) -> nn.MultiheadAttention:
    """PyTorch's module with the same weights."""
    dimension = attention.query.in_features
    other = nn.MultiheadAttention(dimension, attention.heads, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        projections = (attention.query, attention.key, attention.value)
        other.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
        other.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
        other.out_proj.weight.copy_(attention.output.weight)
        other.out_proj.bias.copy_(attention.output.bias)
    return other


def with_biases(attention: Attention) -> Attention:
    for i, (name, parameter) in enumerate(attention.named_parameters()):
        if name.endswith("bias"):
            parameter.data = drawn(*parameter.shape, seed=100 + i)
    return attention


@pytest.mark.parametrize("heads", [1, 2, 5, 10])
@pytest.mark.parametrize("queries", [1, 4])
def test_equals_multi_head_attention_of_pytorch(heads, queries):
    attention = with_biases(attending(10, heads=heads).double())
    query, key, value = drawn(6, queries, 10), drawn(6, 3, 10, seed=1), drawn(6, 3, 10, seed=2)
    mask = torch.rand(6, 3, generator=torch.Generator().manual_seed(3)) < 0.7
    mask[:, 0] = True
    expected, _ = peer(attention)(query, key, value, key_padding_mask=~mask)
    torch.testing.assert_close(attention(query, key, value, mask), expected)


def test_free_attention_is_the_softmax_of_cosines_over_the_temperature():
    attention = attending(5, attention="free", temperature=0.1)
    assert not list(attention.parameters())
    query, keys, values = drawn(1, 1, 5), drawn(1, 3, 5, seed=1), drawn(1, 3, 5, seed=2)
    cosines = torch.stack([torch.cosine_similarity(query[0, 0], key, dim=0) for key in keys[0]])
    expected = torch.softmax(cosines / 0.1, 0) @ values[0]
    torch.testing.assert_close(attention(query, keys, values, torch.ones(1, 3, dtype=torch.bool))[0, 0], expected)


def test_identity_start_is_the_softmax_of_scaled_dot_products():
    attention = attending(6, attention="identity-start", heads=1).double()
    query, keys = drawn(1, 1, 6), drawn(1, 3, 6, seed=1)
    expected = torch.softmax(4 * keys[0] @ query[0, 0] / 6**0.5, 0) @ keys[0]
    torch.testing.assert_close(attention(query, keys, keys, torch.ones(1, 3, dtype=torch.bool))[0, 0], expected)


@pytest.mark.parametrize("kind", sorted(get_args(Kind)))
def test_a_set_without_keys_gives_zeros_and_finite_gradients(kind):
    attention = with_biases(attending(4, attention=kind).double())
    query, key = drawn(2, 3, 4).requires_grad_(), drawn(2, 3, 4, seed=1).requires_grad_()
    mask = torch.tensor([[True, False, True], [False, False, False]])
    attended = attention(query, key, key, mask)
    assert bool((attended[1] == 0).all())
    attended.square().sum().backward()
    assert bool(torch.isfinite(query.grad).all())
    assert bool((key.grad[1] == 0).all())
    assert bool((key.grad[0, 1] == 0).all())
    assert bool((key.grad[0, 0] != 0).any())


@pytest.mark.parametrize("kind", sorted(get_args(Kind)))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_finite(kind, dtype):
    attention = attending(10, attention=kind).to(dtype)
    vectors = (drawn(4, 3, 10) * 50).to(dtype)
    mask = torch.tensor([[True, True, False]]).expand(4, 3)
    assert bool(torch.isfinite(attention(vectors[:, :1], vectors, vectors, mask)).all())


@pytest.mark.parametrize(("width", "heads"), [(10, 5), (15, 5), (7, 1), (8, 4), (12, 4), (1, 1), (11, 1), (9, 3)])
def test_auto_is_the_largest_divisor_not_above_five(width, heads):
    assert attending(width).heads == heads


@pytest.mark.parametrize("heads", [4, 6])
def test_heads_that_do_not_divide_are_an_error_that_lists_those_that_do(heads):
    with pytest.raises(InputError, match=rf"{heads} heads do not divide 15 dimensions; choose from 1, 3, 5, 15"):
        attending(15, heads=heads)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"attention": "fre"}, "one of mha, identity-start, free"),
        ({"temperature": 0.0}, "temperature"),
    ],
)
def test_values_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        attending(10, **options)
