"""Metrics on request: from the names of METRICS, with a cutoff where they take one, to functions of rankings."""

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
"""A name for several metrics, each at all cutoffs of the tables."""

Function = Callable[[Ranking], Values]
Requested = Mapping[tuple[str, ...], Function]
"""Place in the JSON -> function of a ranking, one value a query (b,)."""


def requested(names: Iterable[str], cutoffs: Sequence[int], items: int) -> Requested:
    """Find the functions of metrics.

    Args:
        names: of METRICS, alone or with a cutoff; one that needs a cutoff and has none is computed at all of `cutoffs`;
            those of another gallery are checked and left out.
        cutoffs: those of the tables.
        items: the size of the gallery.

    Raises:
        InputError: an unknown metric, a cutoff that it does not take, or one beyond the gallery's size.
    """
    functions: dict[tuple[str, ...], Function] = {}
    for name in names:
        for one in _spelled_out(name, cutoffs):
            check_cutoff(one, items)
            if one not in ALWAYS and one not in OTHER_GALLERIES:
                functions[place_of(one)] = function_of(one)
    return functions


def check_cutoff(metric: str, items: int) -> None:
    """Refuse a cutoff beyond the size of the gallery.

    Raises:
        InputError: says how many items there are.
    """
    cutoff = split_name(metric)[1]
    if cutoff is not None and cutoff > items:
        raise InputError(f"metric {metric}: the gallery holds {items} items; take a cutoff up to {items}, or map")


def check_columns(names: Sequence[str] | str | None) -> tuple[str, ...]:
    """Check metrics each of which is to be one figure: a column of a table, or the criterion of an epoch.

    Raises:
        InputError: an unknown metric, one without the cutoff it needs, or with one that it does not take.
    """
    found = tuple(dict.fromkeys(listed(names)))
    for name in found:
        if list(_spelled_out(name, (1, 2))) != [name]:
            raise InputError(f"metric {name}: needs a cutoff here, as in {FAMILIES.get(name, (name,))[0]}@10")
    return found


def check_criterion(name: str) -> str:
    """Check a metric that is to choose the epoch.

    Raises:
        InputError: not one figure, or one that is better when it is smaller.
    """
    (found,) = check_columns([name])
    if found in SMALLER_IS_BETTER:
        raise InputError(f"training.criterion: {name} is better when smaller; take one that is better when larger")
    return found


def function_of(name: str) -> Function:
    """Find the function of one figure ("map", "recall@10").

    Raises:
        InputError: an unknown metric, or a cutoff that it does not take.
    """
    base, cutoff = split_name(name)
    entry = lookup(METRICS, base, "metric")
    return partial(_checked, entry if cutoff is None else partial(entry, cutoff=cutoff), name)


def _spelled_out(name: str, cutoffs: Sequence[int]) -> list[str]:
    """Name single figures: a metric that needs a cutoff and has none stands for one at each."""
    if name in FAMILIES:
        return [f"{one}@{k}" for one in FAMILIES[name] for k in cutoffs]
    base, cutoff = split_name(name)
    options = schema(lookup(METRICS, base, "metric"))
    if cutoff is not None and "cutoff" not in options:
        raise InputError(f"metric {name}: {base} takes no cutoff")
    needs = "cutoff" in options and options["cutoff"].default is REQUIRED
    return [f"{base}@{k}" for k in cutoffs] if needs and cutoff is None else [name]


def _checked(function: Function, name: str, ranking: Ranking) -> Values:
    values = require_result(np.asarray(function(ranking)), MetricFunction, "metric", name).astype(np.float64)
    if len(values) != len(ranking):
        raise InputError(f"metric {name} returned {len(values)} numbers for {len(ranking)} queries; return one each")
    return values
