"""What a comparison leaves for people: tables, figures, and one self-contained page of both."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from aadml.configuration.config import DEFAULT_METHOD
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.reports import page
from aadml.reports.page import Section
from aadml.reports.tables import Table, write_tables
from aadml.studies.ablation_tables import describe
from aadml.studies.comparison_rows import ComparisonRow
from aadml.studies.comparison_tables import pair_table, proxy_table, table_of
from aadml.studies.published_figures import NOTE
from aadml.studies.results import CellScores, differences, mean_map
from aadml.studies.sweep_figures import spread_dots
from aadml.studies.sweep_parts import result_tables, summary

REPORT = "report.html"
TITLES = {"methods": "Methods", "losses": "Losses, with and without anchor-aware proxies"}


def write_comparison(
    rows: Sequence[ComparisonRow],
    scores: Mapping[str, CellScores],
    seeds: Sequence[int],
    folder: Path,
    *,
    baseline: str | None = None,
    notes: Sequence[str] = (),
    command: str = "",
    metrics: Sequence[str] = (),
) -> tuple[list[Table], Path | None]:
    """Write the tables (Markdown, CSV, LaTeX), figures (SVG) and the page.

    Args:
        rows: of the tables.
        scores: by name of the cell.
        seeds: of every row.
        folder: where to.
        baseline: name of the row that others are compared with; by default the default method, or the first row.
        notes: what people should know of the rows.
        command: that repeats it.
        metrics: further columns of the tables.

    Returns:
        The tables for reading (that of all pairs is in the folder and on the page), and the page; None where figures
        cannot be drawn because matplotlib is not installed.

    Raises:
        InputError: not one run was finished, or no row of the baseline's name.
    """
    about = describe(scores, seeds, folder, metrics)
    tables: dict[str, Table] = {}
    drawings: dict[str, str] = {}
    for kind in ("methods", "losses"):
        own = [row for row in rows if row.table == kind]
        if not own:
            continue
        tables[kind] = table_of(kind, own, scores, reference(own, baseline), about, metrics)
        drawing = _drawn(own, scores)
        if drawing:
            drawings[kind] = drawing
    proxies = proxy_table(rows, scores, about)
    if proxies is not None:
        tables["proxies"] = proxies
    methods = [row for row in rows if row.table == "methods" and not row.control]
    if len(methods) > 2:
        tables["pairs"] = pair_table(methods, scores, about)
    for name, table in tables.items():
        write_tables(table, folder / name)
    for name, drawing in drawings.items():
        write_text(folder / f"{name}.svg", drawing + "\n")
    read = [table for name, table in tables.items() if name != "pairs"]
    if not drawings:
        return read, None
    texts = [about, *notes]
    parts = [*_sections(tables, drawings), Section("How it was made", page.command(command))]
    html = page.document("Comparison", "Methods and losses", _summary(rows, scores, baseline, texts), parts)
    write_text(folder / REPORT, html)
    return read, folder / REPORT


def _summary(
    rows: Sequence[ComparisonRow], scores: Mapping[str, CellScores], baseline: str | None, texts: Sequence[str]
) -> str:
    """Sum up the first table: what is best in it, against the row that the others are compared with."""
    own = [row for row in rows if row.table == rows[0].table]
    against = reference(own, baseline)
    found = {}
    if against is not None:
        tested = differences(scores, [(one.cell.name, against.cell.name) for one in own if one.cell != against.cell])
        found = {row.name: tested[pair] for row in own if (pair := (row.cell.name, against.cell.name)) in tested}
    named = {row.name: scores[row.cell.name] for row in own}
    return summary(named, found, against.name if against else None, texts)


def reference(rows: Sequence[ComparisonRow], baseline: str | None) -> ComparisonRow | None:
    """Find the row that others are compared with; None where it is not of this table.

    Raises:
        InputError: no row of that name in any table.
    """
    named = {row.name: row for row in rows}
    if baseline is not None:
        return named.get(baseline)
    return named.get(DEFAULT_METHOD, rows[0])


def check_baseline(rows: Sequence[ComparisonRow], baseline: str | None) -> None:
    """Refuse a baseline that no row is called.

    Raises:
        InputError: no row of that name.
    """
    if baseline is not None:
        lookup({row.name: row for row in rows}, baseline, "row")


def _sections(tables: Mapping[str, Table], drawings: Mapping[str, str]) -> list[Section]:
    titles = TITLES | {"proxies": "The proxy and its controls", "pairs": "All pairs of methods"}
    parts = []
    for name, table in tables.items():
        notes = [table.caption, *table.notes] if name in ("proxies", "pairs") else table.notes
        drawn = page.drawing(drawings[name], f"{titles[name]}: MAP of every row") if name in drawings else ""
        parts.append(Section(titles[name], drawn + result_tables(table), [note for note in notes if note != NOTE]))
    return parts


def _drawn(rows: Sequence[ComparisonRow], scores: Mapping[str, CellScores]) -> str:
    values = {
        row.name: np.array([run.map_mean for run in scores[row.cell.name].runs.values()])
        for row in rows
        if scores[row.cell.name].runs
    }
    chance = {run.record.chance for row in rows for run in scores[row.cell.name].runs.values()}
    if not values:
        return ""
    try:
        name = mean_map(scores[row.cell.name] for row in rows)
        return spread_dots(values, x=name, marks={"chance": float(np.mean(list(chance)))})
    except InputError:
        return ""
