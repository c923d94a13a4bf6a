"""Contract of metrics."""

from typing import Annotated, Any, Protocol

from aadml.feature_extraction.ground.contracts import Condition
from aadml.retrieval.ranking import Ranking
from aadml.retrieval.ties import Values

Column = Annotated[
    Values,
    Condition("an array with one number for each query", lambda v: v.ndim == 1 and v.dtype.kind in "biuf"),
]


class MetricFunction(Protocol):
    """Function of the rankings of b queries.

    A keyword-only argument `cutoff` is written after an @ in the name of the metric, as in "recall@10".
    """

    def __call__(self, ranking: Ranking, /, **options: Any) -> Column:
        """Compute one value for each query: (b,)."""
        ...
