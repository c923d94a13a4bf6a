"""Ranking loss of audio-text retrieval (Xie et al., ICASSP 2023).

Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""

from functools import partial
from typing import Literal, get_args

from torch import Tensor

from aadml.comparison import Comparison, Terms
from aadml.comparison.options import Margin
from aadml.comparison.scores import Score
from aadml.feature_extraction.ground.errors import InputError
from aadml.losses.kernels.likelihood import some
from aadml.losses.kernels.row_blocks import Costs, Rows, counted, ones, summed
from aadml.losses.kernels.scores import dissimilarities
from aadml.losses.kernels.violations import violations

FullReduce = Literal["hinge_then_mean", "mean_then_hinge"]


def ranking(
    comparison: Comparison, *, margin: Margin = 1.0, score: Score = "dot", full_reduce: FullReduce = "hinge_then_mean"
) -> Terms:
    """Compute hinges of scores S: S of a positive should exceed S of the anchor's negatives by `margin`.

        hinge_then_mean:  total_i = sum over p in P_i of  mean over n in N_i of  max(0, S_in - S_ip + margin)
        mean_then_hinge:  total_i = sum over p in P_i of  max(0, mean over n in N_i of S_in - S_ip + margin)

    With one negative per anchor, both forms equal Equation 4. Seven of the eight strategies of Xie et al. select one
    negative per anchor (see SELECTIONS; examples are random, hardest, semi-hard-two-sided and text-based-hard).
    With the whole mini-batch, Xie et al. average the scores. The released code averages the hinges, and the mean of
    the hinges is never below the hinge of the mean. The result is exact, in O(a c log c) time.

    Args:
        comparison: a anchors against c candidates; by id, the anchor's partner is the only positive.
        margin: required difference of the scores (1.0: Xie et al.; the published configuration has 0.5). For the
            frame-word relevance of vectors of length 1, S is in [0, 1]. With a margin of 1, the hinge then cuts no
            term.
        score: "dot", "cosine", "euclidean" or "squared-euclidean". A frame-word relevance replaces "dot" and
            "cosine". For a distance, S is minus the distance.
        full_reduce: "hinge_then_mean" or "mean_then_hinge".

    Returns:
        One term per positive, for anchors that have negatives; no terms for other anchors.

    Raises:
        InputError: `full_reduce` or `score` is unknown, or `score` is a distance for a comparison with relevance
            scores instead of vectors.

    Example:
        >>> pairs = Comparison.of_ids(audio, text, clips, clips)
        >>> terms = ranking(SELECTIONS["hardest"](pairs, generator, score="dot", positive="own"), margin=1.0)
        >>> loss = terms.total.sum() / terms.possible.sum().clamp_min(1)
        >>> loss.backward()
        >>> optimizer.step()
        >>> optimizer.zero_grad()
    """
    costs = {"hinge_then_mean": _hinge_then_mean, "mean_then_hinge": _mean_then_hinge}
    if full_reduce in costs:
        return summed(comparison, dissimilarities(comparison, score), partial(costs[full_reduce], margin=margin))
    raise InputError(f"loss.full_reduce is '{full_reduce}'; choose {' or '.join(get_args(FullReduce))}")


def _hinge_then_mean(rows: Rows, margin: float) -> Costs:
    pairs, rivals = _contested(rows), rows.negatives.sum(1).clamp_min(1)
    counts = violations(rows.scores.detach(), pairs, rows.negatives, margin)
    of_positives = counts.clamp_min(0)
    total = ((counts * rows.scores).sum(1) + margin * of_positives.sum(1)) / rivals
    return Costs(total, counted(of_positives), ones(pairs), counts / rivals[:, None])


def _mean_then_hinge(rows: Rows, margin: float) -> Costs:
    pairs, rivals = _contested(rows), rows.negatives.sum(1, keepdim=True).clamp_min(1)
    mean = (rows.scores * rows.negatives).sum(1, keepdim=True) / rivals
    cost = (rows.scores - mean + margin).relu_().mul_(pairs)
    active = cost.sign()
    gradient = active - rows.negatives * (active.sum(1, keepdim=True) / rivals)
    return Costs(cost.sum(1), counted(cost), ones(pairs), gradient)


def _contested(rows: Rows) -> Tensor:
    """Return a mask (r, c) of zeros and ones: the positives of anchors that have negatives."""
    return rows.positives * some(rows.negatives)[:, None]
