"""How metrics are named ("map", "recall@10", "package.module:name@5"), and where their figures stand in the JSON."""

from typing import Literal

from aadml.feature_extraction.ground.errors import InputError

ALWAYS = ("map", "map-at-r", "mean-rank", "median-rank")
"""Metrics that every evaluation has; those of AT_CUTOFFS it has at the cutoffs of its tables."""

SMALLER_IS_BETTER = ("mean-rank", "median-rank")

Gallery = Literal["full", "without-partner", "disjoint"]
"""What a query ranks: all clips, all but its own, or the half of the clips that it is not of."""

OTHER_GALLERIES: dict[str, Gallery] = {"map-without-partner": "without-partner", "map-disjoint": "disjoint"}
"""Metrics of another gallery than the full one."""

CHANCE_OF = "chance_of"
"""Under this key of a direction stands what chance has of ranks, and of each metric that was asked for."""

AT_CUTOFFS = {"precision": "precision_at", "recall": "recall_at", "hit-rate": "hit_rate_at"}
NORMALIZED = {"map": "all", "map-min": "min(R,k)", "map-hits": "hits"}


def split_name(metric: str) -> tuple[str, int | None]:
    """Read a name: "recall@10" -> ("recall", 10), "map" -> ("map", None).

    Raises:
        InputError: what stands behind the @ is not a cutoff.
    """
    name, at, cutoff = metric.partition("@")
    if not at:
        return name, None
    if not cutoff.isdecimal() or int(cutoff) < 1:
        raise InputError(f"metric {metric}: write a cutoff of at least 1 behind the @, as in recall@10")
    return name, int(cutoff)


def place_of(metric: str) -> tuple[str, ...]:
    """Say under which keys of a direction the figure of a metric stands."""
    name, cutoff = split_name(metric)
    if cutoff is not None and name in AT_CUTOFFS:
        return AT_CUTOFFS[name], str(cutoff)
    if cutoff is not None and name in NORMALIZED:
        return "map_at", NORMALIZED[name], str(cutoff)
    if metric in OTHER_GALLERIES:
        return OTHER_GALLERIES[metric].replace("-", "_"), "map"
    if cutoff is None and name in ALWAYS:
        return (name.replace("-", "_"),)
    return ("running_map",) if metric == "running" else ("metrics", metric)
