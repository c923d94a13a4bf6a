"""Execution of the experiment of docs/lab/experiments/plan.md, from its data sets to its ledger and its page."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.configuration.config import DEFAULT_METHOD, resolve
from aadml.configuration.files import ConfigFile, open_config
from aadml.configuration.overrides import setting_pairs
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.papers.reproduction_plan import ReproductionPlan
from aadml.runs.data import data_location, load_splits
from aadml.studies.execution import SweepResult, work_off_needed
from aadml.studies.folder import refuse_foreign, sole_owner
from aadml.studies.forecast import Forecast, forecast, in_words
from aadml.studies.grid import Overrides
from aadml.studies.sweep import SweepOutcome, worker_count
from scripts.experiments.anchor_aware.contenders import ANCHOR_AWARE, NARROW, is_removed
from scripts.experiments.anchor_aware.experiment import STEPS, DataSet, Experiment, Run
from scripts.experiments.anchor_aware.finals import SECOND, THIRD, same_training
from scripts.experiments.anchor_aware.fold import HERE
from scripts.experiments.anchor_aware.ledger import Ledger
from scripts.experiments.anchor_aware.page import summary, write_plan_page
from scripts.experiments.anchor_aware.search import MAIN, finalists
from scripts.experiments.anchor_aware.sets import (
    SETS,
    SHARED,
    SetFacts,
    drawn_name,
    drawn_place,
    keep_facts,
    read_facts,
)
from scripts.experiments.anchor_aware.stages import STAGES, chosen_stages, is_of_shares, runs_of, stage_before
from scripts.experiments.anchor_aware.tables import figure_name

AT_ONCE = 9
"""Number of runs per worker between two writes of the ledger."""
REMOVED = "reading R2 was removed (docs/lab/deletions.md); commit 970f5aa6d682 trains it"


@dataclass(frozen=True, kw_only=True)
class ExperimentPlan(ReproductionPlan):
    """Plan of the experiment.

    Attributes:
        config: base config of all methods; None is the narrow config of the plan.
        frozen: set of docs/lab/experiments whose chosen options are trained; None chooses options on the data.
    """

    config: str | None = None
    frozen: str | None = None


def run_experiment(data: Sequence[str], only: str | None, plan: ExperimentPlan) -> SweepResult:
    """Train the runs of stages that have no row yet, and write the page.

    Args:
        data: feature files, the main set first; the name of a set is the stem of its file.
        only: stages, separated by commas; None selects all.
        plan: folder, configuration and workers of the experiment; a method has at most `plan.seeds` seeds.

    Raises:
        InputError: there are no data, two files have the same name, the data differ from those of the ledger, a stage
            is unknown or combined with frozen options, a set has no chosen options, or the folder contains other files.
    """
    if not data and not plan.merge:
        raise InputError("no data; give --data F.h5, once for each data set")
    frozen = frozen_options(plan.frozen) if plan.frozen else {}
    if frozen and only:
        raise InputError(f"--only {only} was given beside --frozen, which trains {SECOND} alone; leave --only out")
    stages = [SECOND] if frozen else chosen_stages(only)
    if not (plan.folder / SETS).is_file():
        refuse_foreign(plan.folder)
    with sole_owner(plan.locked):
        ledger = Ledger((plan.locked, *(one for one in shard_folders(plan.folder) if one != plan.locked)))
        sets, outcomes = _data_sets(data, plan, ledger), list[SweepOutcome]()
        if not plan.merge:
            shares = {drawn_name(one): drawn_place(one) for one in SHARED if any(map(is_of_shares, stages))}
            experiment = Experiment(sets, len(plan.seeds), ledger, _read_sets(shares, plan, ledger), frozen)
            _refuse_other_options(experiment, plan)
            _forecast(stages, experiment, plan)
            for stage in stages:
                outcomes += _worked_off(stage, experiment, plan)
        if plan.shard:
            return SweepResult(tuple(outcomes), plan.folder)
        ledger.absorb(list(STAGES))
        for folder in ledger.folders[1:]:
            keep_facts(plan.folder, read_facts(folder))
        page = write_plan_page(plan.folder)
        return SweepResult(tuple(outcomes), plan.folder, summary(plan.folder), page)


def frozen_options(name: str) -> dict[str, JsonObject]:
    """Return method -> options that the experiment chose on one of its own sets.

    Raises:
        InputError: no options were chosen on a set with this name.
    """
    ledger = Ledger((HERE,))
    if options := finalists(MAIN, name, ledger):
        return options
    known = sorted(one for one in read_facts(HERE) if finalists(MAIN, one, ledger))
    raise InputError(f"--frozen {name}: no options were chosen on a set of that name; give one of {', '.join(known)}")


def _refuse_other_queries(facts: Mapping[str, SetFacts], ledger: Ledger) -> None:
    """Raise InputError if the number of queries in the rows of a data set differs from its number of test clips."""
    for stage in STAGES:
        for key, values in ledger.precisions(stage).items():
            if key.data_set in facts and len(values) != (clips := facts[key.data_set].test):
                raise InputError(
                    f"{ledger.folders[0]}: the rows of {key.data_set} in {stage} are of another test set, of "
                    f"{len(values)} queries, and the data has {clips} test clips; rename the data or use another folder"
                )


def _refuse_other_options(experiment: Experiment, plan: ExperimentPlan) -> None:
    """Raise InputError if rows of the data sets have other options than the frozen options."""
    frozen = {method: json.dumps(options, sort_keys=True) for method, options in experiment.frozen.items()}
    for row in experiment.ledger.rows(SECOND) if frozen else ():
        if row.data_set in experiment.sets and row.options != frozen.get(row.method):
            raise InputError(
                f"{plan.folder}: the rows of {row.data_set} in {SECOND} have other options than the frozen ones of "
                f"{plan.frozen}; use another folder"
            )


def shard_folders(folder: Path) -> list[Path]:
    """Return the folder of an experiment and those of its shards."""
    return [folder, *sorted(folder.glob("shard-*-of-*"))]


def _data_sets(data: Sequence[str], plan: ExperimentPlan, ledger: Ledger) -> dict[str, DataSet]:
    """Read the parts of the data that the schedules require, and record facts about the data."""
    places: dict[str, str] = {}
    for place in map(data_location, data):
        name = Path(place).stem
        if figure_name(name, "") in {figure_name(other, "") for other in places}:
            raise InputError(f"two files are called {name}; give them different names")
        places[name] = place
    return _read_sets(places, plan, ledger)


def _read_sets(places: Mapping[str, str], plan: ExperimentPlan, ledger: Ledger) -> dict[str, DataSet]:
    """Read data sets from name -> path."""
    sets: dict[str, DataSet] = {}
    facts: dict[str, SetFacts] = {}
    own = Overrides(dict(setting_pairs(plan.settings)))
    for name, place in places.items():
        base = ConfigFile({**open_config(plan.config or DEFAULT_METHOD).values, "data": place})
        base = own.within(base if plan.config else Overrides(NARROW).within(base))
        config = resolve(base.values)
        splits = load_splits(config)
        facts[name], clips = SetFacts.of(name, splits), len(splits.train)
        sets[name] = DataSet(base.values, -(-clips // config.training.batch), clips, own, plan.max_epochs)
    _refuse_other_queries(facts, ledger)
    keep_facts(plan.locked, facts)
    return sets


def _forecast(stages: Sequence[str], experiment: Experiment, plan: ExperimentPlan) -> None:
    """Print the estimated cost of the known runs, and ask for confirmation before long ones."""
    waiting = [run for stage in stages for run in _missing(stage, runs_of(stage, experiment), experiment, plan)]
    if waiting:
        workers = max(worker_count(plan.workers, [run.job(plan.folder) for run in waiting]), 1)
        jobs = [run.job(plan.folder) for run in waiting]
        # options hardly change the time of a step
        kinds = {str(job.folder): (run.key.data_set, run.key.method) for job, run in zip(jobs, waiting, strict=True)}
        expected = forecast(jobs, workers, plan.note, kinds)
        plan.note(forecast_in_words(waiting, expected))
        plan.confirm(expected)
    for name, data_set in experiment.sets.items() if THIRD in stages else ():
        if options := finalists(MAIN, name, experiment.ledger).get(ANCHOR_AWARE):
            for control, reason in same_training(data_set.config(ANCHOR_AWARE, options, STEPS)).items():
                plan.note(f"{THIRD}: on {name}, {control} is the same training as the chosen AA, not run: {reason}")


def forecast_in_words(runs: Sequence[Run], expected: Forecast) -> str:
    """Return the number of waiting runs of each stage, and an upper limit on their time."""
    counts = ", ".join(f"{stage} {count}" for stage, count in Counter(run.stage for run in runs).items())
    return (
        f"forecast: {len(runs)} runs are known to be needed ({counts}), at most about {in_words(expected.wall)} on "
        f"{expected.workers} worker{'s' if expected.workers != 1 else ''}; what builds on them comes on top"
    )


def _worked_off(stage: str, experiment: Experiment, plan: ExperimentPlan) -> list[SweepOutcome]:
    """Run the missing runs of a stage, also as the stage grows; the ledger is written every few runs."""
    outcomes: list[SweepOutcome] = []
    while waiting := _missing(stage, runs := runs_of(stage, experiment), experiment, plan):
        plan.note(f"{stage}: {len(waiting)} runs to do")
        at_once = 1 if experiment.frozen else AT_ONCE
        step = at_once * max(worker_count(plan.workers, [run.job(plan.folder) for run in waiting]), 1)
        for begin in range(0, len(waiting), step):
            outcomes += _done(waiting[begin : begin + step], experiment.ledger, plan)
    sets = experiment.drawn if is_of_shares(stage) else experiment.sets
    waits = [name for name in sets if name not in {run.key.data_set for run in runs}]
    if waits and (before := stage_before(stage)):
        plan.note(f"{stage}: not yet on {', '.join(waits)}: {before} is not finished there; run --only {before} first")
    elif not runs:
        plan.note(f"{stage}: nothing to do")
    return outcomes


def _missing(stage: str, runs: Sequence[Run], experiment: Experiment, plan: ExperimentPlan) -> list[Run]:
    """Return the runs of a stage, or of this shard of the stage, that have no row."""
    there = {row.key for row in experiment.ledger.rows(stage)}
    shard = plan.shard
    return [run for run in (runs[shard[0] :: shard[1]] if shard else runs) if run.key not in there]


def _done(runs: Sequence[Run], ledger: Ledger, plan: ExperimentPlan) -> list[SweepOutcome]:
    """Run jobs of one stage, and write their rows."""
    jobs = {run.key: run.job(plan.folder) for run in runs if not is_removed(json.loads(run.key.options))}
    outcomes = work_off_needed(list(jobs.values()), plan.workers, plan.work)
    by_folder: Mapping[str, SweepOutcome] = {str(one.job.folder): one for one in outcomes}
    results = {}
    for run in runs:
        outcome = (
            by_folder[str(jobs[run.key].folder)] if run.key in jobs else SweepOutcome(run.job(plan.folder), REMOVED)
        )
        results[run.key] = run.result(outcome)
    ledger.add(
        runs[0].stage,
        [result.row for result in results.values()],
        {key: result.precisions for key, result in results.items() if result.precisions is not None},
        {key: result.pseudo_values for key, result in results.items() if result.pseudo_values is not None},
    )
    return outcomes
