"""Names of metrics ("map", "recall@10", "package.module:name@5"), and their keys in the JSON."""

from collections.abc import Collection
from typing import Literal

from aadml.feature_extraction.ground.errors import InputError

ALWAYS = ("map", "map-at-r", "mean-rank", "median-rank")
"""Metrics of every evaluation, in addition to those of AT_CUTOFFS at the cutoffs of the tables."""

SMALLER_IS_BETTER = ("mean-rank", "median-rank")

Gallery = Literal["full", "without-partner", "disjoint"]
"""Gallery of a query: all clips, all clips except the query's own, or the half of the clips without the query."""

OTHER_GALLERIES: dict[str, Gallery] = {"map-without-partner": "without-partner", "map-disjoint": "disjoint"}
"""Name of a metric -> its gallery, other than "full"."""

CHANCE_OF = "chance_of"
"""Key, in the JSON of a direction, of the chance levels of metrics other than MAP."""

AT_CUTOFFS = {"precision": "precision_at", "recall": "recall_at", "hit-rate": "hit_rate_at"}
NORMALIZED = {"map": "all", "map-min": "min(R,k)", "map-hits": "hits"}


def split_name(metric: str) -> tuple[str, int | None]:
    """Split a name at the @: "recall@10" -> ("recall", 10), "map" -> ("map", None).

    Raises:
        InputError: the text after the @ is not a cutoff.
    """
    name, at, cutoff = metric.partition("@")
    if not at:
        return name, None
    if not cutoff.isdecimal() or int(cutoff) < 1:
        raise InputError(
            f"metric {metric}: '{cutoff}' is not a cutoff; write a number of at least 1 after the @, as in recall@10"
        )
    return name, int(cutoff)


def place_of(metric: str) -> tuple[str, ...]:
    """Return the keys of a metric in the JSON of a direction: "recall@10" -> ("recall_at", "10").

    Raises:
        InputError: the text after the @ is not a cutoff.
    """
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


def names_at(places: Collection[tuple[str, ...]]) -> list[str]:
    """Return "map" and the names of the metrics at some keys in the JSON of a direction."""
    cutoffs = sorted({place[-1] for place in places if place[-1].isdecimal()}, key=int)
    with_cutoff = [f"{name}@{cutoff}" for name in (*AT_CUTOFFS, *NORMALIZED) for cutoff in cutoffs]
    others = [place[1] for place in places if place[0] == "metrics"]
    names = (*ALWAYS, *OTHER_GALLERIES, "running", *with_cutoff, *others)
    return [name for name in names if name == "map" or place_of(name) in places]
