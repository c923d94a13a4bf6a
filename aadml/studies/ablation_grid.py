"""Ablations: cells of a grid over config keys, baselines of the cells, and runs of the cells."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.configuration.config import Config, ConfigFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.studies.folder import RUNS
from aadml.studies.grid import EPOCHS, Axis, Cell, Overrides, Point, at_most, cells_of, points, proxies_of, set_again
from aadml.studies.job import Job
from aadml.studies.results import CellScores, read_run
from aadml.studies.sweep import SweepOutcome


@dataclass(frozen=True)
class Ablation:
    """Cells of a grid with their baselines.

    Attributes:
        axes: config keys with their values.
        cells: cells of the grid, and baselines that are not in the grid.
        baselines: name of a cell -> name of its baseline.
        seeds: seeds of every cell.
    """

    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    baselines: Mapping[str, str]
    seeds: tuple[int, ...]


def plan_ablation(
    base: Config | ConfigFile,
    axes: Sequence[Axis],
    seeds: Sequence[int],
    baseline: Overrides | None,
    changed: Overrides,
    max_epochs: int | None = None,
) -> Ablation:
    """Return the cells of an ablation, and the baselines of the cells.

    Args:
        base: config with data. A config file is not yet resolved, so that each loss implies its own settings.
        axes: config keys with their values.
        seeds: seeds of every cell.
        baseline: settings that turn a cell into its baseline, which is added to the cells; empty for no comparisons.
            None: the baseline of a cell with an anchor-aware proxy is the same cell without proxy. If no cell has an
            anchor-aware proxy, the baseline is the first cell.
        changed: settings that `base` already has. `set_again` selects the settings that every cell repeats.
        max_epochs: upper limit on the training epochs of every cell; None for no limit.

    Raises:
        InputError: a key or value that the config rejects, a repeated key in `axes`, or a key in `changed` that is
            the seed or a key of `axes`. Other causes: the runs differ in epochs that are limited, or a cell has several
            baselines.
    """
    again = set_again(changed, axes)
    compared = [axis.key for axis in axes] + list(baseline.values if baseline else ())
    limited = [key for key in compared if key in EPOCHS]
    if max_epochs is not None and limited:
        raise InputError(
            f"the runs differ in {limited[0]}, which --max-epochs {max_epochs} limits; leave out one of the two"
        )
    crossed = [Point(point.settings, at_most(point.config, max_epochs)) for point in points(base, axes, again)]
    anchored = any(point.config.prefix for point in crossed)

    def reference(point: Point) -> Point | None:
        if baseline is not None:
            config = at_most((again | point.settings).then(baseline).applied(base, proxies_of(base, axes)), max_epochs)
            return Point(point.settings | baseline, config) if baseline.values else None
        if not anchored:
            return crossed[0]
        return point.without_proxy() if point.config.prefix else None

    references = [reference(point) for point in crossed]
    cells = cells_of([*crossed, *filter(None, references)])
    names = {cell.config.yaml(recipe=False): cell.name for cell in cells}
    pairs = [
        (names[point.config.yaml(recipe=False)], names[other.config.yaml(recipe=False)])
        for point, other in zip(crossed, references, strict=True)
        if other
    ]
    baselines: dict[str, str] = {}
    for cell, other in pairs:
        if cell != other and baselines.setdefault(cell, other) != other:
            raise InputError(
                f"the cell '{cell}' has the baselines '{baselines[cell]}' and '{other}', as keys of the grid have no "
                "effect on the cell; pass the settings of the cell as --baseline, and those of its baselines as --over"
            )
    return Ablation(tuple(axes), tuple(cells), baselines, tuple(seeds))


def jobs_of(cells: Sequence[Cell], seeds: Sequence[int], folder: Path, metrics: Sequence[str] = ()) -> list[Job]:
    """Return the runs of cells, ordered by seed, so that early results cover every cell.

    Args:
        cells: cells, each with one config.
        seeds: seeds of every cell.
        folder: folder of the study.
        metrics: metrics in addition to those of every evaluation.
    """
    return [
        Job(run_folder(folder, cell, seed), cell.config.seeded(seed), metrics=tuple(metrics))
        for seed in seeds
        for cell in cells
    ]


def run_folder(folder: Path, cell: Cell, seed: int) -> Path:
    """Return the folder of a run. A folder that an earlier version of aadml named keeps its name."""
    before = folder / RUNS / f"{cell.name}_seed={seed}"
    is_kept = os.path.isdir(before)  # noqa: PTH112 - the name may be too long, or contain a zero byte
    return before if is_kept else folder / RUNS / cell.folder(f"seed{seed}")


def collected(
    cells: Sequence[Cell], seeds: Sequence[int], folder: Path, outcomes: Sequence[SweepOutcome]
) -> dict[str, CellScores]:
    """Return the scores of the finished runs and the reasons of the failed runs, by name of the cell.

    Raises:
        InputError: the scores of a finished run cannot be read.
    """
    by_folder = {outcome.job.folder: outcome for outcome in outcomes}
    scores = {}
    for cell in cells:
        of_cell = {seed: by_folder[run_folder(folder, cell, seed)] for seed in seeds}
        runs = {seed: read_run(outcome.job) for seed, outcome in of_cell.items() if not outcome.reason}
        failed = {seed: outcome.reason for seed, outcome in of_cell.items() if outcome.reason}
        scores[cell.name] = CellScores(cell, runs, failed)
    return scores
