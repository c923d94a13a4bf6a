"""Max-polynomial weighted loss (Wei et al., CVPR 2020), for audio-text.

Reference: Wei et al., Universal weighting metric learning for cross-modal matching, CVPR 2020, https://arxiv.org/abs/2010.03403
"""

from functools import partial
from typing import Annotated, Literal

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Margin
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import OnlyWith
from aadml.feature_extraction.ground.options import removing
from aadml.losses.kernels.row_blocks import EXCLUDED, Cost, Costs, Near, Rows, counted, ones, summed, without
from aadml.losses.kernels.scores import scores_of

Coefficients = tuple[float, float, float]

PERFECT = 1 - 1e-5
"""Smallest cosine of a positive that the published code skips, as if the positive were the anchor itself."""

POSITIVE, NEGATIVE = (0.5, -0.7, 0.2), (0.03, -0.4, 0.9)
"""Coefficients of a and b, in ascending powers."""


@removing(positive=POSITIVE, negative=NEGATIVE)
def triplet_weighted(
    comparison: Comparison,
    *,
    variant: Literal["code", "paper"] = "code",
    margin: Annotated[Margin, OnlyWith("variant", "code")] = 0.2,
) -> Terms:
    """Compute losses of the positives and of the hardest negative as polynomials of their cosines s.

        a(s) = 0.5 - 0.7 s + 0.2 s^2,   b(s) = 0.03 - 0.4 s + 0.9 s^2,   h_i = max over n in N_i of s_in
        code:   total_i = sum over p in P_i of  max(0, a(s_ip)) + max(0, b(h_i)),
                for the positives with h_i + margin > s_ip and s_ip < 1 - 1e-5
        paper:  total_i = sum over p in P_i of  max(0, a(s_ip) + 0.03 - 0.4 max_n s_in + 0.9 max_n s_in^2)

    Mei et al. (Interspeech 2022) print the second form (Equation 6), and
    their code has the first. b(0) is positive: in the code's form a negative at cosine 0 has a loss above 0.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Args:
        comparison: a anchors against c candidates; by id, the anchor's partner is the only positive.
        variant: "code" or "paper".
        margin: tolerance below the positive, within which the hardest negative still counts (0.2: the released
            code).

    Returns:
        One term per positive, for anchors that have negatives; no terms for other anchors.

    Raises:
        InputError: `variant` is unknown.

    Example:
        >>> pairs = Comparison.of_ids(audio, text, clips, clips)
        >>> terms = triplet_weighted(pairs, variant="code")
        >>> loss = terms.total.sum() / len(audio)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    costs: dict[str, Cost] = {"code": partial(_as_in_code, margin=margin), "paper": _as_in_paper}
    if variant not in costs:
        raise InputError(f"loss.variant is '{variant}'; choose code or paper")
    return summed(comparison, scores_of(comparison, "cosine"), costs[variant])


def _as_in_code(rows: Rows, margin: float) -> Costs:
    near, cosine, pairs = _pairs(rows)
    place, nearest = _highest(rows.scores, rows.negatives)
    counting = pairs * (nearest + margin > cosine) * (cosine < PERFECT)
    pulled, pushed = (_polynomial(of, values).relu() for of, values in ((POSITIVE, cosine), (NEGATIVE, nearest)))
    cost, slope = (pulled + pushed) * counting, _slope(POSITIVE, cosine) * pulled.sign() * counting
    push = _slope(NEGATIVE, nearest) * pushed.sign() * counting.sum(1, keepdim=True)
    gradient = near.taken(torch.zeros_like(rows.scores), -slope).scatter_add_(1, place, push)
    return Costs(cost.sum(1), counted(cost), ones(pairs), gradient)


def _as_in_paper(rows: Rows) -> Costs:
    near, cosine, pairs = _pairs(rows)
    (place, nearest), (far_place, _) = (_highest(of, rows.negatives) for of in (rows.scores, rows.scores.square()))
    steepest = rows.scores.gather(1, far_place) * rows.has_negatives[:, None]
    constant, first, second = NEGATIVE
    cost = (_polynomial(POSITIVE, cosine) + constant + first * nearest + second * steepest.square()).relu_() * pairs
    active = cost.sign()
    count = active.sum(1, keepdim=True)
    gradient = near.taken(torch.zeros_like(rows.scores), -_slope(POSITIVE, cosine) * active)
    gradient.scatter_add_(1, place, first * count).scatter_add_(1, far_place, 2 * second * steepest * count)
    return Costs(cost.sum(1), counted(cost), ones(pairs), gradient)


def _pairs(rows: Rows) -> tuple[Near, Tensor, Tensor]:
    """Return the positives, their cosines (r, k), and a mask (r, k) of the positives whose anchor has negatives."""
    near = rows.near
    return near, near.of(rows.scores), near.weights * rows.has_negatives[:, None]


def _highest(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the column (r, 1) and the value (r, 1) of each row's highest entry among the entries in `mask`.

    The value of a row without entries in `mask` is 0. Without columns, both results are (r, 0).
    """
    if not values.shape[1]:
        nothing = values.new_zeros(len(values), 0)
        return nothing.long(), nothing
    highest, place = without(values, 1 - mask).max(1, keepdim=True)
    return place, highest * (highest > -EXCLUDED / 2)


def _polynomial(coefficients: Coefficients, values: Tensor) -> Tensor:
    return coefficients[0] + coefficients[1] * values + coefficients[2] * values.square()


def _slope(coefficients: Coefficients, values: Tensor) -> Tensor:
    return coefficients[1] + 2 * coefficients[2] * values
