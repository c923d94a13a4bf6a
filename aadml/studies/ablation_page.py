"""What an ablation leaves for people: tables, figures, and one self-contained page of both."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import number
from aadml.reports import page
from aadml.reports.page import Section
from aadml.reports.tables import Table, write_tables
from aadml.studies.ablation_grid import Ablation, config_of
from aadml.studies.ablation_tables import describe, results_table
from aadml.studies.grid import Axis
from aadml.studies.results import CellScores, difference, differences, mean_map
from aadml.studies.sweep_figures import Band, bands_over, difference_curve, spread_curve, spread_dots
from aadml.studies.sweep_parts import result_tables, summary

REPORT = "report.html"
LINES = 8


def write_ablation(
    ablation: Ablation,
    scores: Mapping[str, CellScores],
    folder: Path,
    command: str = "",
    metrics: Sequence[str] = (),
) -> tuple[Table, Path | None]:
    """Write tables (Markdown, CSV, LaTeX), figures (SVG) and the page.

    Args:
        ablation: what was run.
        scores: what came out.
        folder: where to.
        command: that repeats it, for the page.
        metrics: further columns of the table.

    Returns:
        The table of results, and the page; None where figures cannot be drawn because matplotlib is not installed.

    Raises:
        InputError: not one run was finished.
    """
    table = results_table(ablation, scores, describe(scores, ablation.seeds, folder, metrics), metrics)
    write_tables(table, folder / "results")
    try:
        drawn = _drawn(ablation, scores)
    except InputError:
        return table, None
    for _, panels, _ in drawn:
        for panel in panels:
            write_text(folder / f"{panel.file}.svg", panel.svg + "\n")
    shown = [
        Section(title, page.drawings([page.drawing(one.svg, one.alt, one.caption) for one in panels]), note)
        for title, panels, note in drawn
    ]
    keys = next(n for n, name in enumerate(table.columns) if name.startswith("MAP "))
    results = Section("Table", result_tables(table, keys), table.notes)
    varied = ", ".join(axis.key for axis in ablation.axes)
    parts = [shown[0], results, *shown[1:], _how(ablation, command)]
    html = page.document(f"Ablation of {varied}", "Ablation", _summary(ablation, scores, [table.caption]), parts)
    write_text(folder / REPORT, html)
    return table, folder / REPORT


@dataclass(frozen=True)
class Panel:
    """A figure of the page: the name of its file without ending, the drawing, what it shows, a sentence below it."""

    file: str
    svg: str
    alt: str
    caption: str = ""


def _summary(ablation: Ablation, scores: Mapping[str, CellScores], about: Sequence[str]) -> str:
    found = {first: one for (first, _), one in differences(scores, ablation.pairs()).items()}
    references = set(ablation.baselines.values())
    reference = references.pop() if len(references) == 1 else None
    return summary({cell.name: scores[cell.name] for cell in ablation.cells}, found, reference, about, what="cell")


def _drawn(ablation: Ablation, scores: Mapping[str, CellScores]) -> list[tuple[str, list[Panel], list[str]]]:
    """Draw what there is to draw: (title, panels, notes)."""
    chosen = _chosen(ablation, scores)
    mean = "Mean and standard deviation over the seeds."
    first = [Panel("curve", _scores(ablation, scores), "MAP of every cell", mean)]
    differing = _differences(ablation, scores)
    if differing:
        paired = "Paired over seeds and queries; bars are standard errors, not corrected for how many are compared."
        first.append(Panel("differences", differing, "Differences to the baselines", paired))
    drawn = [("Scores", first, list[str]())]
    note = "The cells shown are those of the best validation MAP among all with one baseline, and that baseline."
    for title, panels in (("Training", _training(chosen, scores)), ("Scope", _scope(chosen, scores))):
        if panels:
            own = [Panel(re.sub(r"[^a-z0-9]+", "-", name.lower()), svg, name) for name, svg in panels.items()]
            drawn.append((title, own, [note]))
    return drawn


def _scores(ablation: Ablation, scores: Mapping[str, CellScores]) -> str:
    """Draw MAP over the first axis of numbers, or a row a cell where there is none."""
    known = [one for one in scores.values() if one.runs]
    chance = next(iter(known[0].runs.values())).record.chance
    axis = _first_of_numbers(ablation)
    if axis is None:
        values = {one.name: np.array([run.map_mean for run in one.runs.values()]) for one in known}
        return spread_dots(values, x=mean_map(known), marks={"chance": chance})
    lines: dict[str, list[CellScores]] = {}
    levels: dict[str, CellScores] = {}
    for one in known:
        name = _line_name(one, axis.key)
        if one.cell.settings.get(axis.key) is None:
            levels[name] = one
        else:
            lines.setdefault(name, []).append(one)
    bands: dict[str, Band] = {}
    colors: dict[str, int] = {}
    for color, (name, members) in enumerate(lines.items()):
        bands[name] = _line(members, axis.key, color)
        colors |= {ablation.baselines.get(member.name, ""): color for member in members}
    across = {name: Band([0], _means(one)[:, None], colors.get(one.name, len(lines))) for name, one in levels.items()}
    return spread_curve(bands, across, x=axis.key, y=mean_map(known), note=f"chance {chance:.3f}")


def _differences(ablation: Ablation, scores: Mapping[str, CellScores]) -> str:
    """Draw differences to the baselines over the first axis of numbers; nothing where there is none."""
    axis = _first_of_numbers(ablation)
    if axis is None:
        return ""
    lines: dict[str, list[tuple[float, float, float]]] = {}
    for cell, baseline in ablation.baselines.items():
        found, place = difference(scores[cell], scores[baseline]), scores[cell].cell.settings.get(axis.key)
        if found is not None and place is not None:
            name = _line_name(scores[cell], axis.key)
            lines.setdefault(name, []).append((number(place), found.mean, found.error))
    return difference_curve(lines, x=axis.key, y="MAP minus baseline") if lines else ""


def _first_of_numbers(ablation: Ablation) -> Axis | None:
    return next((axis for axis in ablation.axes if len(axis.values) > 1 and all(map(_is_number, axis.values))), None)


def _line_name(one: CellScores, key: str) -> str:
    rest = [str(value) for name, value in one.cell.settings.items() if name != key and value is not None]
    return ", ".join(rest) or one.cell.config.label()


def _line(members: Sequence[CellScores], key: str, color: int) -> Band:
    members = sorted(members, key=lambda one: number(one.cell.settings[key]))
    seeds = sorted({seed for one in members for seed in one.runs})
    y = [[one.runs[seed].map_mean if seed in one.runs else np.nan for one in members] for seed in seeds]
    return Band([number(one.cell.settings[key]) for one in members], np.array(y), color)


def _means(one: CellScores) -> Any:
    return np.array([run.map_mean for run in one.runs.values()])


def _chosen(ablation: Ablation, scores: Mapping[str, CellScores]) -> dict[str, tuple[int, bool]]:
    """Choose cells for the curves over epochs and K: name -> (color, whether it is a baseline)."""
    groups: dict[str, list[str]] = {}
    for cell in ablation.cells:
        if scores[cell.name].runs and cell.name in ablation.baselines:
            groups.setdefault(ablation.baselines[cell.name], []).append(cell.name)
    if not groups:
        return {cell.name: (i, False) for i, cell in enumerate(ablation.cells[:LINES]) if scores[cell.name].runs}
    chosen: dict[str, tuple[int, bool]] = {}
    for color, (baseline, members) in enumerate(list(groups.items())[:LINES]):
        chosen[max(members, key=lambda name: best_valid(scores[name]))] = (color, False)
        if scores[baseline].runs:
            chosen[baseline] = (color, True)
    return chosen


def best_valid(one: CellScores) -> float:
    """Return the mean over seeds of the best validation MAP of any epoch; minus infinity where none was scored."""
    best = [
        max((float(record["valid map_mean"]) for record in run.epochs if "valid map_mean" in record), default=-np.inf)
        for run in one.runs.values()
    ]
    return float(np.mean(best)) if best else -np.inf


def _training(chosen: Mapping[str, tuple[int, bool]], scores: Mapping[str, CellScores]) -> dict[str, str]:
    panels: dict[str, dict[str, Band]] = {}
    for key, title in (("loss", "training loss"), ("valid map_mean", "validation MAP")):
        for name, (color, dashed) in chosen.items():
            series = [
                {int(record["epoch"]): float(record[key]) for record in run.epochs if key in record}
                for run in scores[name].runs.values()
            ]
            epochs = sorted(set.intersection(*(set(one) for one in series)))
            if epochs:
                y = np.array([[one[epoch] for epoch in epochs] for one in series])
                panels.setdefault(title, {})[name] = Band([float(epoch) for epoch in epochs], y, color, dashed)
    return {name: bands_over(bands, x="epoch", y=name) for name, bands in panels.items()}


def _scope(chosen: Mapping[str, tuple[int, bool]], scores: Mapping[str, CellScores]) -> dict[str, str]:
    panels: dict[str, dict[str, Band]] = {}
    for name, (color, dashed) in chosen.items():
        for direction in scores[name].directions:
            curves = [run.record.directions[direction].scope for run in scores[name].runs.values()]
            cutoffs = curves[0].k
            if len(cutoffs) < 2 or any(curve.k != cutoffs for curve in curves):
                continue
            y = np.array([curve.precision for curve in curves])
            panels.setdefault(f"precision@K, {direction}", {})[name] = Band(list(cutoffs), y, color, dashed)
    return {name: bands_over(bands, x="K", y=name) for name, bands in panels.items()}


def _how(ablation: Ablation, command: str) -> Section:
    seeds = ", ".join(str(seed) for seed in ablation.seeds)
    settings = page.details("config of the first cell", config_of(ablation).yaml())
    note = f"Seeds {seeds}. Every run is a folder in runs/."
    return Section("How it was made", page.command(command) + settings, [note])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
