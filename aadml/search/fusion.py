"""Fusion of the results of one query in several modalities.

The scores of different modalities have different meanings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aadml.comparison.features import Modality
from aadml.search.results import Found, Hit

DEPTH = 100
"""Smallest number of hits of each modality that a fusion ranks."""

_OFFSET = 60  # k of the paper


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
    ranked: dict[str, dict[Modality, tuple[int, Hit]]] = {}
    for results in found:
        first: dict[str, Hit] = {}
        for hit in results.hits:
            first.setdefault(hit.item.clip, hit)
        for rank, (clip, hit) in enumerate(first.items(), 1):
            ranked.setdefault(clip, {})[results.to] = rank, hit
    calibrated = all(results.calibration for results in found)
    hits = [_fused_hit(by_modality, calibrated=calibrated) for by_modality in ranked.values()]
    best = sorted(hits, key=lambda hit: (-hit.score, hit.item.clip))[:k]
    return Found(
        tuple(best), found[0].asked, "+".join(results.to for results in found),
        sum(results.among for results in found), "probability" if calibrated else "reciprocal rank",
        uncalibrated="" if calibrated else "not every modality has probabilities, so ranks are fused",
    )  # fmt: skip


def _fused_hit(by_modality: Mapping[Modality, tuple[int, Hit]], *, calibrated: bool) -> Hit:
    """Return the best hit of a clip, with the fused score and the rank of the clip in each modality.

    The ranks are in descending order of probability if `calibrated`, and in ascending order otherwise.
    """
    chances = {modality: hit.probability or 0.0 for modality, (_, hit) in by_modality.items()}
    order = sorted(chances, key=lambda modality: (-chances[modality] if calibrated else 0.0, by_modality[modality][0]))
    ranks = {modality: by_modality[modality][0] for modality in order}
    best = replace(by_modality[order[0]][1], ranks=ranks, second_key=None)
    if calibrated:
        return replace(best, score=chances[order[0]])
    return replace(best, score=sum(1 / (_OFFSET + rank) for rank in ranks.values()), probability=None)
