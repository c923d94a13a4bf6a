"""Table, figures and page of an ablation."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from aadml.configuration.overrides import proxy_prefix_of
from aadml.reports import page
from aadml.reports.tables import Cell as TableCell
from aadml.reports.tables import Table
from aadml.studies import sweep_figures
from aadml.studies.ablation_grid import Ablation
from aadml.studies.execution import Execution
from aadml.studies.grid import Axis, Cell, Overrides
from aadml.studies.results import CellScores, difference, mean_chance, mean_map
from aadml.studies.sweep_figures import Band, drawn, map_band
from aadml.studies.sweep_parts import (
    ResultColumns,
    StudyPart,
    data_name,
    describe,
    failures,
    result_tables,
    summary,
    write_study,
)

LINES = 8
"""Largest number of lines in figures over epochs and over K, without the baselines."""
Scores = Mapping[str, CellScores]


def write_ablation(
    ablation: Ablation, scores: Scores, execution: Execution, metrics: Sequence[str] = ()
) -> tuple[Table, Path]:
    """Write the table (Markdown, CSV, LaTeX), figures (SVG) and the page.

    Args:
        ablation: grid of cells.
        scores: scores by name of the cell.
        execution: execution of the study, with folder and command.
        metrics: metrics that have columns in addition to MAP.

    Returns:
        The table, and the path of the page. Without matplotlib, the page has no figures.

    Raises:
        InputError: no run finished, or a file cannot be read or written.
    """
    table = _table(ablation, scores, describe(scores, ablation.seeds, execution.folder, metrics), metrics)
    keys = next(position for position, name in enumerate(table.columns) if name.startswith("MAP "))
    results = StudyPart("Table", result_tables(table, keys), table.notes, {"results": table})
    first, *others = _figures(ablation, scores)
    config = page.details("config of the first cell", ablation.cells[0].config.shown.yaml())
    seeds = f"Seeds {', '.join(map(str, ablation.seeds))}. Every run is a folder in runs/."
    varied = ", ".join(axis.key for axis in ablation.axes)
    title = f"{data_name(scores, execution.folder)}: ablation of {varied}"
    titles, references = _titles(ablation), set(ablation.baselines.values())
    reference = titles[references.pop()] if len(references) == 1 else None
    rows = {titles[name]: cell for name, cell in scores.items()}
    pairs = {titles[cell]: (cell, baseline) for cell, baseline in ablation.baselines.items()}
    head = summary(rows, scores, pairs, reference, [table.caption], what="cell")
    ending = StudyPart("How the study was made", config, [seeds])
    return table, write_study(execution, title, "Ablation", head, [first, results, *others], ending=ending)


def _table(ablation: Ablation, scores: Scores, about: str, metrics: Sequence[str]) -> Table:
    """Return the table of results: MAP of every cell, difference from its baseline, further metrics and cost."""
    keys = [*(["loss"] if _losses_differ(ablation) else []), *(axis.key for axis in ablation.axes)]
    titles, settings = _titles(ablation), [_settings(ablation, cell) for cell in ablation.cells]
    named: dict[str, list[TableCell]] = {key: [row[key] for row in settings] for key in keys}
    columns = ResultColumns([scores[cell.name] for cell in ablation.cells], scores, named)
    columns.add_figures("map", "MAP")
    if ablation.baselines:
        pairs = [(cell.name, ablation.baselines.get(cell.name, "")) for cell in ablation.cells]
        columns["difference to"] = [titles.get(baseline, "") for _, baseline in pairs]
        columns.add_differences("difference", pairs)
    for metric in metrics:
        columns.add_figures(metric)
    columns.add_cost("train MAP", "epochs", "steps", "seeds")
    return columns.table(about, failures({titles[name]: cell for name, cell in scores.items()}), "MAP mean")


def _losses_differ(ablation: Ablation) -> bool:
    """Return whether cells differ in the loss or the proxy, but no axis has the key `loss`."""
    return all(axis.key != "loss" for axis in ablation.axes) and len({c.config.label() for c in ablation.cells}) > 1


def _titles(ablation: Ablation) -> dict[str, str]:
    """Return a title of each cell by name: its settings, after loss and proxy if cells have the same settings."""
    labels, texts = {}, {}
    for cell in ablation.cells:
        loss = {"loss": _settings(ablation, cell)["loss"]} if "loss" in cell.settings.values else {}
        labels[cell.name] = cell.config.label()
        texts[cell.name] = Overrides({**cell.settings.values, **loss}).text() or cell.config.label()
    if len(set(texts.values())) == len(texts):
        return texts
    titles = {name: ", ".join(dict.fromkeys((labels[name], text))) for name, text in texts.items()}
    several = list(titles.values())
    return {name: title if several.count(title) == 1 else name for name, title in titles.items()}


def _figures(ablation: Ablation, scores: Scores) -> list[StudyPart]:
    """Return the page sections of the figures. If matplotlib is not installed, the sections contain no figures."""
    paired = "Paired over seeds and test clips; bars are standard errors, not corrected for the number of comparisons."
    curve, minus = _over_axis(ablation, scores)
    first = [
        ("curve", curve, "MAP of every cell", "Mean and standard deviation over the seeds."),
        ("differences", minus, "Differences to the baselines", paired),
    ]
    parts = [_part("Scores", first)]
    note = "For each baseline, the lines are the cell with the best validation MAP and the baseline itself."
    bands = _bands(ablation, scores)
    for title, x in (("Training", "epoch"), ("Scope", "K")):
        panels = [
            (re.sub(r"[^a-z0-9]+", "-", y.lower()), drawn(sweep_figures.bands_over, lines, x=x, y=y), y, "")
            for (section, y), lines in bands.items()
            if section == title
        ]
        parts += [_part(title, panels, note)] if panels else []
    return parts


def _part(title: str, panels: Sequence[tuple[str, str, str, str]], *notes: str) -> StudyPart:
    """Return a section of figures; a panel is (file without suffix, SVG or "", text alternative, caption)."""
    shown = [panel for panel in panels if panel[1]]
    content = page.drawings([page.drawing(svg, alt, caption) for _, svg, alt, caption in shown])
    return StudyPart(title, content, notes, drawings={file: svg for file, svg, _, _ in shown})


def _over_axis(ablation: Ablation, scores: Scores) -> tuple[str, str]:
    """Draw MAP and differences from the baselines over the first axis of several numbers, as two SVG elements.

    Without such an axis, draw only MAP, with one row per cell. An element that is not drawn is "".
    """
    known = [cell for cell in scores.values() if cell.runs]
    chance, y = mean_chance(known), mean_map(known)
    axis = _axis_of_numbers(ablation)
    if axis is None:
        titles = _titles(ablation)
        return drawn(sweep_figures.dots, {titles[name]: cell for name, cell in scores.items()}), ""
    lines: dict[str, list[tuple[float, CellScores]]] = {}
    levels: dict[str, CellScores] = {}
    for cell in known:
        name, value = _line_name(ablation, cell.cell, axis.key), cell.cell.settings.values.get(axis.key)
        if isinstance(value, int | float):
            lines.setdefault(name, []).append((float(value), cell))
        else:
            levels[name] = cell
    bands: dict[str, Band] = {}
    colors: dict[str, int] = {}
    compared: dict[str, list[tuple[float, float, float]]] = {}
    for color, (name, members) in enumerate(lines.items()):
        places, cells = zip(*sorted(members, key=lambda member: member[0]), strict=True)
        bands[name] = map_band(places, cells, color)
        for x, cell in members:
            baseline = ablation.baselines.get(cell.name, "")
            colors[baseline] = color
            if baseline and (minus := difference(cell, scores[baseline])):
                compared.setdefault(name, []).append((x, minus.mean, minus.error))
    across = {name: map_band([0], [cell], colors.get(cell.name, len(lines))) for name, cell in levels.items()}
    curve = drawn(sweep_figures.spread_curve, bands, across, x=axis.key, y=y, note=f"chance {chance:.3f}")
    if not compared:
        return curve, ""
    return curve, drawn(sweep_figures.difference_curve, compared, x=axis.key, y="MAP minus baseline")


def _axis_of_numbers(ablation: Ablation) -> Axis | None:
    def is_number(value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    return next((axis for axis in ablation.axes if len(axis.values) > 1 and all(map(is_number, axis.values))), None)


def _line_name(ablation: Ablation, cell: Cell, key: str) -> str:
    rest = [text for name, text in _settings(ablation, cell).items() if name != key and text is not None]
    return ", ".join(rest) or cell.config.label()


def _settings(ablation: Ablation, cell: Cell) -> dict[str, str | None]:
    """Return the values of the axes as text, and the loss if it differs, with the prefix of the proxy."""
    values = cell.settings.values
    texts = {key: None if value is None else str(value) for key, value in values.items()}
    if isinstance(loss := values.get("loss"), str):
        texts["loss"] = cell.config.prefix + loss.removeprefix(proxy_prefix_of(loss))
    return {"loss": cell.config.label(), **texts} if _losses_differ(ablation) else texts


def _selected(ablation: Ablation, scores: Scores) -> dict[str, tuple[int, bool]]:
    """Return, by name, the cells to draw over epochs and K: color, and whether the cell is a baseline."""
    groups: dict[str, list[str]] = {}
    for cell in ablation.cells:
        if scores[cell.name].runs and cell.name in ablation.baselines:
            groups.setdefault(ablation.baselines[cell.name], []).append(cell.name)
    if not groups:
        return {cell.name: (i, False) for i, cell in enumerate(ablation.cells[:LINES]) if scores[cell.name].runs}
    selected: dict[str, tuple[int, bool]] = {}
    for color, (baseline, members) in enumerate(list(groups.items())[:LINES]):
        selected[max(members, key=lambda name: _best_valid(scores[name]))] = (color, False)
        if scores[baseline].runs:
            selected[baseline] = (color, True)
    return selected


def _best_valid(cell: CellScores) -> float:
    """Return the best validation MAP of any epoch, averaged over the runs of a cell.

    The result is minus infinity without runs, or if a run has no validation MAP.
    """
    best = [max(run.by_epoch("valid map_mean").values(), default=-np.inf) for run in cell.runs.values()]
    return float(np.mean(best)) if best else -np.inf


def _bands(ablation: Ablation, scores: Scores) -> dict[tuple[str, str], dict[str, Band]]:
    """Return the lines of the selected cells, by section and label of the vertical axis, then by title of the cell."""
    figures: dict[tuple[str, str], dict[str, Band]] = {}
    titles = _titles(ablation)
    for key, title in (("loss", "training loss"), ("valid map_mean", "validation MAP")):
        for name, (color, dashed) in _selected(ablation, scores).items():
            if band := sweep_figures.epoch_band(scores[name].runs.values(), key, color, dashed=dashed):
                figures.setdefault(("Training", title), {})[titles[name]] = band
    for name, (color, dashed) in _selected(ablation, scores).items():
        for direction in scores[name].directions:
            band = sweep_figures.scope_band(scores[name], direction, color, dashed=dashed)
            if band and len(band.x) > 1:
                figures.setdefault(("Scope", f"precision@K, {direction}"), {})[titles[name]] = band
    return figures
