"""STAGES of the plan: which runs each asks for, as far as what is finished decides it. Test clips choose nothing."""

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from aadml.retrieval.sequential import is_decided
from aadml.sweeps.controls import controls, rivals
from aadml.sweeps.plan.contenders import ANCHOR_AWARE, CONTENDERS, MEMORY, PLAIN, RIVALS, Contender, drawn_points
from aadml.sweeps.plan.experiment import PROTOCOLS, STEPS, DataSet, Run
from aadml.sweeps.plan.ledger import Ledger, Row
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.json_values import JsonObject

FIRST_SEED = 100
"""Of stage 2 and all after it; the seeds of stage 1 are not used again."""
LOOKS = (10, 20, 30, 40)
"""Numbers of seeds at which the sequential rule looks."""
CONTROL_SEEDS = 10
FULL_SEEDS = 3


@dataclass(frozen=True)
class Round:
    """A round of successive halving.

    Attributes:
        ending: of the name of its stage.
        kept: points a method.
        steps: at most.
        seed: of its runs.
    """

    ending: str
    kept: int
    steps: int
    seed: int


ROUNDS = (Round("1a", 27, 140, 0), Round("1b", 9, 420, 1), Round("1c", 3, 840, 2))
CHOOSING = 2
"""The last rounds, by whose mean validation MAP options are chosen."""


@dataclass(frozen=True)
class Experiment:
    """What the stages are of.

    Attributes:
        sets: name -> data set, in order of importance.
        seeds: at most, of each method.
        ledger: what is finished.
    """

    sets: Mapping[str, DataSet]
    seeds: int
    ledger: Ledger


def runs_of(stage: str, experiment: Experiment) -> list[Run]:
    """List the runs of a stage that are known to be needed, finished ones too.

    A stage that builds on others lists nothing for data sets on which those are not finished; `stage-2` grows as looks
    are undecided.
    """
    found = []
    for name, data_set in experiment.sets.items():
        found += STAGES[stage](name, data_set, experiment)
    return found


def chosen_options(prefix: str, name: str, method: str, ledger: Ledger) -> JsonObject | None:
    """Give the options of the best mean validation MAP over the last rounds of a search; None before they are there.

    Args:
        prefix: of the search's stages, "stage-" or "rivals-".
        name: of the data set.
        method: contender or rival.
        ledger: what is finished.
    """
    last = [_by_options(prefix, one, name, method, ledger) for one in ROUNDS[-CHOOSING:]]
    if not last[-1] or len(last[-1]) < min(ROUNDS[-1].kept, len(last[0])):
        return None
    means = {options: sum(_score(one[options]) for one in last) / len(last) for options in last[-1]}
    best = min(means, key=lambda options: (-means[options], options))
    return dict(json.loads(best)) if math.isfinite(means[best]) else None


def _by_options(prefix: str, one: Round, name: str, method: str, ledger: Ledger) -> dict[str, Row]:
    rows = ledger.rows(prefix + one.ending)
    return {row.options: row for row in rows if (row.data_set, row.method) == (name, method)}


def _score(row: Row) -> float:
    return -math.inf if row.valid_map is None else row.valid_map


Methods = Mapping[str, Contender]
Lister = Callable[[str, DataSet, Experiment], list[Run]]


def _searched(prefix: str, methods: Methods, number: int) -> Lister:
    """Make a round of successive halving: points drawn, then the best of the round before."""

    def listed(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
        one, stage = ROUNDS[number], prefix + ROUNDS[number].ending
        runs = []
        for method, contender in methods.items():
            points = drawn_points(method, contender, data_set.base, ROUNDS[0].kept)
            for before, after in itertools.pairwise(ROUNDS[: number + 1]):
                points = _best(points, _by_options(prefix, before, name, method, experiment.ledger), after.kept)
            runs += [
                Run.of(stage, name, method, p, data_set.config(method, p, one.steps), one.seed, split="valid")
                for p in points
            ]
        return runs

    return listed


def _best(points: Sequence[JsonObject], rows: Mapping[str, Row], kept: int) -> list[JsonObject]:
    """Keep the best points of a finished round, ties in the order of the points; none of one that is not finished."""
    found = [rows.get(json.dumps(point, sort_keys=True)) for point in points]
    known = [row for row in found if row is not None]
    if len(known) < len(points):
        return []
    order = sorted(range(len(points)), key=lambda i: -_score(known[i]))
    return [points[i] for i in order[:kept]]


def _finalists(prefix: str, name: str, methods: Methods, ledger: Ledger) -> dict[str, JsonObject]:
    """Give the chosen options of all methods of a search; nothing before all are chosen."""
    chosen = {method: chosen_options(prefix, name, method, ledger) for method in methods}
    found = {method: options for method, options in chosen.items() if options is not None}
    return found if len(found) == len(chosen) else {}


def _finals(stage: str, name: str, data_set: DataSet, chosen: Mapping[str, JsonObject], seeds: int) -> list[Run]:
    """List the finalists' runs seed by seed, so that what is finished can be compared."""
    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for method, options in chosen.items():
            scored = tuple(PROTOCOLS) if (stage, method) == (SECOND, ANCHOR_AWARE) else ()
            config = data_set.config(method, options, STEPS, stops=stage != FULL)
            found.append(Run.of(stage, name, method, options, config, seed, protocols=scored))
    return found


def _sequential(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    chosen = _finalists("stage-", name, CONTENDERS, experiment.ledger)
    return _finals(SECOND, name, data_set, chosen, seeds_needed(name, experiment))


def _full(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    chosen = _finalists("stage-", name, CONTENDERS, experiment.ledger)
    return _finals(FULL, name, data_set, chosen, min(FULL_SEEDS, experiment.seeds))


def _rival_finals(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    chosen = _finalists("rivals-", name, RIVALS, experiment.ledger)
    return _finals("rivals-2", name, data_set, chosen, min(CONTROL_SEEDS, experiment.seeds))


def _controlled(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """List the controls of the chosen anchor-aware options, without those that are the same training."""
    chosen = _finalists("stage-", name, CONTENDERS, experiment.ledger)
    if not chosen:
        return []
    options = chosen[ANCHOR_AWARE]
    config = data_set.config(ANCHOR_AWARE, options, STEPS)
    beside = {control: one for control, one in (controls(config) | rivals(config)).items() if one != config}
    return [
        Run.of(THIRD, name, f"{ANCHOR_AWARE}, {control}", options, one, seed)
        for seed in range(FIRST_SEED, FIRST_SEED + min(CONTROL_SEEDS, experiment.seeds))
        for control, one in beside.items()
    ]


def seeds_needed(name: str, experiment: Experiment) -> int:
    """Say how many seeds stage 2 has on a data set: up to the first look that is not complete, or that decides."""
    limit = min(experiment.seeds, LOOKS[-1])
    rows = finals(name, experiment.ledger)
    for look in sorted({min(look, limit) for look in LOOKS}):
        seeds = range(FIRST_SEED, FIRST_SEED + look)
        if any(seed not in rows.get(method, {}) for method in CONTENDERS for seed in seeds):
            return look
        pairs = [paired(rows, ANCHOR_AWARE, other, seeds) for other in (PLAIN, MEMORY)]
        if all(is_decided(*pair) for pair in pairs):
            return look
    return limit


def finals(name: str, ledger: Ledger, stage: str = "stage-2") -> dict[str, dict[int, Row]]:
    """Give method -> seed -> row of the finalists on a data set, failed ones too."""
    found: dict[str, dict[int, Row]] = {}
    for row in ledger.rows(stage):
        if row.data_set == name:
            found.setdefault(row.method, {})[row.seed] = row
    return found


def paired(
    rows: Mapping[str, Mapping[int, Row]], first: str, second: str, seeds: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Give the test MAPs of two methods on those of some seeds on which neither failed."""
    pairs = [(rows[first][seed].test_map, rows[second][seed].test_map) for seed in seeds]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return [a for a, _ in known], [b for _, b in known]


SECOND, FULL, THIRD = "stage-2", "full", "stage-3"

STAGES: dict[str, Lister] = {
    **{f"stage-{one.ending}": _searched("stage-", CONTENDERS, i) for i, one in enumerate(ROUNDS)},
    SECOND: _sequential,
    FULL: _full,
    THIRD: _controlled,
    **{f"rivals-{one.ending}": _searched("rivals-", RIVALS, i) for i, one in enumerate(ROUNDS)},
    "rivals-2": _rival_finals,
}
"""Name of a stage, which is that of its CSV file -> what lists its runs."""


def chosen_stages(only: str | None) -> list[str]:
    """Read "stage-1,full" of `--only`: names of stages, or what several begin with.

    Raises:
        InputError: one that no stage begins with.
    """
    if not only:
        return list(STAGES)
    wanted = [part.strip() for part in only.split(",") if part.strip()]
    for part in wanted:
        if not any(stage.startswith(part) for stage in STAGES):
            raise InputError(f"no stage '{part}'; there are: {', '.join(STAGES)}")
    return [stage for stage in STAGES if any(stage.startswith(part) for part in wanted)]
