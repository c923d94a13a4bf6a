import gc
import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from aadml.comparison import Comparison
from aadml.comparison.masks import MaskCodes
from aadml.comparison.opposites import share_results
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses import LOSSES
from aadml.losses.kernels.partners import HIGHEST_BITS, of_partners
from aadml.losses.kernels.row_blocks import PER_BIT

ONE_POSITIVE = ("nt-xent", "supcon")
"""Losses that are a cross-entropy of partners if every anchor has a single positive."""


def vectors(count=9, width=5, dtype=torch.float64, alike=0.0):
    random = torch.Generator().manual_seed(0)
    x, noise = (torch.randn(count, width, generator=random, dtype=torch.float64) for _ in range(2))
    return [side.to(dtype).requires_grad_() for side in (x, alike * x + (1 - alike) * noise)]


def both(x, r, *, groups=None, share=True, **changed):
    row = torch.arange(len(x))
    groups = row if groups is None else groups
    codes = MaskCodes((groups, groups), (row, row))
    masks = {"positives": codes.positives, "negatives": codes.negatives, "own": row} | changed
    comparisons = [Comparison(*sides, **masks) for sides in ((x, r), (r, x))]
    if share:
        share_results(comparisons)
    return comparisons


def by_direction(loss, x, r, **options):
    return [LOSSES[loss](comparison, **options) for comparison in both(x, r, share=False)]


def definition(x, r, temperature):
    totals = []
    for i in range(len(x)):
        scores = [float(torch.cosine_similarity(x[i], other, 0, 1e-12)) / temperature for other in r]
        totals.append(math.log1p(sum(math.exp(scores[j] - scores[i]) for j in range(len(r)) if j != i)))
    return torch.tensor(totals, dtype=torch.float64)


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("temperature", [0.02, 0.07, 1.0])
@pytest.mark.parametrize("alike", [0.0, 0.9, 1.0])  # with equal partners, losses are near 0
def test_both_directions_are_their_definition(dtype, rtol, temperature, alike):
    x, r = vectors(dtype=dtype, alike=alike)
    exact = [side.detach().double() for side in (x, r)]
    for comparison, sides in zip(both(x, r), (exact, exact[::-1]), strict=True):
        terms = of_partners(comparison, temperature)
        wanted = definition(*sides, temperature)
        assert terms.total.dtype == dtype
        # scores rounded to float32 bound the accuracy of their exponentials
        torch.testing.assert_close(terms.total.double(), wanted, rtol=rtol / min(temperature, 1), atol=1e-30)
        assert torch.equal(terms.active, (wanted > 1e-30).long())
        assert terms.possible.tolist() == [1] * 9
        assert terms.active.dtype == terms.possible.dtype == torch.int64


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", ONE_POSITIVE)
def test_each_direction_receives_its_terms(name, order):
    x, r = vectors()
    terms = [LOSSES[name](comparison) for comparison in both(x, r)[::order]][::order]
    for shared, alone in zip(terms, by_direction(name, x, r), strict=True):
        torch.testing.assert_close(shared.total, alone.total, rtol=1e-12, atol=1e-15)
        assert torch.equal(shared.possible, alone.possible)


@pytest.mark.parametrize("temperature", [0.5, 0.015])
def test_gradients_are_those_of_finite_differences(temperature):
    x, r = vectors(4, 3)
    learned = torch.tensor(temperature, dtype=torch.float64, requires_grad=True)

    def totals(x, r, learned):
        return tuple(of_partners(comparison, learned).total for comparison in both(x, r))

    assert torch.autograd.gradcheck(totals, (x, r, learned), eps=1e-8, atol=1e-3 / temperature)


def test_anchors_of_other_weights_and_signs_have_the_gradients_of_separate_directions():
    x, r = vectors()
    weights = torch.linspace(-1, 2, 9, dtype=torch.float64)
    sums = [
        sum((terms.total * weights.roll(k)).sum() for k, terms in enumerate(chosen))
        for chosen in ([LOSSES["nt-xent"](c) for c in both(x, r)], by_direction("nt-xent", x, r))
    ]
    for shared, alone in zip(*(torch.autograd.grad(total, (x, r)) for total in sums), strict=True):
        torch.testing.assert_close(shared, alone, rtol=1e-10, atol=1e-14)


def test_a_gradient_near_a_loss_of_zero_is_exact():
    x, r = vectors(dtype=torch.float32, alike=1.0)
    terms = [of_partners(comparison, 0.05) for comparison in both(x, r)]
    exact = [side.detach().double().requires_grad_() for side in (x, r)]
    wanted = torch.autograd.grad(sum(t.total.sum() for t in by_direction("nt-xent", *exact, temperature=0.05)), exact)
    for one, other in zip(torch.autograd.grad(sum(t.total.sum() for t in terms), (x, r)), wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-7 * float(other.abs().max()))


@pytest.mark.parametrize("scale", [0.9, 1.0, 1.1])
def test_scores_of_a_larger_range_are_computed_by_direction(scale):
    side = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    comparisons = both(side, side.clone())
    temperature = PER_BIT / (HIGHEST_BITS * scale)
    terms = [of_partners(comparison, temperature) for comparison in comparisons]
    assert [result is None for result in terms] == [scale > 1] * 2
    for comparison in comparisons:
        torch.testing.assert_close(
            LOSSES["nt-xent"](comparison, temperature=temperature).total, definition(side, side, temperature)
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_smallest_temperature_of_a_learned_scale_is_exact(dtype, sign):
    side = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [0.6, 0.8]], dtype=dtype)
    for comparison in both(side, sign * side):
        terms = LOSSES["nt-xent"](comparison, temperature=0.01)
        torch.testing.assert_close(
            terms.total.double(), definition(side.double(), sign * side.double(), 0.01), rtol=1e-5, atol=1e-30
        )


def test_not_a_number_is_not_hidden():
    x, r = vectors()
    with torch.no_grad():
        x[0] = torch.nan
    assert all(LOSSES["nt-xent"](comparison).total.isnan().any() for comparison in both(x, r))


OTHER = {
    "repeated clips": {"groups": torch.tensor([0, 1, 1, 2, 3, 4, 5, 6, 7])},
    "weights": {"shares": torch.ones(9, 9)},
    "relevance": {"relevance": torch.zeros(9, 9)},
    "masks": {"positives": torch.eye(9, dtype=torch.bool), "negatives": ~torch.eye(9, dtype=torch.bool)},
    "without an opposite": {"share": False},
}


@pytest.mark.parametrize("case", OTHER)
def test_other_comparisons_are_computed_by_direction(case):
    assert [of_partners(comparison, 0.1) for comparison in both(*vectors(), **OTHER[case])] == [None, None]


@pytest.mark.parametrize("name", ONE_POSITIVE)
@pytest.mark.parametrize("count", [1, 2])
def test_a_last_batch_of_few_pairs_costs_what_each_direction_costs(name, count):
    x, r = vectors(count)
    for shared, alone in zip(
        [LOSSES[name](comparison) for comparison in both(x, r)], by_direction(name, x, r), strict=True
    ):
        torch.testing.assert_close(shared.total, alone.total, rtol=1e-12, atol=1e-15)
        assert torch.equal(shared.active, alone.active)
        assert torch.equal(shared.possible, alone.possible)


def test_a_second_backward_pass_gives_what_the_first_gave_and_a_second_derivative_is_refused():
    x, r = vectors()
    total = sum(of_partners(comparison, 0.1).total.sum() for comparison in both(x, r))
    first = torch.autograd.grad(total, (x, r), create_graph=True)
    assert all(map(torch.equal, first, torch.autograd.grad(total, (x, r), retain_graph=True)))
    with pytest.raises(RuntimeError, match="no second derivative"):
        first[0].sum().backward()


def test_only_sides_that_need_a_gradient_receive_one():
    x, r = vectors()
    total = sum(of_partners(comparison, 0.1).total.sum() for comparison in both(x, r.detach()))
    total.backward()
    assert x.grad.abs().max() > 0
    with torch.no_grad():
        assert not of_partners(both(x, r)[0], 0.1).total.requires_grad


def test_the_temperature_is_learned_in_both_directions():
    x, r = vectors()
    temperature = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
    total = sum(of_partners(comparison, temperature).total.sum() for comparison in both(x, r))
    (slope,) = torch.autograd.grad(total, temperature)
    alone = sum(terms.total.sum() for terms in by_direction("nt-xent", x, r, temperature=temperature))
    torch.testing.assert_close(slope, torch.autograd.grad(alone, temperature)[0], rtol=1e-10, atol=0)


def test_a_learned_temperature_keeps_its_shape():
    x, r = vectors()
    temperature = torch.tensor([0.2], dtype=torch.float64, requires_grad=True)
    of_partners(both(x, r)[0], temperature).total.sum().backward()
    assert temperature.grad.shape == (1,)


def test_a_temperature_that_is_not_above_zero_is_refused():
    with pytest.raises(InputError, match="pass a temperature above 0"):
        of_partners(both(*vectors())[0], 0.0)


class _Memory(TorchDispatchMode):
    """Peak of the entries of the matrices of pairs that exist at the same time."""

    def __init__(self, pairs):
        super().__init__()
        self.pairs, self.peak = pairs, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if any(isinstance(leaf, torch.Tensor) and leaf.numel() == self.pairs for leaf in tree_leaves(result)):
            alive = [x for x in gc.get_objects() if type(x) is torch.Tensor and x.numel() == self.pairs]
            self.peak = max(self.peak, len({x.untyped_storage().data_ptr() for x in alive}))
        return result


def test_a_step_holds_at_most_two_matrices_of_pairs():
    x, r = vectors(60)
    with _Memory(3600) as memory:
        sum(LOSSES["nt-xent"](comparison).total.sum() for comparison in both(x, r)).backward()
    assert 1 <= memory.peak <= 2


def test_no_gradient_of_scores_is_a_denormal_number(monkeypatch):
    from aadml.losses.kernels import partners

    gradients = []
    plain = partners.gradients_of_products
    monkeypatch.setattr(partners, "gradients_of_products", lambda *args: gradients.append(args[0]) or plain(*args))
    x, r = vectors(30, 4, torch.float32)
    sum(of_partners(comparison, 0.015).total.mean() for comparison in both(x, r)).backward()
    sizes = gradients[0].abs()
    assert (sizes > 0).any()
    assert not ((sizes > 0) & (sizes < torch.finfo(torch.float32).tiny)).any()
