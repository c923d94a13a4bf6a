import pytest
import torch

from aadml.comparison import pairwise


def pair(dimension=4, dtype=torch.float64):
    random = torch.Generator().manual_seed(0)
    return tuple(torch.randn(n, dimension, generator=random, dtype=dtype).requires_grad_() for n in (5, 7))


def test_squared_distances_are_their_definition():
    x, r = pair()
    expected = (x[:, None] - r[None]).square().sum(2)
    assert torch.allclose(pairwise.squared_distance(x, r), expected, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(pairwise.squared_distance, (x, r))


def test_distances_far_from_the_origin_keep_their_digits():
    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(1)) + 1000
    expected = (x.double()[:, None] - x.double()[None]).square().sum(2)
    assert torch.allclose(pairwise.squared_distance(x, x).double(), expected, rtol=1e-4, atol=1e-4)


def test_cosines_are_their_definition_and_stay_in_bounds():
    x, r = pair()
    expected = (x @ r.T) / (x.norm(dim=1)[:, None] * r.norm(dim=1)[None])
    assert torch.allclose(pairwise.cosine(x, r), expected, rtol=1e-12)
    assert torch.autograd.gradcheck(pairwise.cosine, (x, r))
    same = torch.full((3, 7), 0.1)
    assert pairwise.cosine(same, same).max() <= 1


@pytest.mark.parametrize("length", [0.0, 1e-30, 1e-13])
def test_a_vector_without_length_has_cosine_zero_with_everything_and_no_gradient(length):
    x = torch.full((1, 3), length, requires_grad=True)
    scores = pairwise.cosine(x, torch.ones(2, 3))
    scores.sum().backward()
    assert scores.tolist() == [[0.0, 0.0]]
    assert not x.grad.any()


@pytest.mark.parametrize("score", [pairwise.squared_distance, pairwise.dot, pairwise.cosine])
@pytest.mark.parametrize("reduced", [torch.bfloat16, torch.float16])
def test_autocast_does_not_touch_a_score(score, reduced):
    x, r = pair(dtype=torch.float32)
    with torch.autocast("cpu", dtype=reduced):
        inside = score(x, r)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, score(x, r))
