"""SEARCHES of the plan: successive halving with equal trials for every method; no option is chosen on test clips."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aadml.feature_extraction.ground.json_values import JsonObject
from scripts.experiments.anchor_aware.contenders import CONTENDERS, RIVALS, SHARING, UNDER_SUMS, Contender, drawn_points
from scripts.experiments.anchor_aware.experiment import DataSet, Experiment, Run
from scripts.experiments.anchor_aware.ledger import Ledger, Row

CHOOSING = 2
"""Number of last rounds; options are chosen by their mean validation MAP over these rounds."""


@dataclass(frozen=True)
class Round:
    """A round of successive halving.

    Attributes:
        ending: end of the name of its stage.
        kept: number of points per method.
        steps: largest number of training steps.
        seed: seed of its runs.
    """

    ending: str
    kept: int
    steps: int
    seed: int


@dataclass(frozen=True)
class Search:
    """A search over the options of several methods, with equal budgets.

    Attributes:
        methods: methods by name.
        rounds: rounds; the first round draws the points.
    """

    methods: Mapping[str, Contender]
    rounds: tuple[Round, ...]


HALVING = (Round("1a", 27, 140, 0), Round("1b", 9, 420, 1), Round("1c", 3, 840, 2))
MAIN, RIVALRY, SUMS, SHARES = "stage-", "rivals-", "readings-", "shares-"
SEARCHES = {
    MAIN: Search(CONTENDERS, HALVING),
    RIVALRY: Search(RIVALS, HALVING),
    SUMS: Search(UNDER_SUMS, (Round("1", 4, 140, 0),)),
    SHARES: Search(SHARING, (Round("1a", 9, 140, 0), Round("1b", 3, 420, 1))),
}
"""Prefix of the names of a search's stages -> search."""


def rounds_by_stage() -> dict[str, tuple[str, int]]:
    """Return the stages of all searches: name -> prefix and number of the round."""
    return {
        prefix + one.ending: (prefix, number)
        for prefix, search in SEARCHES.items()
        for number, one in enumerate(search.rounds)
    }


def searched(prefix: str, number: int, name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs of a round on a data set: drawn points, then the best points of the previous round."""
    search = SEARCHES[prefix]
    one, runs = search.rounds[number], []
    for method, contender in search.methods.items():
        points = drawn_points(method, contender, data_set.base, search.rounds[0].kept)
        for before, after in itertools.pairwise(search.rounds[: number + 1]):
            points = _best(points, _by_options(prefix + before.ending, name, method, experiment.ledger), after.kept)
        runs += [
            Run.of(prefix + one.ending, name, method, point, data_set.config(contender.loss, point, one.steps),
                   one.seed, split="valid")
            for point in points
        ]  # fmt: skip
    return runs


def _best(points: Sequence[JsonObject], rows: Mapping[str, Row], kept: int) -> list[JsonObject]:
    """Return the best points of a finished round, ties in the order of the points; empty for an unfinished round."""
    found = [rows.get(json.dumps(point, sort_keys=True)) for point in points]
    known = [row for row in found if row is not None]
    if len(known) < len(points):
        return []
    order = sorted(range(len(points)), key=lambda i: -_score(known[i]))
    return [points[i] for i in order[:kept]]


def chosen_options(prefix: str, name: str, method: str, ledger: Ledger) -> JsonObject | None:
    """Return the options with the best mean validation MAP over the last rounds; None before these are finished.

    Args:
        prefix: prefix of the stages of the search.
        name: name of the data set.
        method: method of the search.
        ledger: finished runs.
    """
    best = _chosen(prefix, name, method, ledger)
    return dict(json.loads(best[1])) if best and math.isfinite(best[0]) else None


def finalists(prefix: str, name: str, ledger: Ledger) -> dict[str, JsonObject]:
    """Return the chosen options of all methods of a search; empty before all are chosen."""
    chosen = {method: chosen_options(prefix, name, method, ledger) for method in SEARCHES[prefix].methods}
    found = {method: options for method, options in chosen.items() if options is not None}
    return found if len(found) == len(chosen) else {}


def best_of(prefix: str, name: str, methods: Sequence[str], count: int, ledger: Ledger) -> list[str]:
    """Return the methods whose chosen options have the best mean validation MAP; empty before all are chosen."""
    scores = {method: _chosen(prefix, name, method, ledger) for method in methods}
    known = {method: best[0] for method, best in scores.items() if best is not None}
    return sorted(known, key=lambda method: -known[method])[:count] if len(known) == len(scores) else []


def _chosen(prefix: str, name: str, method: str, ledger: Ledger) -> tuple[float, str] | None:
    """Return the best mean validation MAP (minus infinity if all runs failed) and its options; None before the end."""
    rounds = SEARCHES[prefix].rounds[-CHOOSING:]
    last = [_by_options(prefix + one.ending, name, method, ledger) for one in rounds]
    asked = min(rounds[-1].kept, len(last[0])) if len(last) > 1 else rounds[-1].kept
    if not last[-1] or len(last[-1]) < asked:
        return None
    means = {options: sum(_score(one[options]) for one in last) / len(last) for options in last[-1]}
    best = min(means, key=lambda options: (-means[options], options))
    return means[best], best


def _by_options(stage: str, name: str, method: str, ledger: Ledger) -> dict[str, Row]:
    return {row.options: row for row in ledger.rows(stage) if (row.data_set, row.method) == (name, method)}


def _score(row: Row) -> float:
    return -math.inf if row.valid_map is None else row.valid_map
