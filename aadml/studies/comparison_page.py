"""Tables, figures and page of a comparison."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from aadml.configuration.config import DEFAULT_METHOD
from aadml.reports import page
from aadml.reports.published import NOTE, data_set_of
from aadml.reports.tables import Cell, Table
from aadml.studies.comparison_rows import SINGULAR, ComparisonRow
from aadml.studies.control_rows import ALONE, NONE
from aadml.studies.execution import Execution
from aadml.studies.results import CellScores, differences, in_words
from aadml.studies.sweep_figures import dots, drawn
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

TITLES = {
    "methods": "Methods",
    "losses": "Losses, with and without anchor-aware proxies",
    "proxies": "The proxy and its controls",
}
"""Name of a table's files -> title of its section."""
Scores = Mapping[str, CellScores]


def write_comparison(
    rows: Sequence[ComparisonRow],
    scores: Scores,
    seeds: Sequence[int],
    execution: Execution,
    *,
    baseline: str | None = None,
    notes: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> tuple[list[Table], Path]:
    """Write the tables (Markdown, CSV, LaTeX), figures (SVG) and the page.

    Args:
        rows: rows of the tables.
        scores: scores by name of the cell.
        seeds: seeds of every row.
        execution: execution of the study, with folder and command.
        baseline: row that all other rows are compared with; by default the default method, or the first row of a
            table without this method.
        notes: notes on the rows.
        metrics: metrics that have columns in addition to MAP.

    Returns:
        The tables, and the path of the page. Without matplotlib, the page has no figures.

    Raises:
        InputError: no run finished, or a file cannot be read or written.
    """
    about = describe(scores, seeds, execution.folder, metrics)
    data = data_name(scores, execution.folder)
    parts = []
    for kind in ("methods", "losses"):
        members = [row for row in rows if row.table == kind]
        if members:
            table = table_of(members, scores, reference(members, rows, baseline), about, metrics, data_set_of(data))
            parts.append(_part(kind, table, table.notes, _dots(members, scores)))
    proxies = proxy_table(rows, scores, about)
    if proxies is not None:
        parts.append(_part("proxies", proxies, [proxies.caption, *proxies.notes]))
    tables = [table for part in parts for table in part.tables.values()]
    head = _summary(rows, scores, baseline, [about, *notes])
    return tables, write_study(execution, f"{data}: methods and losses", "Comparison", head, parts)


def _summary(rows: Sequence[ComparisonRow], scores: Scores, baseline: str | None, about: Sequence[str]) -> str:
    """Return the summary of all rows as HTML. The comparisons are those of the table of the best row."""
    best = max((row for row in rows if scores[row.cell.name].runs), key=lambda row: scores[row.cell.name].maps().mean())
    members = [row for row in rows if row.table == best.table]
    against = reference(members, rows, baseline)
    distinct: dict[str, ComparisonRow] = {}
    for row in (best, against, *members, *rows):  # rows with the same config share a cell
        distinct.setdefault(row.cell.name, row)
    compared = {
        row.name: (row.cell.name, against.cell.name)
        for row in distinct.values()
        if row.table == best.table and row.cell != against.cell
    }
    return summary(scores_of_rows([*distinct.values()], scores), scores, compared, against.name, about)


def reference(members: Sequence[ComparisonRow], rows: Sequence[ComparisonRow], baseline: str | None) -> ComparisonRow:
    """Return the row that the other rows of a table are compared with.

    Args:
        members: rows of the table.
        rows: rows of all tables.
        baseline: name of a row of any table; None for the default method, or for the first row of a table without
            this method.
    """
    if baseline is None:
        return {row.name: row for row in members}.get(DEFAULT_METHOD, members[0])
    return next(row for row in rows if row.name == baseline)


def _part(name: str, table: Table, notes: Sequence[str], drawing: str = "") -> StudyPart:
    figure = page.drawing(drawing, f"{TITLES[name]}: MAP of every row") if drawing else ""
    notes = [note for note in notes if note != NOTE]
    drawings = {name: drawing} if drawing else {}
    return StudyPart(TITLES[name], result_tables(table, figure=figure), notes, {name: table}, drawings=drawings)


def _dots(rows: Sequence[ComparisonRow], scores: Scores) -> str:
    """Return a figure of the MAP of every row and seed as SVG; "" without runs or matplotlib."""
    cells = scores_of_rows(rows, scores)
    return drawn(dots, cells) if any(cell.runs for cell in cells.values()) else ""


def scores_of_rows(rows: Sequence[ComparisonRow], scores: Scores) -> dict[str, CellScores]:
    """Return the scores by name of the row."""
    return {row.name: scores[row.cell.name] for row in rows}


def table_of(
    rows: Sequence[ComparisonRow],
    scores: Scores,
    reference: ComparisonRow,
    about: str,
    metrics: Sequence[str] = (),
    data_set: str = "",
) -> Table:
    """Return the table of methods or of losses: MAP over seeds, difference from a reference, cost, published results.

    Args:
        rows: rows of methods, or rows of losses.
        scores: scores by name of the cell.
        reference: row that the others are compared with.
        about: caption.
        metrics: metrics that have columns in addition to MAP.
        data_set: data set of the published results; "" omits their columns.
    """
    kind = rows[0].table
    names: list[Cell] = [row.name for row in rows]
    columns = ResultColumns([scores[row.cell.name] for row in rows], scores, {SINGULAR[kind]: names})
    columns.add_figures("map", "MAP")
    pairs = [(row.cell.name, reference.cell.name) for row in rows]
    columns.add_differences(f"difference to {reference.name}", pairs)
    for metric in metrics:
        columns.add_figures(metric)
    columns.add_cost("train MAP", "epochs", "steps", "seconds", "parameters", "seeds")
    if data_set:
        columns.add_published(kind, ["" if row.control else row.item for row in rows], data_set, f"{data_set} ")
    notes = [*([NOTE] if data_set else []), *failures({row.name: scores[row.cell.name] for row in rows})]
    return columns.table(about, notes, "MAP mean")


def proxy_table(rows: Sequence[ComparisonRow], scores: Scores, about: str) -> Table | None:
    """Return the table of differences between anchor-aware rows and their controls; None if no row has controls.

    Args:
        rows: rows of methods and of losses.
        scores: scores by name of the cell.
        about: last sentences of the caption.
    """
    anchored = [(row, controls) for row in rows if not row.control and (controls := _controls_of(row, rows))]
    if not anchored:
        return None
    cells = [scores[row.cell.name] for row, _ in anchored]
    columns = ResultColumns(cells, scores, {"with proxy": [row.name for row, _ in anchored]})
    columns.tested = tested = differences(
        scores, ((row.cell.name, control.cell.name) for row, controls in anchored for control in controls.values())
    )
    columns["MAP mean"] = [cell.over_seeds("map") for cell in cells]
    for name in dict.fromkeys(name for _, controls in anchored for name in controls):
        columns[f"minus {name}"] = [
            in_words(tested.get((row.cell.name, controls[name].cell.name))) if name in controls else None
            for row, controls in anchored
        ]
    columns.add_cost("steps")
    caption = f"Mean MAP with the anchor-aware proxy, minus the mean MAP of each control. {about}"
    return columns.table(caption)


def _controls_of(row: ComparisonRow, rows: Sequence[ComparisonRow]) -> dict[str, ComparisonRow]:
    """Return the controls of an anchor-aware row, by name.

    For a loss, the control without proxy and the control without metric loss are rows of other items.
    """
    controls = {
        other.control: other for other in rows if other.control and (other.table, other.item) == (row.table, row.item)
    }
    if not controls or row.table != "losses":
        return controls
    losses = {other.item: other for other in rows if other.table == "losses" and not other.control}
    plain, none = losses.get(row.item.removeprefix("aa-")), losses.get(NONE)
    return {**({ALONE: plain} if plain else {}), **controls, **({NONE: none} if none else {})}
