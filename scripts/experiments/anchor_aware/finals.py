"""Stages that train the chosen options on separate seeds: the sequential rule, and ten seeds of all other methods."""

from collections.abc import Mapping, Sequence

from aadml.configuration.config import Config
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.proxies.anchor_aware import degeneracy
from aadml.studies.control_rows import AFFINE, ALONE, RANDOM, UNIFORM, controls, rivals
from scripts.experiments.anchor_aware.contenders import (
    ANCHOR_AWARE,
    CONTENDERS,
    MEMORY,
    NO_METRIC,
    PLAIN,
    READINGS,
    SUMS_ALONE,
)
from scripts.experiments.anchor_aware.essence import essence
from scripts.experiments.anchor_aware.experiment import PROTOCOLS, STEPS, DataSet, Experiment, Run
from scripts.experiments.anchor_aware.ledger import Ledger, Row
from scripts.experiments.anchor_aware.search import (
    MAIN,
    RIVALRY,
    SEARCHES,
    SHARES,
    SUMS,
    best_of,
    chosen_options,
    finalists,
)
from scripts.experiments.anchor_aware.sequential import is_decided

FIRST_SEED = 100
"""First seed of stage 2 and of all later stages; the seeds of stage 1 are not reused."""
LOOKS = (10, 20, 30, 40)
"""Numbers of seeds at which the sequential rule decides."""
CONTROL_SEEDS = 10
ANSWERING = (ALONE, RANDOM, UNIFORM, AFFINE)
"""Controls on the seeds of the last look of stage 2 (plan.md, amendment 6): H1 with the options of AA, and H3 to H5."""
FULL_SEEDS = 3
SHARE_SEEDS = 8
BEST_READINGS = 3

SECOND, FULL, THIRD, LAST_RIVALS = "stage-2", "full", "stage-3", "rivals-2"
LAST_READINGS, LAST_SHARES = "readings-2", "shares-2"


def seeds_of(count: int, experiment: Experiment) -> range:
    """Return the seeds of a stage with at most `count` seeds."""
    return range(FIRST_SEED, FIRST_SEED + min(count, experiment.seeds))


def sequential(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs of the chosen contenders by the sequential rule, or those of frozen options on all seeds."""
    chosen = experiment.frozen or finalists(MAIN, name, experiment.ledger)
    count = experiment.seeds if experiment.frozen else seeds_needed(name, experiment)
    return _finals(SECOND, MAIN, name, data_set, chosen, seeds_of(count, experiment))


def full(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs of the chosen contenders without early stopping."""
    chosen = finalists(MAIN, name, experiment.ledger)
    return _finals(FULL, MAIN, name, data_set, chosen, seeds_of(FULL_SEEDS, experiment))


def rival_finals(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs of the chosen rivals."""
    chosen = finalists(RIVALRY, name, experiment.ledger)
    return _finals(LAST_RIVALS, RIVALRY, name, data_set, chosen, seeds_of(CONTROL_SEEDS, experiment))


def reading_finals(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs of the best readings under the paper's sums, and of the methods compared with them."""
    best = best_of(SUMS, name, list(READINGS), BEST_READINGS, experiment.ledger)
    if not best or not best_of(SUMS, name, list(SEARCHES[SUMS].methods), 1, experiment.ledger):
        return []
    options = {one: chosen_options(SUMS, name, one, experiment.ledger) for one in (*best, NO_METRIC, SUMS_ALONE)}
    chosen = {method: one for method, one in options.items() if one is not None}
    return _finals(LAST_READINGS, SUMS, name, data_set, chosen, seeds_of(CONTROL_SEEDS, experiment))


def share_finals(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the runs of the methods that are compared at different shares of partners."""
    chosen = finalists(SHARES, name, experiment.ledger)
    return _finals(LAST_SHARES, SHARES, name, data_set, chosen, seeds_of(SHARE_SEEDS, experiment))


def _finals(
    stage: str, prefix: str, name: str, data_set: DataSet, chosen: Mapping[str, JsonObject], seeds: Sequence[int]
) -> list[Run]:
    """Return the runs of finalists ordered by seed, so that finished runs can be compared."""
    found = []
    for seed in seeds:
        for method, options in chosen.items():
            scored = tuple(PROTOCOLS) if (stage, method) == (SECOND, ANCHOR_AWARE) else ()
            loss = SEARCHES[prefix].methods[method].loss
            config = data_set.config(loss, options, STEPS, stops=stage != FULL)
            found.append(Run.of(stage, name, method, options, config, seed, protocols=scored))
    return found


def controlled(name: str, data_set: DataSet, experiment: Experiment) -> list[Run]:
    """Return the controls of the chosen anchor-aware options, without controls that are the same training."""
    chosen = finalists(MAIN, name, experiment.ledger)
    if not chosen:
        return []
    options = chosen[ANCHOR_AWARE]
    config = data_set.config(ANCHOR_AWARE, options, STEPS)
    same = same_training(config)
    looked, own = max(CONTROL_SEEDS, _last_look(name, experiment)), seeds_of(CONTROL_SEEDS, experiment)
    return [
        Run.of(THIRD, name, f"{ANCHOR_AWARE}, {control}", options, one, seed)
        for seed in seeds_of(looked, experiment)
        for control, one in _beside(config).items()
        if control not in same and (seed in own or control in ANSWERING)
    ]


def same_training(config: Config) -> dict[str, str]:
    """Return the controls of an anchor-aware config that are the same training, with the reason."""
    proxy, own = config.section("proxy"), essence(config)
    reason = (degeneracy(proxy.options) if proxy else None) or "its options are those of the control"
    return {control: reason for control, one in _beside(config).items() if essence(one) == own}


def _beside(config: Config) -> dict[str, Config]:
    return controls(config) | rivals(config)


def seeds_needed(name: str, experiment: Experiment) -> int:
    """Return the number of seeds of stage 2 on a data set: up to the first look that is incomplete or decisive."""
    limit = min(experiment.seeds, LOOKS[-1])
    rows, complete = finals(name, experiment.ledger), _last_look(name, experiment)
    for look in sorted({min(look, limit) for look in LOOKS}):
        if look > complete:
            return look
        seeds = range(FIRST_SEED, FIRST_SEED + look)
        pairs = [paired(rows, ANCHOR_AWARE, other, seeds) for other in (PLAIN, MEMORY)]
        if all(is_decided(*pair) for pair in pairs):
            return look
    return limit


def _last_look(name: str, experiment: Experiment) -> int:
    """Return the number of seeds of the last complete look of stage 2 on a data set; 0 before the first look."""
    rows, limit = finals(name, experiment.ledger), min(experiment.seeds, LOOKS[-1])

    def complete(look: int) -> bool:
        seeds = range(FIRST_SEED, FIRST_SEED + look)
        return all(seed in rows.get(method, {}) for method in CONTENDERS for seed in seeds)

    return max(filter(complete, {min(look, limit) for look in LOOKS}), default=0)


def finals(name: str, ledger: Ledger, stage: str = SECOND) -> dict[str, dict[int, Row]]:
    """Return method -> seed -> row of the finalists on a data set, including failed runs."""
    found: dict[str, dict[int, Row]] = {}
    for row in ledger.rows(stage):
        if row.data_set == name:
            found.setdefault(row.method, {})[row.seed] = row
    return found


def paired(
    rows: Mapping[str, Mapping[int, Row]], first: str, second: str, seeds: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Return the test MAPs of two methods on those of `seeds` on which both succeeded."""
    pairs = [(rows[first][seed].test_map, rows[second][seed].test_map) for seed in seeds]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return [a for a, _ in known], [b for _, b in known]
