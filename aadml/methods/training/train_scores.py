"""MAP of training clips and of validation clips; the difference between both values indicates overfitting."""

import numpy as np

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Matrix
from aadml.retrieval.evaluation import mean_average_precision
from aadml.retrieval.galleries import sides_of
from aadml.retrieval.sampling import restricted
from aadml.retrieval.scores import Indices

QUERIES = 2000
"""Largest number of training clips that are queries: the same clips in every epoch. The gallery has all clips."""
PAIRS = 200_000_000
"""Largest number of (query, clip) pairs of a direction: with more than 100,000 clips there are fewer queries."""


def can_be_scored(train: Clips) -> bool:
    """Return whether all features are vectors. Other features are too slow to embed again."""
    return all(isinstance(features, Matrix) for features in train.features.values())


def map_scores(embeddings: Embeddings, queries: Indices | None = None) -> dict[str, float]:
    """Compute the MAP of every direction and the mean over directions.

    Args:
        embeddings: embeddings of n clips.
        queries: (q,) rows of the clips that are queries; None for all.

    Returns:
        A dict with a key for each direction, such as "map audio-visual", and the key "map_mean".

    Raises:
        InputError: no query of a direction has a relevant item, or the embeddings cannot be compared.
    """
    scores = {
        f"map {'-'.join(direction)}": mean_average_precision(embeddings, direction, queries=queries)
        for direction in embeddings.directions()
    }
    return {"map_mean": sum(scores.values()) / len(scores)} | scores


def train_scores(embeddings: Embeddings) -> dict[str, float]:
    """Compute `map_scores` of training clips, with a sample of the clips as queries if there are many clips.

    With a sample, the result also has the key "queries" with the size of the sample. The result is empty if no query
    of a direction has a relevant item, as with judgments of other clips only. Nothing is drawn from the generators of
    training.
    """
    count = len(embeddings)
    queries = min(count, QUERIES, max(1, PAIRS // max(1, count)))
    rows = None if queries == count else np.sort(np.random.default_rng(0).choice(count, queries, replace=False))
    if not _has_relevant(embeddings, rows):
        return {}
    return map_scores(embeddings, rows) | ({} if rows is None else {"queries": queries})


def _has_relevant(embeddings: Embeddings, queries: Indices | None) -> bool:
    """Return whether every direction has a query, among the rows `queries`, with a relevant item."""
    return all(
        embeddings.relevant.between(embeddings, sides.queries, sides.gallery).some.any()
        for direction in embeddings.directions()
        for sides in restricted(sides_of(embeddings, direction, "full"), queries)
    )
