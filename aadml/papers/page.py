"""Files of a reproduction of the AADML paper: tables, numbers and figures, and one self-contained page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aadml.papers.fidelity import FIDELITY
from aadml.papers.figures import Figures, epoch_figures, leak_dots, neighbor_figure, scope_figure
from aadml.papers.reproduction_plan import ReproductionPlan
from aadml.papers.rows import LEAKS, SELECTION
from aadml.papers.tables import COMPARED, SELECTED, WHAT, Group, draw_table, leak_table, paper_table
from aadml.reports import page
from aadml.reports.page import Fact
from aadml.reports.published import PAPER
from aadml.reports.tables import Table
from aadml.studies.sweep import NOT_POSSIBLE
from aadml.studies.sweep_figures import drawn
from aadml.studies.sweep_parts import StudyPart, failures, write_study

_FIGURES = {
    "figure-3": (
        scope_figure,
        "The share of relevant items among the K nearest; K ends at the paper's largest K, or at the gallery's size.",
    ),
    "figure-4": (
        neighbor_figure,
        "The paper reports that k = 3 is best for Triplet and Hard Triplet, and k = 2 for complete Triplet. "
        "The paper prints no numbers.",
    ),
    "figure-5": (
        epoch_figures,
        "Solid lines are losses with anchor-aware proxies, and dashed lines of the same color are the same losses "
        "without proxies. Test curves are logged during training and not used for any choice. The scored epoch is "
        "that of the best validation MAP. Losses are computed without dropout and proxies, so that the splits can be "
        "compared.",
    ),
}
"""Part -> function that draws the part, and a note."""


def write_reproduction(
    parts: Sequence[str], groups: Mapping[str, Group], plan: ReproductionPlan, notes: Sequence[str]
) -> tuple[list[Table], Path]:
    """Write tables (Markdown, CSV, LaTeX), figures (SVG) and their data (CSV), and the page.

    Args:
        parts: parts of the paper.
        groups: data set -> results.
        plan: plan with folder, command and schedule.
        notes: notes on data and rows.

    Returns:
        The tables, and the path of the page. Without matplotlib, the page has no figures.

    Raises:
        InputError: a file cannot be written.
    """
    pages: dict[str, list[StudyPart]] = {data_set: [] for data_set in groups}
    ordered: list[StudyPart] = []
    for part in parts:
        for data_set in PAPER.parts[part].data_sets:
            if data_set in groups and (content := _part(part, groups[data_set])):
                pages[data_set].append(content)
                tables = {name: plan.marked(table) for name, table in content.tables.items()}
                ordered.append(replace(content, notes=[*plan.warnings, *content.notes], tables=tables))
    most = [line for data_set, group in groups.items() for part in pages[data_set] for line in _most(part, group)]
    summary = plan.warning() + _summary(groups, [*most, COMPARED, *notes])
    path = write_study(plan, f"{PAPER.title}, reproduced", "Reproduction of a paper", summary, ordered)
    return [table for part in ordered for table in part.tables.values()], path


def _part(part: str, group: Group) -> StudyPart | None:
    """Return the section of one part on one data set; None for the part `clock-draw` without draws of Clock."""
    several = len(PAPER.parts[part].data_sets) > 1
    name = f"{part}-{group.runs.data_set}" if several else part
    title = PAPER.parts[part].title + (f", on {group.name}" if several else "")
    if part in _FIGURES:
        draw, note = _FIGURES[part]
        failed = failures({cell.name: group.scores[cell.name] for cell in group.runs.cells(part)})
        return _figure(name, title, draw(group), [note, *failed])
    if part != "clock-draw":
        return _table(name, title, group)
    if not group.runs.draws:
        return None
    table = draw_table(group)
    return StudyPart(title, page.table(table), [table.caption, *table.notes], {name: table})


def _table(name: str, title: str, group: Group) -> StudyPart:
    rows = group.runs.methods if name.startswith("table-1") else group.runs.losses
    kinds = FIDELITY.of(rows[0].table)
    table = paper_table(rows, group, {item: row.title for item, row in kinds.items()})
    readings = paper_table(group.runs.readings, group, FIDELITY.readings)
    readings = replace(readings, notes=tuple(note for note in readings.notes if note not in (COMPARED, SELECTED)))
    jumps = leak_table(title, rows, group)
    drawing = drawn(leak_dots, rows, group)
    row, maps = table.columns[0], [column for column in table.columns if column.startswith("MAP ")]
    printed = [column for column in table.columns if column.startswith("published ")]
    compared = next(column for column in table.columns if column.startswith("difference"))
    content = page.table(table, [row, WHAT, *maps, *printed, compared, "seeds"])
    content += "<h3>What the rows are</h3>"
    content += page.properties(FIDELITY.legend(rows[0].table, [row.item for row in rows]))
    content += "<h3>Readings of Equation 7</h3>"
    content += "".join(f'<p class="note">{page.text(note)}</p>' for note in readings.notes)
    content += page.table(readings, ["method", WHAT, *maps, "difference to aadml", "seeds"])
    content += "<h3>The same runs under each leak</h3>"
    if drawing:
        content += page.drawing(drawing, f"{title}: inductive MAP, MAP under each leak, and published MAP")
    content += page.table(jumps) if jumps.rows else ""
    content += page.table(table, [row, "MAP mean", SELECTION, *LEAKS])
    content += "<h3>Cost</h3>" + page.table(table, [row, "epochs", "steps", "seconds", "seeds"])
    notes = [table.caption, *(note for note in table.notes if note != COMPARED)]
    drawings = {f"{name}-leaks": drawing} if drawing else {}
    tables = {name: table, f"{name}-readings": readings, f"{name}-leaks": jumps}
    return StudyPart(title, content, notes, tables, drawings=drawings)


def _most(part: StudyPart, group: Group) -> list[str]:
    """Return a list with a sentence on the leak that increases mean MAP most; empty for a part without leaks."""
    jumps = [table for name, table in part.tables.items() if name.endswith("-leaks") and table.rows]
    return [
        f"{part.title.split(':')[0]} on {group.name}: the leak {table.rows[0][0]} increases MAP most, by "
        f"{table.text(table.rows[0][1])} on average."
        for table in jumps
    ]


def _figure(name: str, title: str, figures: Figures, notes: Sequence[str]) -> StudyPart:
    panels, numbers = {panel: drawing for panel, drawing in figures[0].items() if drawing}, figures[1]
    content = page.drawings([page.drawing(drawing, f"{title}: {panel}", panel) for panel, drawing in panels.items()])
    files = {f"{name}-{panel.split(',')[0].lower().replace(' ', '-')}": drawing for panel, drawing in panels.items()}
    return StudyPart(title, content, [*notes, numbers.caption], numbers={name: numbers}, drawings=files)


def _summary(groups: Mapping[str, Group], notes: Sequence[str]) -> str:
    """Return the MAP of the paper's method on each data set, the number of runs, and notes, as HTML."""
    shown = []
    for group in groups.values():
        best = group.scores.get(group.runs.curves["aa-triplet"].name)
        figure = best.over_seeds("map") if best else None
        if figure is not None:
            shown.append(Fact(f"AADML on {group.name}, inductive", str(figure), "test MAP, mean of both directions"))
    cells = [cell for group in groups.values() for cell in group.scores.values()]
    finished, reasons = sum(len(cell.runs) for cell in cells), [r for cell in cells for r in cell.failed.values()]
    impossible = sum(reason.startswith(NOT_POSSIBLE) for reason in reasons)
    counts = {"failed": len(reasons) - impossible, "not possible": impossible}
    others = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    shown.append(Fact("runs", str(finished), others or "all finished"))
    return page.summary(shown, notes)
