"""Rankings, metrics that are exact for ties, and significance; METRICS is the registry of metrics of a ranking."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry

if TYPE_CHECKING:
    from aadml.retrieval.contract import MetricFunction

METRICS: Registry["MetricFunction"] = Registry(
    "metric",
    {
        "map": "aadml.retrieval.metrics:average_precision",
        "map-min": "aadml.retrieval.metrics:average_precision_over_reachable",
        "map-hits": "aadml.retrieval.metrics:average_precision_over_hits",
        "map-without-partner": "aadml.retrieval.galleries:average_precision_without_partner",
        "map-disjoint": "aadml.retrieval.galleries:average_precision_disjoint",
        "map-at-r": "aadml.retrieval.metrics:average_precision_at_r",
        "precision": "aadml.retrieval.metrics:precision",
        "recall": "aadml.retrieval.metrics:recall",
        "hit-rate": "aadml.retrieval.metrics:hit_rate",
        "mrr": "aadml.retrieval.metrics:reciprocal_rank",
        "ndcg": "aadml.retrieval.metrics:ndcg",
        "mean-rank": "aadml.retrieval.metrics:best_rank",
        "median-rank": "aadml.retrieval.metrics:best_rank",
        "running": "aadml.retrieval.legacy_running_map:running_average_precision",
    },
    group="aadml.metrics",
    of="aadml.retrieval.contract:MetricFunction",
)
"""Functions by name, called as `(ranking) -> (b,)` or `(ranking, *, cutoff) -> (b,)`: one value for each of b queries.

The metric is the mean over all queries (the median for "median-rank"). Larger values are better, except for
"mean-rank" and "median-rank". In a name, the cutoff follows an @: "recall@10".
"""
