"""Ablations: a grid of runs over config keys and seeds, and the cells they are measured against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aadml.experiments.config import Config, resolve
from aadml.experiments.grid import (
    Axis,
    Cell,
    Point,
    applied,
    cells_of,
    is_anchored,
    plain_settings,
    points,
    without_proxy,
)
from aadml.experiments.job import Job
from aadml.experiments.runs import ENVIRONMENT, read_json
from aadml.experiments.scores import CellScores, Pair, differences, read_run, tested_over, told
from aadml.experiments.sweep import RUNS, Outcome
from aadml.experiments.tables import Cell as TableCell
from aadml.experiments.tables import Table
from aadml.retrieval.significance import Difference
from feature_extraction.errors import InputError


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
    base: Mapping[str, Any],
    axes: Sequence[Axis],
    seeds: Sequence[int],
    baseline: Mapping[str, Any] | None = None,
) -> Ablation:
    """Lay out the cells of an ablation.

    Args:
        base: nested config values, with data.
        axes: what is varied.
        seeds: of every cell.
        baseline: settings that make of a cell its baseline, which joins the cells where it is not among them. None:
            every cell with an anchor-aware proxy is measured against itself without; where there is none, all against
            the first. Empty: nothing is compared.

    Raises:
        InputError: a key or value that the config refuses.
    """
    crossed = points(base, axes)
    references = [_reference(base, point, crossed, baseline) for point in crossed]
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


def jobs_of(cells: Sequence[Cell], seeds: Sequence[int], folder: Path) -> list[Job]:
    """List the runs of cells: seed by seed, so that early results show every cell."""
    return [Job(run_folder(folder, cell, seed), cell.seeded(seed)) for seed in seeds for cell in cells]


def run_folder(folder: Path, cell: Cell, seed: int) -> Path:
    """Name the folder of a run."""
    return folder / RUNS / f"{cell.name}_seed={seed}"


def collected(
    cells: Sequence[Cell], seeds: Sequence[int], folder: Path, outcomes: Sequence[Outcome]
) -> dict[str, CellScores]:
    """Read the scores of all finished runs, by name of the cell."""
    reasons = {str(outcome.job.folder): outcome.reason for outcome in outcomes}
    scores = {}
    for cell in cells:
        folders = {seed: run_folder(folder, cell, seed) for seed in seeds}
        failed = {seed: reasons[str(place)] for seed, place in folders.items() if reasons.get(str(place))}
        runs = {seed: read_run(place) for seed, place in folders.items() if seed not in failed}
        scores[cell.name] = CellScores(cell, runs, failed)
    return scores


def results_table(ablation: Ablation, scores: Mapping[str, CellScores], about: str) -> Table:
    """Tabulate MAP of every cell, with the difference to its baseline."""
    found = differences(scores, ablation.pairs())
    directions = next((one.directions for one in scores.values() if one.runs), [])
    keys = [axis.key for axis in ablation.axes]
    named = keys if "loss" in keys or len({cell.config.label() for cell in ablation.cells}) == 1 else ["loss", *keys]
    compared = ["difference to", "difference"] if ablation.baselines else []
    rows: list[tuple[TableCell, ...]] = []
    for cell in ablation.cells:
        own = scores[cell.name]
        settings = {"loss": cell.config.label(), **cell.settings}
        row: list[TableCell] = [None if settings[key] is None else str(settings[key]) for key in named]
        row += [own.over_seeds("directions", name, "map") for name in directions] + [own.over_seeds("map_mean")]
        other = ablation.baselines.get(cell.name, "")
        rows.append((*row, *([other, told(found.get((cell.name, other)))] if compared else []), len(own.runs)))
    columns = (*named, *(f"MAP {name}" for name in directions), "MAP mean", *compared, "seeds")
    return Table(columns, tuple(rows), about, tuple(_notes(found, scores)), best=("MAP mean",))


def describe(scores: Mapping[str, CellScores], seeds: Sequence[int], folder: Path) -> str:
    """Say in one sentence what the figures are: data, split, protocol, chance, ties, seeds."""
    found = _first_of_each_cell(scores, folder)
    if not found:
        raise InputError(f"{folder}: not one run was finished; their failure.txt say why")
    stored, environment = found[0]
    clips = ", ".join(
        f"{_span([other['clips'][split] for _, other in found])} {split}" for split in environment["clips"]
    )
    chance = _span([f"{other['chance']:.3f}" for other, _ in found])
    ties = max(float(run.stored["tie_rate"]) for one in scores.values() for run in one.runs.values())
    return (
        f"MAP on the {stored['split']} split of {Path(environment['data']['name']).name} ({clips} clips), "
        f"protocol {stored['protocol']}, chance {chance}, tie rate at most {ties:.3f}; "
        f"{'mean ± sd over ' if len(seeds) > 1 else ''}{len(seeds)} seed{'s' if len(seeds) > 1 else ''}."
    )


def data_notes(scores: Mapping[str, CellScores], folder: Path) -> list[str]:
    """Repeat what was done to the data on the way to its splits: what the first runs of all cells noted alike."""
    noted = [environment["data"]["notes"] for _, environment in _first_of_each_cell(scores, folder)]
    return [note for note in (noted[0] if noted else []) if all(note in other for other in noted)]


def _first_of_each_cell(
    scores: Mapping[str, CellScores], folder: Path
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Give the evaluation and the environment of each cell's first finished run."""
    first = [(one.cell, *next(iter(one.runs.items()))) for one in scores.values() if one.runs]
    return [(run.stored, read_json(run_folder(folder, cell, seed) / ENVIRONMENT)) for cell, seed, run in first]


def _span(values: Sequence[Any]) -> str:
    """Write what is the same everywhere, or from where to where it goes."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _reference(
    base: Mapping[str, Any], point: Point, crossed: Sequence[Point], baseline: Mapping[str, Any] | None
) -> Point | None:
    settings, config = point
    if baseline is not None:
        changed = {**settings, **baseline}
        return (changed, resolve(applied(base, changed))) if baseline else None
    if any(is_anchored(other) for _, other in crossed):
        return (plain_settings(settings), without_proxy(config)) if is_anchored(config) else None
    return crossed[0]


def _notes(found: Mapping[Pair, Difference], scores: Mapping[str, CellScores]) -> list[str]:
    notes = []
    if found:
        notes.append(
            f"Differences of the mean MAP ± standard error, paired over {tested_over(list(found.values()))}, p "
            f"corrected for {len(found)} comparisons (Holm); * is significant at 5 %."
        )
    for name, one in scores.items():
        notes += [f"{name}, seed {seed}, failed: {reason}" for seed, reason in one.failed.items()]
    return notes


def config_of(ablation: Ablation) -> Config:
    """Return the config of the first cell, for the page."""
    return ablation.cells[0].config
