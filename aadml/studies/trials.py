"""Equal budgets: the best config of each row, chosen on validation clips from an equal maximum number of trials."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.loading import read_config, read_evaluation
from aadml.runs.manifest import CONFIG, is_finished, is_run, read_manifest
from aadml.runs.train import continued_config
from aadml.studies.ablation_grid import run_folder
from aadml.studies.comparison_rows import ComparisonRow, Space
from aadml.studies.execution import Execution
from aadml.studies.folder import RUNS
from aadml.studies.grid import Axis, Cell, Overrides, Point, points
from aadml.studies.job import FAILURE, Job, recorded_failure
from aadml.studies.sweep import LOST, SweepOutcome

TRIALS = "trials"
RECORD = "trials.json"
Outcomes = Mapping[Path, SweepOutcome]
"""Folder of a run -> outcome."""


@dataclass(frozen=True)
class Trial(Point):
    """One point of the search space of a row. The first trial has the config of the row, and no settings.

    Attributes:
        job: the run, scored on validation clips only.
    """

    job: Job


def tuned_rows(
    rows: Sequence[ComparisonRow], budget: int, execution: Execution
) -> tuple[list[ComparisonRow], dict[str, str], dict[str, str]]:
    """Run the trials of every row, and return the rows with their best config.

    A failed trial, for example with unsuitable options, does not stop the comparison. A trial is lost if its process
    ended early. The best config of a row with a lost trial is provisional. A trial that was lost in an earlier call
    too counts as failed. The config of a row with runs was chosen in an earlier call, and is kept. Its failed trials
    are not repeated.

    Returns:
        The rows, and two mappings by name of a cell: the record of its trials as JSON, and the reason of a lost
        trial.

    Raises:
        InputError: the config of a row rejects a value of its search space, or the score of a trial or a run of a row
            cannot be read.
    """
    trials = {row.cell.name: trials_of(row, budget, execution.folder) for row in rows}
    earlier = {name: _chosen_before(name, several, budget, execution.folder) for name, several in trials.items()}
    jobs = [trial.job for several in trials.values() for trial in several]
    before = {job.folder: SweepOutcome(job, recorded_failure(job) or "not finished") for job in jobs}
    of_runs = [trial.job for name, several in trials.items() if earlier[name] for trial in several]
    unfinished = [job for job in of_runs if not is_finished(job.folder)]
    if unfinished:
        execution.note(
            "the options of rows with runs are kept, although trials failed "
            f"({', '.join(job.folder.name for job in unfinished)}); to choose again, pass another --output"
        )
    jobs = [job for job in jobs if job not in unfinished]
    execution.note(f"{len(jobs)} trials are scored on validation clips only")
    outcomes = before | {outcome.job.folder: outcome for outcome in execution.work(jobs, execution.workers)}
    tuned = [chosen_row(row, trials[row.cell.name], outcomes, budget, earlier[row.cell.name]) for row in rows]
    records, lost = dict[str, str](), dict[str, str]()
    for row, best in zip(rows, tuned, strict=True):
        records[best.cell.name] = _record(trials[row.cell.name], outcomes, best.cell.settings)
        for job in (trial.job for trial in trials[row.cell.name]):
            reason = outcomes[job.folder].reason
            if reason.startswith(LOST) and not before[job.folder].reason.startswith(LOST):
                with suppress(InputError):  # on a full disk, the trial counts as lost in the next call too
                    write_text(job.folder / FAILURE, reason)
                lost[best.cell.name] = (
                    f"{job.folder.name} is missing ({reason}); run the same command again, with fewer --workers if the "
                    "memory was full, and the trial counts as failed if its process ends early again"
                )
    return tuned, records, lost


def _chosen_before(name: str, trials: Sequence[Trial], budget: int, folder: Path) -> Trial | None:
    """Return the trial whose config the runs of a row have; None without runs, or with runs of another config."""
    pattern = f"{Cell(f'{name}_trials{budget}', trials[0].job.config).folder('seed')}*"
    for manifest in map(read_manifest, filter(is_run, sorted((folder / RUNS).glob(pattern)))):
        if CONFIG not in manifest.files:
            continue
        seed = read_config(manifest).common.seed
        for trial in trials:
            with suppress(InputError):
                continued_config(manifest, trial.job.config.seeded(seed))
                return trial
    return None


def write_records(records: Mapping[str, str], cells: Sequence[Cell], seeds: Sequence[int], folder: Path) -> None:
    """Write the records of `tuned_rows` into the run folders of the cells.

    Raises:
        InputError: a record cannot be written.
    """
    for cell, seed in itertools.product(cells, seeds):
        place = run_folder(folder, cell, seed)
        if cell.name in records and place.is_dir():
            write_text(place / RECORD, records[cell.name])


def trials_of(row: ComparisonRow, count: int, folder: Path) -> list[Trial]:
    """Draw the trials of a row: first its config, then distinct points of its search space. All runs have seed 0.

    Args:
        row: row with its search space. For a control or a loss, keys that the config rejects are omitted.
        count: number of trials; a smaller space is tried completely.
        folder: folder of the comparison.

    Raises:
        InputError: the config rejects a key or value of the space.
    """
    tried = points(row.cell.config, [Axis(key, tuple(values)) for key, values in _fitting(row).items()], Overrides())
    digest = hashlib.sha256(row.cell.name.encode()).digest()
    generator = np.random.default_rng([0, int.from_bytes(digest[:8], "little")])
    drawn = {row.cell.config.yaml(recipe=False): Point(Overrides(), row.cell.config)}
    for number in generator.permutation(len(tried)):
        drawn.setdefault(tried[number].config.yaml(recipe=False), tried[number])
    place = folder / TRIALS
    return [
        Trial(p.settings, p.config, Job(place / row.cell.folder(f"trial{number}"), p.config.seeded(0), "valid"))
        for number, p in enumerate(list(drawn.values())[:count])
    ]


def chosen_row(
    row: ComparisonRow, trials: Sequence[Trial], outcomes: Outcomes, budget: int, earlier: Trial | None = None
) -> ComparisonRow:
    """Return a row with the config of its best trial, or with its own config if all trials failed.

    Args:
        row: row of the trials.
        trials: trials of the row.
        outcomes: outcomes of all trials.
        budget: number of trials of every row, which becomes part of the row's name.
        earlier: trial that was chosen in an earlier call, if any.

    Raises:
        InputError: the score of a finished trial cannot be read.
    """
    finished = [trial for trial in trials if not outcomes[trial.job.folder].reason]
    best = earlier or max(finished, key=_score, default=trials[0])
    return replace(row, cell=Cell(f"{row.cell.name}_trials{budget}", best.config, best.settings))


def _score(trial: Trial) -> float:
    return read_evaluation(trial.job.folder).map_mean


def _record(trials: Sequence[Trial], outcomes: Outcomes, chosen: Overrides) -> str:
    """Return the trials of a row with their scores, and the chosen settings, as JSON."""
    tried = []
    for trial in trials:
        reason = outcomes[trial.job.folder].reason
        score = {"failed": reason} if reason else {"valid map_mean": _score(trial)}
        tried.append({"settings": trial.settings.values, **score, "folder": trial.job.folder.name})
    content = {"trials": tried, "chosen": chosen.values, "seed": 0}
    return json.dumps(content, indent=2) + "\n"


def _fitting(row: ComparisonRow) -> Space:
    """Return the search space of a row; for a control or a loss, without keys that the config rejects."""
    fitting = {}
    for key, values in row.space.items():
        try:
            Overrides({key: values[0]}).applied(row.cell.config)
        except InputError:
            if row.control or row.table == "losses":
                continue
            raise
        fitting[key] = values
    return fitting
