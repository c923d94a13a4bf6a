"""Fusion of the results of one query in several modalities.

The scores of different modalities have different meanings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from aadml.comparison.features import Modality
from aadml.search.results import Found, Hit

DEPTH = 100
"""Smallest number of hits of each modality that a fusion ranks."""

_OFFSET = 60  # k of the paper


@dataclass(frozen=True)
class _Ranked:
    modality: Modality
    rank: int
    hit: Hit


def fused(found: Sequence[Found], k: int) -> Found:
    """Return the k clips that match a query best in several modalities.

    If every modality has probabilities, the score of a clip is its largest probability. Otherwise its score is the sum
    of 1 / (60 + rank) over the modalities (reciprocal rank fusion). A caption counts as its clip.

    Reference: Cormack et al., Reciprocal rank fusion outperforms Condorcet and individual rank learning methods, SIGIR
    2009, https://doi.org/10.1145/1571941.1572114

    Args:
        found: results of the query in each modality, each with at least `DEPTH` hits, or with all items.
        k: number of hits.
    """
    places: dict[str, dict[Modality, _Ranked]] = {}
    for results in found:
        for rank, hit in enumerate(results.hits, 1):
            places.setdefault(hit.item.clip, {}).setdefault(results.to, _Ranked(results.to, rank, hit))
    calibrated = all(results.calibration for results in found)
    hits = [_fused_hit(list(ranked.values()), calibrated=calibrated) for ranked in places.values()]
    best = sorted(hits, key=lambda hit: (-hit.score, hit.item.clip))[:k]
    return Found(
        tuple(best), found[0].asked, "+".join(results.to for results in found),
        sum(results.among for results in found), "probability" if calibrated else "reciprocal rank",
        uncalibrated="" if calibrated else "not every modality has probabilities, so ranks are fused",
    )  # fmt: skip


def _fused_hit(ranked: list[_Ranked], *, calibrated: bool) -> Hit:
    """Return the best hit of a clip, with the fused score and the rank of the clip in each modality.

    The ranks are in descending order of probability if `calibrated`, and in ascending order otherwise.
    """
    chances = {each.modality: each.hit.probability or 0.0 for each in ranked}
    order = sorted(ranked, key=lambda each: (-chances[each.modality] if calibrated else 0.0, each.rank))
    best, ranks = order[0].hit, {each.modality: each.rank for each in order}
    if calibrated:
        return replace(best, score=max(chances.values()), ranks=ranks, second_key=None)
    score = sum(1 / (_OFFSET + rank) for rank in ranks.values())
    return replace(best, score=score, probability=None, ranks=ranks, second_key=None)
