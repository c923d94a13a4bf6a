"""What the reproduction of the AADML paper leaves: CSV files, figures, and one self-contained page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from aadml.feature_extraction.ground.atomic import write_text
from aadml.papers.figures import drawn, epoch_figures, leak_dots, neighbor_figure, scope_figure
from aadml.papers.parts import PARTS
from aadml.papers.rows import DRAWN, LEAKS, SELECTION, PaperRuns
from aadml.papers.tables import COMPARED, Group, draw_table, leak_table, paper_table
from aadml.reports import page
from aadml.reports.page import Fact, Section
from aadml.reports.tables import Table, write_tables
from aadml.studies.comparison_rows import ComparisonRow

REPORT = "report.html"
PUBLISHED = "published "


@dataclass
class Made:
    """What a reproduction made so far.

    Attributes:
        tables: name of the file -> table, those of the paper.
        numbers: name of the file -> the numbers of a figure.
        drawings: name of the file -> figure.
        leaks: data set -> title of a table -> what each leak adds there.
        sections: of the page.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    numbers: dict[str, Table] = field(default_factory=dict)
    drawings: dict[str, str] = field(default_factory=dict)
    leaks: dict[str, dict[str, Table]] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)


@dataclass(frozen=True)
class Words:
    """What is said beside the results.

    Attributes:
        shortened: a sentence where the schedules are shortened; stands on every table and section.
        notes: what people should know of data and rows.
        command: that repeats it.
    """

    shortened: str = ""
    notes: Sequence[str] = ()
    command: str = ""


def write_reproduction(
    parts: Sequence[str], runs: Mapping[str, PaperRuns], groups: Mapping[str, Group], folder: Path, words: Words
) -> tuple[list[Table], Path | None]:
    """Write tables (Markdown, CSV, LaTeX), the numbers of figures (CSV), figures (SVG) and the page.

    Args:
        parts: of the paper.
        runs: data set -> what was trained.
        groups: data set -> what it came to.
        folder: where to.
        words: what is said beside it.

    Returns:
        The tables, and the page; None where figures cannot be drawn because matplotlib is not installed.
    """
    made = Made()
    for part in parts:
        for data_set in PARTS[part].data_sets:
            if data_set in groups:
                _add(made, part, runs[data_set], groups[data_set], len(PARTS[part].data_sets) > 1)
    made.tables = {name: _marked(table, words.shortened) for name, table in made.tables.items()}
    for name, table in made.tables.items():
        write_tables(table, folder / name)
    for name, table in made.numbers.items():
        write_tables(table, folder / name, [".csv"])
    for name, drawing in made.drawings.items():
        write_text(folder / f"{name}.svg", drawing + "\n")
    if not made.drawings:
        return list(made.tables.values()), None
    sections = [replace(one, notes=[*filter(None, [words.shortened]), *one.notes]) for one in made.sections]
    sections += [Section("How it was made", page.command(words.command))]
    title = "Anchor-aware Deep Metric Learning, reproduced"
    html = page.document(title, "Reproduction of a paper", _summary(runs, groups, made, words), sections)
    write_text(folder / REPORT, html)
    return list(made.tables.values()), folder / REPORT


def _marked(table: Table, shortened: str) -> Table:
    return replace(table, caption=f"{shortened} {table.caption}", notes=table.notes) if shortened else table


def _add(made: Made, part: str, runs: PaperRuns, group: Group, several: bool) -> None:
    """Add one part on one data set; a figure without a finished run is left out."""
    name = f"{part}-{group.data_set}" if several else part
    title = PARTS[part].title + (f", on {group.name}" if several else "")
    if part in ("table-1", "table-2", "table-3"):
        _add_table(made, name, title, runs.methods if part == "table-1" else runs.losses, group)
    elif part == "figure-3":
        _add_figure(made, name, title, *scope_figure(runs.methods, group), words=_SCOPE)
    elif part == "figure-4":
        drawing, numbers = neighbor_figure(runs.neighbors, group)
        _add_figure(made, name, title, {"MAP over k": drawing}, numbers, words=_NEIGHBORS)
    elif part == "figure-5":
        _add_figure(made, name, title, *epoch_figures(runs.curves, group), words=_EPOCHS)
    elif runs.draws:
        table = draw_table({0: [row for row in runs.losses if row.item in DRAWN], **runs.draws}, group)
        made.tables[name] = table
        made.sections.append(Section(title, page.table(table), [table.caption, *table.notes]))


_SCOPE = "The share of relevant items among the K nearest; the axis goes as far as the paper's, or as the gallery."
_NEIGHBORS = "The paper finds k = 3 best for Triplet and Hard Triplet, 2 for complete Triplet; no numbers are printed."
_EPOCHS = (
    "Test curves are a diagnosis: they are written down while training and nothing is chosen by them; the epoch that "
    "is scored is that of the best validation MAP. Losses are of the clips as themselves, without dropout and "
    "proxies, so that the splits can be compared."
)


def _add_table(made: Made, name: str, title: str, rows: Sequence[ComparisonRow], group: Group) -> None:
    kind = rows[0].table
    table = paper_table(kind, rows, group, against="aadml" if kind == "methods" else None)
    jumps = leak_table(title, rows, group)
    made.tables[name] = table
    made.tables[f"{name}-leaks"] = jumps
    made.leaks.setdefault(group.data_set, {})[title] = jumps
    drawing = drawn(leak_dots, rows, group, kind)
    if drawing:
        made.drawings[f"{name}-leaks"] = drawing
    row, ours = table.columns[0], [column for column in table.columns if column.startswith("MAP ")]
    printed = [column for column in table.columns if column.startswith(PUBLISHED)]
    compared = next(column for column in table.columns if column.startswith("difference"))
    content = page.table(table, [row, *ours, *printed, compared, "seeds"])
    content += "<h3>What each leak makes of the same runs</h3>"
    if drawing:
        content += page.drawing(drawing, f"{title}: inductive MAP, each leak, and what was published")
    content += page.table(jumps) if jumps.rows else ""
    content += page.table(table, [row, "MAP mean", SELECTION, *LEAKS])
    content += "<h3>Cost</h3>" + page.table(table, [row, "epochs", "steps", "seconds", "seeds"])
    made.sections.append(Section(title, content, [table.caption, *(note for note in table.notes if note != COMPARED)]))


def _add_figure(made: Made, name: str, title: str, panels: Mapping[str, str], numbers: Table, *, words: str) -> None:
    made.numbers[name] = numbers
    panels = {panel: drawing for panel, drawing in panels.items() if drawing}
    for panel, drawing in panels.items():
        short = panel.split(",")[0].lower().replace(" ", "-")
        made.drawings[f"{name}-{short}"] = drawing
    content = page.drawings([page.drawing(one, f"{title}: {panel}", panel) for panel, one in panels.items()])
    made.sections.append(Section(title, content, [words, numbers.caption]))


def _summary(runs: Mapping[str, PaperRuns], groups: Mapping[str, Group], made: Made, words: Words) -> str:
    """Say what was found: for each data set the paper's method beside what is printed, and the leak that adds most."""
    shown, sentences = [], []
    for data_set, group in groups.items():
        best = group.scores.get(runs[data_set].curves["aa-triplet"].name)
        figure = best.over_seeds("map") if best else None
        if figure is not None:
            shown.append(Fact(f"AADML on {group.name}, inductive", str(figure), "test MAP, mean of both directions"))
        sentences += [_most(name, table, group) for name, table in made.leaks.get(data_set, {}).items() if table.rows]
    finished = sum(len(one.runs) for group in groups.values() for one in group.scores.values())
    lost = sum(len(one.failed) for group in groups.values() for one in group.scores.values())
    shown.append(Fact("runs", str(finished), f"{lost} failed" if lost else "all finished"))
    warning = f'<p class="warning">{page.text(words.shortened)}</p>' if words.shortened else ""
    notes = "".join(f'<p class="note">{page.text(note)}</p>' for note in (*sentences, COMPARED, *words.notes))
    return f"{warning}{page.facts(shown)}{notes}"


def _most(title: str, table: Table, group: Group) -> str:
    """Say which leak adds most to the rows of a table."""
    leak, mean = table.rows[0][:2]
    return f"{title.split(':')[0]} on {group.name}: of all leaks {leak} adds most, {table.text(mean)} on average."
