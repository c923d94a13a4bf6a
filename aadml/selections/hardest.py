"""Hardest negatives: each anchor's nearest negative (VSE++, Faghri et al., BMVC 2018), and batch-hard triplets.

Reference: Faghri et al., VSE++: improving visual-semantic embeddings with hard negatives, BMVC 2018, https://arxiv.org/abs/1707.05612
"""

import torch

from aadml.comparison import Comparison
from aadml.comparison.row_choice import Positive, chosen_positives, lowest
from aadml.comparison.scores import Score, dissimilarity


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
