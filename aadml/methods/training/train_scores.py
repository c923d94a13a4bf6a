"""MAP of validation and training clips, whose distance shows what was learned by heart."""

import numpy as np

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Matrix
from aadml.retrieval import mean_average_precision
from aadml.retrieval.scores import Indices

QUERIES = 2000
"""Where there are more training clips, so many of them ask, the same ones in every epoch; all are in the gallery."""
PAIRS = 200_000_000
"""Of a query and a clip in one direction, at most: from 100,000 clips on fewer ask, so that it never takes longer."""


def can_be_scored(train: Clips) -> bool:
    """Tell whether training clips are vectors; sound and captions made batch by batch are too slow to embed again."""
    return all(isinstance(features, Matrix) for features in train.features.values())


def map_scores(embeddings: Embeddings, queries: Indices | None = None) -> dict[str, float]:
    """Give the MAP of every direction ("map audio-visual") and their mean ("map_mean"); `queries` (q,) ask, or all."""
    scores = {
        "-".join(one): mean_average_precision(embeddings, one, queries=queries) for one in embeddings.directions()
    }
    return {"map_mean": sum(scores.values()) / len(scores)} | {f"map {k}": v for k, v in scores.items()}


def train_scores(embeddings: Embeddings) -> dict[str, float]:
    """Score training clips: MAP of every direction, their mean, and the number of queries where not all clips ask.

    Nothing is drawn from the generators of the training.
    """
    count = len(embeddings)
    asking = min(count, QUERIES, max(1, PAIRS // max(1, count)))
    if asking == count:
        return map_scores(embeddings)
    rows = np.sort(np.random.default_rng(0).choice(count, asking, replace=False))
    return map_scores(embeddings, rows) | {"queries": asking}
