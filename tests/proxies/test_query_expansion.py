import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.query_expansion import expand


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0])
def test_equals_its_definition(alpha):
    vectors, bank = drawn(7, 4), drawn(30, 4, seed=1)
    expanded = expand(vectors, bank, k=5, alpha=alpha)
    for x, found in zip(vectors, expanded, strict=True):
        ranked = sorted(((float(torch.cosine_similarity(x, b, dim=0)), b) for b in bank), key=lambda pair: -pair[0])
        expected = x / x.norm() + sum(max(s, 0) ** alpha * b / b.norm() for s, b in ranked[:5])
        torch.testing.assert_close(found, expected)


def test_none_leaves_unit_vectors_and_too_many_takes_all():
    vectors, bank = drawn(3, 4), drawn(6, 4, seed=1)
    torch.testing.assert_close(expand(vectors, bank, k=0), vectors / vectors.norm(dim=1, keepdim=True))
    torch.testing.assert_close(expand(vectors, bank, k=100), expand(vectors, bank, k=6))


def test_no_gradient_is_followed():
    vectors, bank = drawn(3, 4).requires_grad_(), drawn(6, 4, seed=1).requires_grad_()
    assert not any(expand(vectors, bank, k=k).requires_grad for k in (0, 2))


def test_an_item_is_expanded_alone():
    vectors, bank = drawn(9, 4), drawn(50, 4, seed=1)
    torch.testing.assert_close(expand(vectors, bank, k=3, alpha=3)[4:5], expand(vectors[4:5], bank, k=3, alpha=3))


@pytest.mark.parametrize("options", [{"k": -1}, {"k": 1, "alpha": -2.0}])
def test_negative_options_are_refused(options):
    with pytest.raises(InputError, match="pass values of at least 0"):
        expand(drawn(1, 2), drawn(2, 2), **options)
