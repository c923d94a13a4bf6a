"""MAP of training clips and of validation clips; the difference between both values indicates overfitting."""

from contextlib import suppress

import numpy as np

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Direction, Matrix
from aadml.retrieval.directions import NothingRelevantError
from aadml.retrieval.evaluation import mean_average_precision

QUERIES = 2000
"""Largest number of training clips that are queries: the same clips in every epoch. The gallery has all clips."""
PAIRS = 200_000_000
"""Largest number of (query, clip) pairs of a direction: with more than 100,000 clips there are fewer queries."""


def can_be_scored(train: Clips) -> bool:
    """Return whether all features are vectors. Other features are too slow to embed again."""
    return all(isinstance(features, Matrix) for features in train.features.values())


def map_scores(embeddings: Embeddings) -> dict[str, float]:
    """Compute the MAP of every direction and the mean over directions.

    Returns:
        A dict with a key for each direction, such as "map audio-visual", and the key "map_mean".

    Raises:
        InputError: no query of a direction has a relevant item, or the embeddings cannot be compared.
    """
    return _with_mean({_key(d): mean_average_precision(embeddings, d) for d in embeddings.directions()})


def train_scores(embeddings: Embeddings) -> dict[str, float]:
    """Compute the scores of `map_scores` for training clips, with a sample as queries if there are many clips.

    With a sample, the result also has the key "queries" with the size of the sample. A direction is omitted if no query
    has a relevant item, as with judgments of other clips only. The result is empty if all directions are omitted.
    Nothing is drawn from the generators of training.
    """
    count = len(embeddings)
    queries = min(count, QUERIES, max(1, PAIRS // max(1, count)))
    rows = None if queries == count else np.sort(np.random.default_rng(0).choice(count, queries, replace=False))
    scores: dict[str, float] = {}
    for direction in embeddings.directions():
        with suppress(NothingRelevantError):
            scores[_key(direction)] = mean_average_precision(embeddings, direction, queries=rows)
    if not scores:
        return {}
    return _with_mean(scores) | ({} if rows is None else {"queries": queries})


def _key(direction: Direction) -> str:
    return f"map {'-'.join(direction)}"


def _with_mean(scores: dict[str, float]) -> dict[str, float]:
    return {"map_mean": sum(scores.values()) / len(scores)} | scores
