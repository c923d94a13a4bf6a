"""Table, figures and page of an ablation."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aadml.feature_extraction.ground.json_values import Json, number
from aadml.reports import page
from aadml.reports.page import Section
from aadml.reports.tables import Table
from aadml.studies.ablation_grid import Ablation
from aadml.studies.execution import Execution
from aadml.studies.grid import Axis
from aadml.studies.results import CellScores, difference, differences, directions_of, in_words, mean_chance, mean_map
from aadml.studies.sweep_figures import (
    Band,
    bands_over,
    difference_curve,
    drawn,
    epoch_band,
    map_band,
    scope_band,
    spread_curve,
    spread_dots,
)
from aadml.studies.sweep_parts import (
    Columns,
    cost_columns,
    describe,
    failures,
    figure_columns,
    result_tables,
    results_table,
    summary,
    write_results,
)

LINES = 8
"""Largest number of lines over epochs and over K, without those of the baselines."""
Scores = Mapping[str, CellScores]


@dataclass(frozen=True)
class Panel:
    """A figure of the page: name of its file without ending, SVG, text alternative, caption."""

    file: str
    svg: str
    alt: str
    caption: str = ""


def write_ablation(
    ablation: Ablation, scores: Scores, execution: Execution, metrics: Sequence[str] = ()
) -> tuple[Table, Path | None]:
    """Write the table (Markdown, CSV, LaTeX), figures (SVG) and the page.

    Args:
        ablation: grid of cells.
        scores: by name of the cell.
        execution: folder and command.
        metrics: further columns of the table.

    Returns:
        The table, and the page; None if figures cannot be drawn because matplotlib is not installed.

    Raises:
        InputError: no run was finished.
    """
    table = _table(ablation, scores, describe(scores, ablation.seeds, execution.folder, metrics), metrics)
    keys = next(position for position, name in enumerate(table.columns) if name.startswith("MAP "))
    first, *others = _figures(ablation, scores)
    seeds = ", ".join(map(str, ablation.seeds))
    sections = [
        _section(*first),
        Section("Table", result_tables(table, keys), table.notes),
        *(_section(*part) for part in others),
        Section(
            "How it was made",
            page.command(execution.command) + page.details("config of the first cell", ablation.cells[0].config.yaml()),
            [f"Seeds {seeds}. Every run is a folder in runs/."],
        ),
    ]
    title = f"Ablation of {', '.join(axis.key for axis in ablation.axes)}"
    html = page.document(title, "Ablation", _summary(ablation, scores, table.caption), sections)
    drawings = {panel.file: panel.svg for _, panels, _ in (first, *others) for panel in panels}
    return table, write_results(execution.folder, {"results": table}, drawings, html if drawings else "")


def _table(ablation: Ablation, scores: Scores, about: str, metrics: Sequence[str]) -> Table:
    """Return MAP of every cell, the difference to its baseline, further metrics and cost."""
    cells, directions = [scores[cell.name] for cell in ablation.cells], directions_of(scores)
    keys = [axis.key for axis in ablation.axes]
    if "loss" not in keys and len({cell.config.label() for cell in ablation.cells}) > 1:
        keys = ["loss", *keys]
    settings: list[dict[str, Json]] = [{"loss": cell.config.label(), **cell.settings} for cell in ablation.cells]
    columns: Columns = {key: [None if row[key] is None else str(row[key]) for row in settings] for key in keys}
    columns |= figure_columns("map", cells, directions, "MAP")
    tested = differences(scores, ablation.baselines.items())
    if ablation.baselines:
        pairs = [(cell.name, ablation.baselines.get(cell.name, "")) for cell in cells]
        columns["difference to"] = [baseline for _, baseline in pairs]
        columns["difference"] = [in_words(tested.get(pair)) for pair in pairs]
    for metric in metrics:
        columns |= figure_columns(metric, cells, directions)
    columns |= cost_columns(cells, "train MAP", "epochs", "steps", "seeds")
    return results_table(columns, about, tested.values(), failures(scores), ("MAP mean",))


def _section(title: str, panels: Sequence[Panel], notes: Sequence[str]) -> Section:
    drawings = [page.drawing(panel.svg, panel.alt, panel.caption) for panel in panels]
    return Section(title, page.drawings(drawings), notes)


def _summary(ablation: Ablation, scores: Scores, about: str) -> str:
    tested = {cell: minus for (cell, _), minus in differences(scores, ablation.baselines.items()).items()}
    references = set(ablation.baselines.values())
    reference = references.pop() if len(references) == 1 else None
    return summary({cell.name: scores[cell.name] for cell in ablation.cells}, tested, reference, [about], what="cell")


def _figures(ablation: Ablation, scores: Scores) -> list[tuple[str, list[Panel], list[str]]]:
    """Return title, figures and notes of each section; no figures if matplotlib is not installed."""
    paired = "Paired over seeds and queries; bars are standard errors, not corrected for how many are compared."
    first = [
        Panel("curve", _scores(ablation, scores), "MAP of every cell", "Mean and standard deviation over the seeds."),
        Panel("differences", _differences(ablation, scores), "Differences to the baselines", paired),
    ]
    parts = [("Scores", [panel for panel in first if panel.svg], list[str]())]
    note = "The cells shown are those of the best validation MAP among all with one baseline, and that baseline."
    selected = _selected(ablation, scores)
    for title, figures in (("Training", _training(selected, scores)), ("Scope", _scope(selected, scores))):
        panels = [Panel(re.sub(r"[^a-z0-9]+", "-", name.lower()), svg, name) for name, svg in figures.items() if svg]
        parts += [(title, panels, [note])] if panels else []
    return parts


def _scores(ablation: Ablation, scores: Scores) -> str:
    """Draw MAP over the first axis of numbers, or a row for each cell without such an axis."""
    known = [cell for cell in scores.values() if cell.runs]
    chance = mean_chance(known)
    axis = _axis_of_numbers(ablation)
    if axis is None:
        values = {cell.name: cell.maps() for cell in known}
        return drawn(spread_dots, values, x=mean_map(known), marks={"chance": chance})
    lines: dict[str, list[CellScores]] = {}
    levels: dict[str, CellScores] = {}
    for cell in known:
        if cell.cell.settings.get(axis.key) is None:
            levels[_line_name(cell, axis.key)] = cell
        else:
            lines.setdefault(_line_name(cell, axis.key), []).append(cell)
    bands: dict[str, Band] = {}
    colors: dict[str, int] = {}
    for color, (name, members) in enumerate(lines.items()):
        ordered = sorted(members, key=lambda cell: number(cell.cell.settings[axis.key]))
        bands[name] = map_band([number(cell.cell.settings[axis.key]) for cell in ordered], ordered, color)
        colors |= {ablation.baselines.get(cell.name, ""): color for cell in members}
    across = {name: map_band([0], [cell], colors.get(cell.name, len(lines))) for name, cell in levels.items()}
    return drawn(spread_curve, bands, across, x=axis.key, y=mean_map(known), note=f"chance {chance:.3f}")


def _differences(ablation: Ablation, scores: Scores) -> str:
    """Draw differences to the baselines over the first axis of numbers; "" without such an axis."""
    axis = _axis_of_numbers(ablation)
    if axis is None:
        return ""
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for cell, baseline in ablation.baselines.items():
        minus, value = difference(scores[cell], scores[baseline]), scores[cell].cell.settings.get(axis.key)
        if minus is not None and value is not None:
            line = lines.setdefault(_line_name(scores[cell], axis.key), [])
            line.append((number(value), minus.mean, minus.error))
    return drawn(difference_curve, lines, x=axis.key, y="MAP minus baseline") if lines else ""


def _axis_of_numbers(ablation: Ablation) -> Axis | None:
    def is_number(value: Json) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    return next((axis for axis in ablation.axes if len(axis.values) > 1 and all(map(is_number, axis.values))), None)


def _line_name(cell: CellScores, key: str) -> str:
    rest = [str(value) for name, value in cell.cell.settings.items() if name != key and value is not None]
    return ", ".join(rest) or cell.cell.config.label()


def _selected(ablation: Ablation, scores: Scores) -> dict[str, tuple[int, bool]]:
    """Select cells for the lines over epochs and K: name -> color, and whether the cell is a baseline."""
    groups: dict[str, list[str]] = {}
    for cell in ablation.cells:
        if scores[cell.name].runs and cell.name in ablation.baselines:
            groups.setdefault(ablation.baselines[cell.name], []).append(cell.name)
    if not groups:
        return {cell.name: (i, False) for i, cell in enumerate(ablation.cells[:LINES]) if scores[cell.name].runs}
    selected: dict[str, tuple[int, bool]] = {}
    for color, (baseline, members) in enumerate(list(groups.items())[:LINES]):
        selected[max(members, key=lambda name: best_valid(scores[name]))] = (color, False)
        if scores[baseline].runs:
            selected[baseline] = (color, True)
    return selected


def best_valid(cell: CellScores) -> float:
    """Return the best validation MAP of any epoch, a mean over seeds; minus infinity without such scores."""
    key = "valid map_mean"
    best = [max((float(record[key]) for record in run.epochs if key in record), default=-np.inf)
            for run in cell.runs.values()]  # fmt: skip
    return float(np.mean(best)) if best else -np.inf


def _training(selected: Mapping[str, tuple[int, bool]], scores: Scores) -> dict[str, str]:
    panels: dict[str, dict[str, Band]] = {}
    for key, title in (("loss", "training loss"), ("valid map_mean", "validation MAP")):
        for name, (color, dashed) in selected.items():
            if band := epoch_band(scores[name].runs.values(), key, color, dashed=dashed):
                panels.setdefault(title, {})[name] = band
    return {title: drawn(bands_over, bands, x="epoch", y=title) for title, bands in panels.items()}


def _scope(selected: Mapping[str, tuple[int, bool]], scores: Scores) -> dict[str, str]:
    panels: dict[str, dict[str, Band]] = {}
    for name, (color, dashed) in selected.items():
        for direction in scores[name].directions:
            band = scope_band(scores[name], direction, color, dashed=dashed)
            if band and len(band.x) > 1:
                panels.setdefault(f"precision@K, {direction}", {})[name] = band
    return {title: drawn(bands_over, bands, x="K", y=title) for title, bands in panels.items()}
