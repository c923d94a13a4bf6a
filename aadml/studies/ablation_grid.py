"""Ablations: a grid of runs over config keys and seeds, and the cells they are measured against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.configuration.config import Config, resolve
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.retrieval.significance import Pair
from aadml.studies.folder import RUNS
from aadml.studies.grid import (
    Axis,
    Cell,
    Point,
    applied,
    cells_of,
    plain_settings,
    points,
    set_again,
    without_proxy,
)
from aadml.studies.job import Job
from aadml.studies.results import CellScores, read_run
from aadml.studies.sweep import SweepOutcome


@dataclass(frozen=True)
class Ablation:
    """What is varied, and what it is measured against.

    Attributes:
        axes: what is varied.
        cells: of the grid, and the baselines that are not in it.
        baselines: name of a cell -> name of its baseline.
        seeds: of every cell.
    """

    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    baselines: Mapping[str, str]
    seeds: tuple[int, ...]

    def pairs(self) -> list[Pair]:
        """List the comparisons: (cell, baseline)."""
        return list(self.baselines.items())


def plan_ablation(
    base: JsonObject,
    axes: Sequence[Axis],
    seeds: Sequence[int],
    baseline: JsonObject | None = None,
    given: JsonObject | None = None,
) -> Ablation:
    """Lay out the cells of an ablation.

    Args:
        base: nested config values, with data.
        axes: what is varied.
        seeds: of every cell.
        baseline: settings that make of a cell its baseline, which joins the cells where it is not among them. None:
            every cell with an anchor-aware proxy is measured against itself without; where there is none, all against
            the first. Empty: nothing is compared.
        given: settings that `base` already has; those of a loss that an axis replaces are of every loss (`set_again`).

    Raises:
        InputError: a key or value that the config refuses.
    """
    again = set_again(given or {}, axes)
    crossed = points(base, axes, again)
    references = [_reference(base, point, crossed, baseline, again) for point in crossed]
    cells = cells_of([*crossed, *(point for point in references if point is not None)])
    name_of = {cell.config.yaml(): cell.name for cell in cells}
    named = {
        name_of[point[1].yaml()]: name_of[reference[1].yaml()]
        for point, reference in zip(crossed, references, strict=True)
        if reference is not None
    }
    return Ablation(
        tuple(axes), tuple(cells), {name: other for name, other in named.items() if name != other}, tuple(seeds)
    )


def jobs_of(cells: Sequence[Cell], seeds: Sequence[int], folder: Path, metrics: Sequence[str] = ()) -> list[Job]:
    """List the runs of cells: seed by seed, so that early results show every cell.

    Args:
        cells: what is run.
        seeds: of every cell.
        folder: of the sweep.
        metrics: that are scored beside those of every evaluation.
    """
    extra = tuple(metrics)
    return [
        Job(run_folder(folder, cell, seed), cell.config.seeded(seed), metrics=extra) for seed in seeds for cell in cells
    ]


def run_folder(folder: Path, cell: Cell, seed: int) -> Path:
    """Return the folder of a run; one that the second edition named is kept."""
    before = folder / RUNS / f"{cell.name}_seed={seed}"
    return before if before.is_dir() else folder / RUNS / cell.folder(f"seed{seed}")


def collected(
    cells: Sequence[Cell], seeds: Sequence[int], folder: Path, outcomes: Sequence[SweepOutcome]
) -> dict[str, CellScores]:
    """Read the scores of all finished runs, by name of the cell."""
    known = {str(outcome.job.folder): outcome for outcome in outcomes}
    scores = {}
    for cell in cells:
        own = {seed: known[str(run_folder(folder, cell, seed))] for seed in seeds}
        failed = {seed: outcome.reason for seed, outcome in own.items() if outcome.reason}
        runs = {seed: read_run(outcome.job) for seed, outcome in own.items() if not outcome.reason}
        scores[cell.name] = CellScores(cell, runs, failed)
    return scores


def _reference(
    base: JsonObject, point: Point, crossed: Sequence[Point], baseline: JsonObject | None, again: JsonObject
) -> Point | None:
    settings, config = point
    if baseline is not None:
        changed = {**settings, **baseline}
        return (changed, resolve(applied(base, {**again, **changed}))) if baseline else None
    if any(other.prefix for _, other in crossed):
        return (plain_settings(settings), without_proxy(config)) if config.prefix else None
    return crossed[0]


def config_of(ablation: Ablation) -> Config:
    """Return the config of the first cell, for the page."""
    return ablation.cells[0].config
