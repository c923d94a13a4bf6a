"""MAP of the training clips: its distance from that of the validation clips shows what was learned by heart."""

import numpy as np

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Matrix
from aadml.retrieval import mean_average_precision

QUERIES = 2000
"""Where there are more training clips, so many of them ask, the same ones in every epoch; all are in the gallery."""
PAIRS = 200_000_000
"""Of a query and a clip in one direction, at most: from 100,000 clips on fewer ask, so that it never takes longer."""


def can_be_scored(train: Clips) -> bool:
    """Tell whether training clips are vectors; sound and captions made batch by batch are too slow to embed again."""
    return all(isinstance(features, Matrix) for features in train.features.values())


def train_scores(embeddings: Embeddings) -> dict[str, float]:
    """Score training clips: MAP of every direction, their mean, and the number of queries where not all clips ask.

    Nothing is drawn from the generators of the training.
    """
    count = len(embeddings)
    asking = min(count, QUERIES, max(1, PAIRS // max(1, count)))
    rows = np.arange(count)
    if asking < count:
        rows = np.sort(np.random.default_rng(0).choice(count, asking, replace=False))
    scores = {"-".join(one): mean_average_precision(embeddings, one, queries=rows) for one in embeddings.directions()}
    found = {"map_mean": sum(scores.values()) / len(scores)}
    found |= {f"map {name}": value for name, value in scores.items()}
    return found | ({"queries": asking} if asking < count else {})
