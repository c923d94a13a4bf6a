"""Functions of the requested metrics, by names of METRICS with or without a cutoff."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from aadml.feature_extraction.ground.contracts import require_result
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import REQUIRED, schema
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.ground.strings import listed
from aadml.retrieval import METRICS
from aadml.retrieval.contract import MetricFunction
from aadml.retrieval.metric_names import ALWAYS, OTHER_GALLERIES, SMALLER_IS_BETTER, place_of, split_name
from aadml.retrieval.ranking import Ranking
from aadml.retrieval.ties import Values

FAMILIES = {"map-at-k": ("map", "map-min", "map-hits")}
"""Name of a family -> its metrics, each at all cutoffs of the tables."""

Function = Callable[[Ranking], Values]
Requested = Mapping[tuple[str, ...], Function]
"""Keys in the JSON of a direction -> function of a ranking, which returns one value per query (b,)."""


def requested(names: Iterable[str], cutoffs: Sequence[int], items: int) -> Requested:
    """Return the functions that compute metrics, by the keys of each metric in the JSON of a direction.

    Args:
        names: names of METRICS, with or without a cutoff, or of FAMILIES. A metric without its required cutoff is
            computed at all `cutoffs`. Metrics of every evaluation and of other galleries are checked and omitted.
        cutoffs: cutoffs of the tables.
        items: size of the gallery.

    Raises:
        InputError: a metric is unknown, or its cutoff is invalid, superfluous or above the gallery size.
    """
    functions: dict[tuple[str, ...], Function] = {}
    for metric in (metric for name in names for metric in _single_metrics(name, cutoffs)):
        check_cutoff(metric, items)
        if metric not in ALWAYS and metric not in OTHER_GALLERIES:
            functions[place_of(metric)] = function_of(metric)
    return functions


def check_cutoff(metric: str, items: int) -> None:
    """Raise InputError if the cutoff of a metric is above the size of the gallery."""
    cutoff = split_name(metric)[1]
    if cutoff is not None and cutoff > items:
        raise InputError(
            f"metric {metric}: the gallery has {items} items; use a cutoff up to {items}, or the metric map"
        )


def check_columns(names: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the distinct metrics among `names`, for table columns or a criterion.

    Each metric must be a single number, such as "map" or "recall@10".

    Raises:
        InputError: a metric is unknown, or its cutoff is missing, invalid or superfluous.
    """
    metrics = tuple(dict.fromkeys(listed(names)))
    for name in metrics:
        if _single_metrics(name, (1, 2)) != [name]:
            raise InputError(f"metric {name} needs a cutoff; add the cutoff, as in {FAMILIES.get(name, (name,))[0]}@10")
    return metrics


def check_criterion(name: str) -> str:
    """Return a metric after checking that it can select the epoch.

    Raises:
        InputError: the metric is unknown, is not a single number, or is better when smaller.
    """
    if check_columns([name]) != (name,):
        raise InputError(f"training.criterion: '{name}' is not a single metric; pass one metric, as in map")
    if name in SMALLER_IS_BETTER:
        raise InputError(
            f"training.criterion: {name} is better when smaller; choose a metric that is better when larger"
        )
    return name


def function_of(name: str) -> Function:
    """Return the function of a single metric ("map", "recall@10"), as accepted by `check_columns`.

    Raises:
        InputError: the metric is unknown, or the text after the @ is not a cutoff.
    """
    base, cutoff = split_name(name)
    entry = lookup(METRICS, base, "metric")
    return partial(_checked, entry if cutoff is None else partial(entry, cutoff=cutoff), name)


def _single_metrics(name: str, cutoffs: Sequence[int]) -> list[str]:
    """Return the single metrics of a name: one per cutoff if a required cutoff is missing.

    Raises:
        InputError: the metric is unknown or has another option than `cutoff`, or its cutoff is invalid or superfluous.
    """
    if name in FAMILIES:
        return [f"{metric}@{k}" for metric in FAMILIES[name] for k in cutoffs]
    base, cutoff = split_name(name)
    options = schema(lookup(METRICS, base, "metric"))
    others = [option for option in options if option != "cutoff"]
    if others:
        raise InputError(
            f"metric {base} has the option '{others[0]}', but the only option of a metric is cutoff; remove the option"
        )
    if cutoff is not None and "cutoff" not in options:
        raise InputError(f"metric {name}: {base} accepts no cutoff; pass {base}")
    needs = "cutoff" in options and options["cutoff"].default is REQUIRED
    return [f"{base}@{k}" for k in cutoffs] if needs and cutoff is None else [name]


def _checked(function: Function, name: str, ranking: Ranking) -> Values:
    values = require_result(np.asarray(function(ranking)), MetricFunction, "metric", name).astype(np.float64)
    if len(values) != len(ranking):
        raise InputError(
            f"metric {name} returned {len(values)} numbers for {len(ranking)} queries; return one number per query"
        )
    return values
