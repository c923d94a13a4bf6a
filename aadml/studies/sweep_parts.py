"""Parts that the tables and pages of studies share: columns, captions, the summary, and the files that are written."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from aadml.comparison.relevance import LABEL
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.reports.page import Fact, facts, table, text
from aadml.reports.published import FIGURES, NOTE, published
from aadml.reports.tables import Cell, Table, write_tables
from aadml.retrieval.significance import NEGLIGIBLE, Difference
from aadml.retrieval.summary import RELEVANCE_IN_WORDS
from aadml.runs.environment import read_environment
from aadml.studies.ablation_grid import run_folder
from aadml.studies.results import CellScores, how_tested, in_words, mean_chance, mean_map

REPORT = "report.html"
COST = ("epochs", "steps", "seconds", "parameters", "seeds")
PUBLISHED = " published "
Columns = dict[str, list[Cell]]
"""Name of a column -> one cell a row."""


def figure_columns(metric: str, cells: Sequence[CellScores], directions: Sequence[str], title: str = "") -> Columns:
    """Return a metric over the seeds: a column for each direction, and one for their mean."""
    return {
        f"{title or metric} {direction or 'mean'}": [cell.over_seeds(metric, direction) for cell in cells]
        for direction in (*directions, None)
    }


def cost_columns(cells: Sequence[CellScores], *names: str) -> Columns:
    """Return columns of `CellScores.cost`."""
    return {name: [cell.cost(name) for cell in cells] for name in names}


def published_columns(kind: str, items: Sequence[str], data_set: str, prefix: str = "") -> Columns:
    """Return the published figures of methods or losses on a data set; empty cells for other names."""
    printed = published(kind)
    return {
        f"{prefix}published {figure.replace('_', '-')}": [
            printed.get(item, {}).get(data_set, {}).get(figure) for item in items
        ]
        for figure in FIGURES
    }


def results_table(
    columns: Columns, about: str, tested: Iterable[Difference], notes: Sequence[str], best: tuple[str, ...] = ()
) -> Table:
    """Return a table of columns; its notes begin with how differences were tested.

    Args:
        columns: of equal length.
        about: caption.
        tested: differences in the table.
        notes: further notes.
        best: columns with the largest figure in bold.
    """
    rows = tuple(zip(*columns.values(), strict=True))
    return Table(tuple(columns), rows, about, (*how_tested(tested), *notes), best=best)


def failures(rows: Mapping[str, CellScores]) -> list[str]:
    """Return a sentence for each failed run, from the name of a row -> its scores."""
    return [
        f"{name}, seed {seed}, failed: {reason}" for name, cell in rows.items() for seed, reason in cell.failed.items()
    ]


def describe(scores: Mapping[str, CellScores], seeds: Sequence[int], folder: Path, metrics: Sequence[str] = ()) -> str:
    """Return the caption of a study: data, split, relevance, protocol, chance, ties, seeds, notes on the data.

    Raises:
        InputError: no run was finished.
    """
    first = [(cell, *next(iter(cell.runs.items()))) for cell in scores.values() if cell.runs]
    if not first:
        reasons = [reason for cell in scores.values() for reason in cell.failed.values()]
        cause = f" ({reasons[0]})" if reasons else ""
        raise InputError(f"{folder}: no run was finished{cause}; see failure.txt in each")
    records = [run.record for _, _, run in first]
    environments = [read_environment(run_folder(folder, cell.cell, seed)) for cell, seed, _ in first]
    record, environment = records[0], environments[0]
    clips = ", ".join(f"{_span([other.clips[split] for other in environments])} {split}" for split in environment.clips)
    chance = _span([f"{other.chance:.3f}" for other in records])
    of_metrics = [
        f"{metric} {_span([f'{level:.3f}' for level in levels])}"
        for metric in metrics
        if (levels := [level for other in records if (level := other.chance_of(metric)) is not None])
    ]
    chance += f" ({', '.join(of_metrics)})" if of_metrics else ""
    rules = sorted({other.relevance for other in records} - {LABEL.name})
    relevant = "".join(f"relevant is {RELEVANCE_IN_WORDS[rule]} ({rule}), " for rule in rules)
    ties = max(run.record.tie_rate for cell in scores.values() for run in cell.runs.values())
    shared = [note for note in environment.data.notes if all(note in other.data.notes for other in environments)]
    noted = "".join(f"; {note.rstrip('.')}" for note in shared)
    return (
        f"MAP on the {record.split} split of {Path(environment.data.name).name} ({clips} clips), "
        f"{relevant}protocol {record.protocol}, chance {chance}, tie rate at most {ties:.3f}; "
        f"{'mean ± sd over ' if len(seeds) > 1 else ''}{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
        f"{noted}."
    )


def _span(values: Sequence[Any]) -> str:
    """Return the smallest and the largest value, once where they are equal."""
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def write_results(folder: Path, tables: Mapping[str, Table], drawings: Mapping[str, str], html: str) -> Path | None:
    """Write tables (Markdown, CSV, LaTeX), drawings (SVG) and a page.

    Args:
        folder: of the files.
        tables: name of a file, without ending -> table.
        drawings: name of a file, without ending -> SVG.
        html: the page; "" writes none.

    Returns:
        Path of the page; None without one.
    """
    for name, content in tables.items():
        write_tables(content, folder / name)
    for name, drawing in drawings.items():
        write_text(folder / f"{name}.svg", drawing + "\n")
    if not html:
        return None
    write_text(folder / REPORT, html)
    return folder / REPORT


def summary(
    rows: Mapping[str, CellScores],
    tested: Mapping[str, Difference],
    reference: str | None,
    about: Sequence[str],
    what: str = "row",
) -> str:
    """Return the summary of a study as HTML: the best row, and how sure its difference is.

    Args:
        rows: name -> scores.
        tested: name of a row -> difference to its baseline.
        reference: common baseline of all rows, if there is one.
        about: plain sentences: data, split, protocol, chance, seeds.
        what: noun for a row.
    """
    scored = {name: spread for name, cell in rows.items() if (spread := cell.over_seeds("map")) is not None}
    best = max(scored, key=lambda name: scored[name].mean)
    chance = mean_chance(rows.values())
    runs = sum(len(cell.runs) for cell in rows.values())
    failed = sum(len(cell.failed) for cell in rows.values())
    shown = [Fact(f"best test {mean_map(rows.values())}", str(scored[best]), best)]
    if reference in scored and reference != best:
        shown.append(Fact("measured against", str(scored[str(reference)]), str(reference)))
    shown.append(Fact("chance", f"{chance:.3f}", "MAP of a random order"))
    several = f"{len(rows)} {what}s" if len(rows) != 1 else f"1 {what}"
    shown.append(Fact("runs", str(runs), several + (f", {failed} runs failed" if failed else "")))
    words = f"{best} scores highest, {scored[best].mean / chance:.1f} times chance."
    if best in tested:
        against = reference or "its baseline"
        words += f" Its difference to {against} is {_how_sure(tested[best])}: {in_words(tested[best])}."
    notes = "".join(f'<p class="note">{text(note)}</p>' for note in (verdict(tested, what), *about) if note)
    return f'<p class="verdict">{text(words)}</p>{facts(shown)}{notes}'


def _how_sure(minus: Difference) -> str:
    if math.isnan(minus.p):
        return "not tested"
    if minus.significant:
        return "significant"
    return f"within ±{NEGLIGIBLE:g}" if minus.equivalent else "undecided"


def verdict(differences: Mapping[str, Difference], what: str) -> str:
    """Return a sentence with the number of differences of each outcome; "" without differences."""
    if not differences:
        return ""
    tested = [minus for minus in differences.values() if not math.isnan(minus.p)]
    if not tested:
        return f"Nothing is tested: one seed says nothing of others ({len(differences)} {what}s were compared)."
    above = sum(minus.significant and minus.mean > 0 for minus in tested)
    below = sum(minus.significant and minus.mean < 0 for minus in tested)
    equal = sum(minus.equivalent and not minus.significant for minus in tested)
    return (
        f"Of {len(tested)} comparison{'s' if len(tested) > 1 else ''}: {above} significantly above, {below} "
        f"significantly below, {equal} equal within ±{NEGLIGIBLE:g}, {len(tested) - above - below - equal} undecided."
    )


def result_tables(shown: Table, key_columns: int = 1) -> str:
    """Return a wide table as several, in HTML: the results, the published figures beside ours, and the cost.

    Args:
        shown: the table.
        key_columns: number of columns, at the beginning, that name a row.
    """
    keys, printed = shown.columns[:key_columns], [name for name in shown.columns if PUBLISHED in name]
    cost = [name for name in shown.columns if name in COST]
    html = table(shown, [name for name in shown.columns if name not in (*printed, *cost)])
    positions = [shown.columns.index(name) for name in printed]
    rows = tuple(row for row in shown.rows if any(row[position] is not None for position in positions))
    if rows:  # the best figure of all rows is not marked among those with published figures
        html += f'<h3>Beside the published figures</h3><p class="note">{text(NOTE)}</p>'
        html += table(replace(shown, rows=rows, best=()), [*keys, "MAP mean", *printed])
    return html + ("<h3>Cost</h3>" + table(shown, [*keys, *cost]) if cost else "")
