import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from aadml.comparison import Comparison
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.cross_clr import cross_clr


def both(anchors, candidates, groups, by):
    """Two modalities against the same two, nobody against itself."""
    count = len(groups)
    points, groups, row = torch.cat([anchors, candidates]), groups.repeat(2), torch.arange(2 * count)
    if by == "ids":
        comparison = Comparison.of_ids(points, points, groups, groups, own=row.roll(count))
    else:
        comparison = Comparison.of_labels(points, points, groups, groups, itself=row)
    return replace(comparison, within=(row // count)[:, None] == row // count)


def definition(comparison, temperature, within_weight):
    s = F.cosine_similarity(comparison.anchors[:, None], comparison.candidates[None], dim=2) / temperature
    totals = []
    for i in range(len(s)):
        rivals, positives = 0.0, []
        for j in range(s.shape[1]):
            if comparison.within[i, j]:
                rivals += math.exp(within_weight * s[i, j]) if comparison.negatives[i, j] else 0
            elif comparison.positives[i, j]:
                rivals += math.exp(s[i, j])
                positives.append(float(s[i, j]))
            elif comparison.negatives[i, j]:
                rivals += math.exp(s[i, j])
        totals.append(sum(math.log(rivals) - p for p in positives) / max(len(positives), 1))
    return torch.tensor(totals, dtype=torch.float64)


@given(
    by=st.sampled_from(["labels", "ids"]),
    seed=st.integers(0, 2**32 - 1),
    temperature=st.floats(0.02, 2),
    within_weight=st.floats(0, 1),
)
def test_is_its_definition(draw, by, seed, temperature, within_weight):
    drawn = draw("ids", seed)
    comparison = both(drawn.anchors, drawn.candidates, torch.arange(7) % 3, by)
    terms = cross_clr(comparison, temperature=temperature, within_weight=within_weight)
    expected = definition(comparison, temperature, within_weight)
    assert torch.allclose(terms.total, expected, rtol=1e-9, atol=1e-9)


def test_of_pairs_is_cross_entropy_of_the_concatenated_logits_without_the_diagonal(draw):
    drawn, row = draw("ids", 0), torch.arange(7)
    x, r = F.normalize(drawn.anchors), F.normalize(drawn.candidates)
    within = 0.8 * (x @ x.T) / 0.03
    logits = torch.cat([x @ r.T / 0.03, within.fill_diagonal_(-torch.inf)], 1)
    terms = cross_clr(both(drawn.anchors, drawn.candidates, row, "ids"))
    assert torch.allclose(terms.total[:7], F.cross_entropy(logits, row, reduction="none"), atol=1e-9)
    assert terms.possible.tolist() == [1] * 14


def test_of_equal_vectors_with_full_weight_is_the_logarithm_of_all_others():
    row, same = torch.arange(4), torch.ones(4, 2)
    terms = cross_clr(both(same, same, row, "ids"), within_weight=1.0)
    assert terms.total.tolist() == pytest.approx([math.log(7)] * 8, rel=1e-5)


def test_takes_columns_given_once_for_all_anchors(draw):
    drawn = draw("ids", 5)
    comparison = both(drawn.anchors, drawn.candidates, torch.arange(7), "ids").narrow(rows=torch.arange(7))
    columns = replace(comparison, within=torch.arange(14) < 7)
    assert torch.equal(cross_clr(columns).total, cross_clr(comparison).total)


def test_costs_nothing_where_no_other_modality_holds_a_positive():
    points = torch.randn(4, 3, requires_grad=True)
    alone = Comparison.of_labels(points, points, torch.zeros(4), torch.zeros(4), itself=torch.arange(4))
    terms = cross_clr(replace(alone, within=torch.ones(4, 4, dtype=torch.bool)))
    terms.total.sum().backward()
    assert terms.total.tolist() == [0] * 4
    assert points.grad.abs().max() == 0


def test_refuses_a_comparison_that_does_not_tell_modalities_apart(draw):
    with pytest.raises(InputError, match="cross-clr needs 'within'"):
        cross_clr(draw("labels", 0))


def test_gradient_is_that_of_finite_differences(draw, assert_gradients):
    drawn = draw("masks", 2)
    within = torch.arange(7)[:, None] % 2 == torch.arange(7) % 2
    assert_gradients(partial(cross_clr, temperature=0.5), replace(drawn, within=within))
