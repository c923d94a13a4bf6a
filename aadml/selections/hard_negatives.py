"""Selections of hard and easy negatives: nearest, semi-hard, and chosen by similarity within one modality.

Text-based and audio-based negatives depend only on the similarity of two items within a modality. An item therefore has
the same negative item from audio to text and from text to audio.

Reference: Faghri et al., VSE++: improving visual-semantic embeddings with hard negatives, BMVC 2018, https://arxiv.org/abs/1707.05612
Reference: Schroff et al., FaceNet: a unified embedding for face recognition and clustering, CVPR 2015, https://doi.org/10.1109/CVPR.2015.7298682
Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319
"""

from typing import Literal

import torch

from aadml.comparison import Comparison
from aadml.comparison.options import Margin
from aadml.comparison.row_choice import Positive, chosen_positives, drawn, lowest, own_positives, value_at
from aadml.comparison.scores import Score, dissimilarity
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import removing


def hardest(
    comparison: Comparison,
    generator: torch.Generator,
    *,
    score: Score = "squared-euclidean",
    positive: Positive = "random",
) -> Comparison:
    """Select each anchor's nearest negative, with one or all of the anchor's positives.

    The AADML paper's "single triplet with the hardest negative" is this selection, if the paper means one triplet per
    anchor. With a similarity as score, the selection is the cross-modality hard strategy of Xie et al. (ICASSP 2023).

    Reference: Xie et al., On negative sampling for contrastive audio-text retrieval, ICASSP 2023, https://doi.org/10.1109/ICASSP49357.2023.10095319

    Args:
        comparison: a anchors against c candidates.
        generator: generator that draws random positives.
        score: measure of nearness, a key of SCORES.
        positive: the positive to select: a "random" one, the anchor's "own" partner, the "hardest", or "all".

    Raises:
        InputError: `score` is unknown, or is a distance for a comparison with relevance scores instead of vectors.
    """
    distance = dissimilarity(comparison, score)
    return comparison.narrow(
        chosen_positives(comparison, positive, generator, distance), lowest(distance, comparison.negatives)
    )


def batch_hard(comparison: Comparison, generator: torch.Generator, *, score: Score = "squared-euclidean") -> Comparison:
    """Select each anchor's farthest positive and nearest negative (Hermans, Beyer and Leibe, 2017).

    Reference: Hermans et al., In defense of the triplet loss for person re-identification, 2017, https://arxiv.org/abs/1703.07737

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
        score: measure of nearness, a key of SCORES.

    Raises:
        InputError: `score` is unknown, or is a distance for a comparison with relevance scores instead of vectors.
    """
    return hardest(comparison, generator, score=score, positive="hardest")


@removing(positive="random")
def semi_hard(
    comparison: Comparison,
    generator: torch.Generator,
    *,
    score: Score = "squared-euclidean",
    margin: Margin = 0.0,
    keep: Literal["nearest", "all"] = "nearest",
) -> Comparison:
    """Select a random positive per anchor, and one or all of the farther negatives (Schroff et al., CVPR 2015).

    A negative is farther if its distance d_an to the anchor is larger than the distance d_ap of the positive. An
    anchor without farther negatives has no terms, as in FaceNet.

    Args:
        comparison: a anchors against c candidates.
        generator: generator that draws the positives.
        score: measure of nearness, a key of SCORES.
        margin: largest excess of d_an over d_ap; 0: no limit.
        keep: keep the "nearest" of the farther negatives, or "all" of them.

    Raises:
        InputError: `score` is unknown, or is a distance for a comparison with relevance scores instead of vectors.
    """
    distance = dissimilarity(comparison, score).detach()
    positives = drawn(comparison.positives, generator)
    reference = value_at(distance, positives)
    negatives = comparison.negatives & (distance > reference)
    if margin > 0:
        negatives = negatives & (distance < reference + margin)
    return comparison.narrow(positives, lowest(distance, negatives) if keep == "nearest" else negatives)


@removing(positive="own")
def semi_hard_two_sided(comparison: Comparison, generator: torch.Generator, *, score: Score = "cosine") -> Comparison:
    """Select each anchor's partner, and the negative whose score is closest to the partner's: argmin_j |S_ij - S_ii|.

    The selection is the cross-modality semi-hard strategy of Xie et al. (ICASSP 2023). An anchor whose partner is not a
    positive has no pairs.

    Args:
        comparison: a anchors against c candidates.
        generator: not used.
        score: measure of nearness, a key of SCORES.

    Raises:
        InputError: `score` is unknown, or is a distance for a comparison with relevance scores instead of vectors.
    """
    distance = dissimilarity(comparison, score).detach()
    positives = own_positives(comparison)
    apart = (distance - value_at(distance, positives)).abs()
    negatives = comparison.negatives & positives.any(1, keepdim=True)
    return comparison.narrow(positives, lowest(apart, negatives))


def text_based_hard(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose text is most like the anchor's: argmax_j T_ij.

    Args:
        comparison: a anchors against c candidates, with the guide T in `guides["text"]`: (a, c) similarities of
            the texts of anchors and candidates.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "text", sign=-1)


def text_based_easy(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose text is least like the anchor's: argmin_j T_ij.

    Args:
        comparison: a anchors against c candidates, with the guide T in `guides["text"]`: (a, c) similarities of
            the texts of anchors and candidates.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "text", sign=1)


def audio_based_hard(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose audio is most like the anchor's: argmax_k A_ik.

    Args:
        comparison: a anchors against c candidates, with the guide A in `guides["audio"]`: (a, c) similarities of
            the audio of anchors and candidates.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "audio", sign=-1)


def audio_based_easy(comparison: Comparison, generator: torch.Generator) -> Comparison:
    """Select the negative whose audio is least like the anchor's: argmin_k A_ik.

    Args:
        comparison: a anchors against c candidates, with the guide A in `guides["audio"]`: (a, c) similarities of
            the audio of anchors and candidates.
        generator: not used.

    Raises:
        InputError: the comparison does not have this guide.
    """
    return _guided(comparison, "audio", sign=1)


def _guided(comparison: Comparison, guide: str, *, sign: int) -> Comparison:
    if guide not in comparison.guides:
        available = ", ".join(comparison.guides) or "none"
        raise InputError(
            f"selection: this comparison has no similarities within {guide} (available guides: {available}); choose "
            "another selection"
        )
    return comparison.narrow(negatives=lowest(sign * comparison.guides[guide], comparison.negatives))
