"""Equal budgets: for every row the same number of trials over its declared search space, chosen on validation clips."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from aadml.configuration.config import resolve
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.runs.loading import read_evaluation
from aadml.studies.comparison_rows import ComparisonRow, Space
from aadml.studies.grid import Cell, Point, applied
from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome

TRIALS = "trials"
RECORD = "trials.json"


@dataclass(frozen=True)
class Trial:
    """One attempt at a cell.

    Attributes:
        settings: what differs from the cell's own config; nothing in the first trial.
        job: the run, scored on validation clips only.
    """

    settings: JsonObject
    job: Job


def trials_of(row: ComparisonRow, count: int, seed: int, folder: Path) -> list[Trial]:
    """Draw the trials of a row: its own config first, then points of its search space, none twice.

    Args:
        row: with its space; keys that its config does not take are left out.
        count: how many; a smaller space is tried whole.
        seed: of the draw and of the runs.
        folder: of the comparison.

    Raises:
        InputError: a value of the space that the config refuses.
    """
    space = _fitting(row)
    points = [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())] if space else []
    digest = hashlib.sha256(row.cell.name.encode()).digest()
    generator = np.random.default_rng([seed, int.from_bytes(digest[:8], "little")])
    found: dict[str, Point] = {row.cell.config.yaml(): ({}, row.cell.config)}
    for number in generator.permutation(len(points)):
        config = resolve(applied(row.cell.config.values, points[number]))
        found.setdefault(config.yaml(), (points[number], config))
    trials = []
    for number, (settings, config) in enumerate(list(found.values())[:count]):
        place = folder / TRIALS / row.cell.folder(f"trial{number}")
        trials.append(Trial(settings, Job(place, config.seeded(seed), "valid")))
    return trials


def chosen_row(
    row: ComparisonRow, trials: Sequence[Trial], outcomes: Mapping[str, SweepOutcome], budget: int
) -> ComparisonRow:
    """Give a row the config of its best trial; where all failed, its own.

    Args:
        row: that the trials are of.
        trials: all of them.
        outcomes: by folder.
        budget: how many trials every row had; part of the name.
    """
    scored = [(score_of(trial), trial) for trial in trials if not outcomes[str(trial.job.folder)].reason]
    best = max(scored, key=lambda pair: pair[0])[1].settings if scored else {}
    config = resolve(applied(row.cell.config.values, best))
    return replace(row, cell=Cell(f"{row.cell.name}_trials{budget}", config, best))


def score_of(trial: Trial) -> float:
    """Return the validation MAP of a finished trial."""
    record = read_evaluation(trial.job.folder)
    if record.split != "valid":
        raise InputError(f"{trial.job.folder}: was scored on {record.split}; a trial is scored on valid")
    return record.map_mean


def record_of(trials: Sequence[Trial], outcomes: Mapping[str, SweepOutcome], chosen: JsonObject) -> str:
    """Write down, as JSON, what was tried for a row and what was chosen; it goes into its run folders."""
    tried = []
    for trial in trials:
        reason = outcomes[str(trial.job.folder)].reason
        score = {"failed": reason} if reason else {"valid map_mean": score_of(trial)}
        tried.append({"settings": dict(trial.settings), **score, "folder": trial.job.folder.name})
    return (
        json.dumps({"trials": tried, "chosen": dict(chosen), "seed": trials[0].job.config.common.seed}, indent=2) + "\n"
    )


def _fitting(row: ComparisonRow) -> Space:
    """Leave out the keys of a space that a row does not take (those of a proxy that it has not)."""
    fitting = {}
    for key, values in row.space.items():
        try:
            resolve(applied(row.cell.config.values, {key: values[0]}))
        except InputError:
            if row.control or row.table == "losses":
                continue
            raise
        fitting[key] = values
    return fitting
