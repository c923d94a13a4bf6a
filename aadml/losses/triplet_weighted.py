"""Max-polynomial weighted loss (Wei et al., Universal weighting metric learning, CVPR 2020), for audio-text."""

from typing import Literal

import torch
from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Margin
from aadml.comparison.pairwise import counted, masked_sum
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import removing

PERFECT = 1 - 1e-5
"""Smallest cosine of a positive that the published code skips, as if the positive were the anchor itself."""

POSITIVE, NEGATIVE = (0.5, -0.7, 0.2), (0.03, -0.4, 0.9)
"""Coefficients of a and b, in ascending powers."""


@removing(positive=POSITIVE, negative=NEGATIVE)
def triplet_weighted(
    comparison: Comparison,
    *,
    variant: Literal["code", "paper"] = "code",
    margin: Margin = 0.2,
) -> Terms:
    """Compute losses of the positives and of the hardest negative as polynomials of their cosines s.

        a(s) = 0.5 - 0.7 s + 0.2 s^2,   b(s) = 0.03 - 0.4 s + 0.9 s^2,   h_i = max over n in N_i of s_in
        code:   total_i = sum over p in P_i of  max(0, a(s_ip)) + max(0, b(h_i)),
                for the positives with h_i + margin > s_ip and s_ip < 1 - 1e-5
        paper:  total_i = sum over p in P_i of  max(0, a(s_ip) + 0.03 - 0.4 max_n s_in + 0.9 max_n s_in^2)

    Mei et al. (On metric learning for audio-text cross-modal retrieval, 2022) print the second form (Equation 6), and
    their code has the first. b(0) is positive: in the code's form a negative at cosine 0 has a loss above 0.

    Args:
        comparison: a anchors against c candidates; by id, the anchor's partner is the only positive.
        variant: "code" or "paper".
        margin: tolerance below the positive, within which the hardest negative still counts ("code" only; 0.2: the
            released code).

    Returns:
        One term per positive, for anchors that have negatives; no terms for other anchors.

    Example:
        >>> pairs = Comparison.of_ids(audio, text, clips, clips)
        >>> terms = triplet_weighted(pairs, variant="code")
        >>> loss = terms.total.sum() / len(audio)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    cosine, contested = comparison.cosine, comparison.negatives.any(1, keepdim=True)
    pairs = comparison.positives & contested
    nearest = _highest(cosine, comparison.negatives)
    if variant == "code":
        counting = pairs & (nearest + margin > cosine) & (cosine < PERFECT)
        cost = _polynomial(POSITIVE, cosine, cosine.square()).relu()
        cost = cost + _polynomial(NEGATIVE, nearest, nearest.square()).relu()
    elif variant == "paper":
        counting = pairs
        steepest = _highest(cosine.square(), comparison.negatives)
        cost = (_polynomial(POSITIVE, cosine, cosine.square()) + _polynomial(NEGATIVE, nearest, steepest)).relu()
    else:
        raise InputError(f"loss.variant is '{variant}'; choose code or paper")
    return Terms(masked_sum(cost, counting), counted((cost > 0) & counting), counted(pairs))


def _highest(values: Tensor, mask: Tensor) -> Tensor:
    """Return the highest value of each row within the mask (a, 1); 0 in an empty row."""
    if not values.shape[1]:
        return values.new_zeros(len(values), 1)
    highest = values.masked_fill(~mask, -torch.inf).max(1, keepdim=True).values
    return highest.masked_fill(~mask.any(1, keepdim=True), 0)


def _polynomial(coefficients: tuple[float, float, float], first: Tensor, second: Tensor) -> Tensor:
    return coefficients[0] + coefficients[1] * first + coefficients[2] * second
