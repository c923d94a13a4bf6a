"""Shared parts of the tables and pages of studies: columns, captions, the summary, and the written files."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aadml.comparison.relevance import LABEL
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.reports import page
from aadml.reports.published import NOTE, PAPER, PublishedMap
from aadml.reports.tables import Cell, Table, write_tables
from aadml.retrieval.significance import NEGLIGIBLE, Difference, Pair
from aadml.retrieval.summary import RELEVANCE_IN_WORDS
from aadml.runs.environment import Environment, read_environment
from aadml.studies.ablation_grid import run_folder
from aadml.studies.execution import Execution
from aadml.studies.folder import RUNS
from aadml.studies.job import FAILURE
from aadml.studies.results import (
    CellScores,
    differences,
    directions_of,
    how_tested,
    in_words,
    mean_chance,
    mean_map,
)
from aadml.studies.sweep import NOT_POSSIBLE

REPORT = "report.html"
COST = ("epochs", "steps", "seconds", "parameters", "seeds")
PUBLISHED = " published "


class ResultColumns(dict[str, list[Cell]]):
    """Columns of a table of results by name, with one row per cell.

    Args:
        cells: scores of the rows.
        scores: scores of all cells of the study, by name.
        names: columns that name the rows.
    """

    def __init__(
        self, cells: Sequence[CellScores], scores: Mapping[str, CellScores], names: Mapping[str, list[Cell]]
    ) -> None:
        super().__init__(names)
        self._cells, self._scores, self._directions = cells, scores, directions_of(scores)
        self.tested: Mapping[Pair, Difference] = {}

    def add_figures(self, metric: str, title: str = "") -> None:
        """Add a metric over the seeds: a column for each direction, and a column for their mean."""
        for direction in (*self._directions, None):
            name = f"{title or metric} {direction or 'mean'}"
            self[name] = [cell.over_seeds(metric, direction) for cell in self._cells]

    def add_differences(self, title: str, pairs: Sequence[Pair | None]) -> None:
        """Test pairs of cells, one per row, and add a column of differences.

        An entry of the column is empty if the row has no pair of two different cells.
        """
        self.tested = differences(self._scores, (p for p in pairs if p and p[1] in self._scores))
        self[title] = [None if pair is None else in_words(self.tested.get(pair)) for pair in pairs]

    def add_cost(self, *names: str) -> None:
        """Add columns of `CellScores.cost`."""
        self.update({name: [cell.cost(name) for cell in self._cells] for name in names})

    def add_published(self, kind: str, items: Sequence[str], data_set: str, prefix: str = "") -> None:
        """Add columns of published results of methods or losses on a data set.

        The entries of a method or loss without published results are empty.

        Args:
            kind: "methods" or "losses".
            items: method or loss of each row.
            data_set: name of the data set.
            prefix: first words of the names of the columns.
        """
        printed = [PAPER.published[kind].get(item, {}).get(data_set) for item in items]
        for figure in PublishedMap._fields:
            column = [None if maps is None else getattr(maps, figure) for maps in printed]
            self[f"{prefix}published {figure.replace('_', '-')}"] = column

    def table(self, about: str, notes: Sequence[str] = (), best: str = "") -> Table:
        """Return the table. Notes on the tests of the differences, if there are any, precede the other notes.

        Args:
            about: caption.
            notes: notes after those on the tests.
            best: column whose largest value is bold.
        """
        rows = tuple(zip(*self.values(), strict=True))
        return Table(
            tuple(self), rows, about, (*how_tested(self.tested.values()), *notes), best=(best,) if best else ()
        )


@dataclass(frozen=True)
class StudyPart(page.Section):
    """A section of the page of a study, with the files of the section.

    The keys of every mapping are file names without suffix.

    Attributes:
        tables: tables that are written as Markdown, CSV and LaTeX.
        numbers: tables that are only written as CSV.
        drawings: figures as SVG; empty if matplotlib is not installed.
    """

    tables: Mapping[str, Table] = field(default_factory=dict)
    numbers: Mapping[str, Table] = field(default_factory=dict)
    drawings: Mapping[str, str] = field(default_factory=dict)


ENDING = StudyPart("How the study was made", "")


def write_study(
    execution: Execution,
    title: str,
    kind: str,
    summary: str,
    parts: Sequence[StudyPart],
    *,
    ending: StudyPart = ENDING,
) -> Path:
    """Write the files of a study and its page.

    Args:
        execution: execution of the study, with folder and command.
        title: title of the page.
        kind: kind of the page, in a few words.
        summary: summary as HTML.
        parts: parts of the page.
        ending: last part, which begins with the command.

    Returns:
        Path of the page. Parts without content are not on the page.

    Raises:
        InputError: a file cannot be written.
    """
    for part in parts:
        for name, content in part.tables.items():
            write_tables(content, execution.folder / name)
        for name, content in part.numbers.items():
            write_tables(content, execution.folder / name, [".csv"])
        for name, drawing in part.drawings.items():
            write_text(execution.folder / f"{name}.svg", drawing + "\n")
    last = replace(ending, content=page.command(execution.command) + ending.content)
    path = execution.folder / REPORT
    write_text(path, page.document(title, kind, summary, [*parts, last]))
    return path


def failures(rows: Mapping[str, CellScores]) -> list[str]:
    """Return a sentence for each failed run, and a sentence for each row that cannot be trained on the data.

    Args:
        rows: name -> scores.
    """
    sentences = [
        f"{name}: {reason}" if reason.startswith(NOT_POSSIBLE) else f"{name}, seed {seed}, failed: {reason}"
        for name, cell in rows.items()
        for seed, reason in cell.failed.items()
    ]
    return list(dict.fromkeys(sentences))


def describe(scores: Mapping[str, CellScores], seeds: Sequence[int], folder: Path, metrics: Sequence[str] = ()) -> str:
    """Return the caption of a study: data, split, relevance, protocol, chance, ties, seeds, notes on the data.

    Raises:
        InputError: no run finished, or the environment of a run cannot be read.
    """
    records = [run.record for cell in scores.values() for run in cell.runs.values()]
    if not records:
        reasons = [reason for cell in scores.values() for reason in cell.failed.values()]
        cause = f" ({reasons[0]})" if reasons else ""
        files = "; see failure.txt in the folder of each run" if any(folder.glob(f"{RUNS}/*/{FAILURE}")) else ""
        raise InputError(f"{folder}: no run finished{cause}{files}")
    environments = _environments(scores, folder)
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
    relevant = "".join(f"relevance {rule} ({RELEVANCE_IN_WORDS[rule]}), " for rule in rules)
    ties = max(other.tie_rate for other in records)
    shared = [note for note in environment.data.notes if all(note in other.data.notes for other in environments)]
    noted = "".join(f" {note[:1].upper()}{note[1:].rstrip('.')}." for note in shared)
    return (
        f"MAP on the {record.split} split of {_data_names(environments)} ({clips} clips), "
        f"{relevant}protocol {record.protocol}, chance {chance}, tie rate at most {ties:.3f}; "
        f"{'mean ± sd over ' if len(seeds) > 1 else ''}{len(seeds)} seed{'s' if len(seeds) > 1 else ''}.{noted}"
    )


def data_name(scores: Mapping[str, CellScores], folder: Path) -> str:
    """Return the names of the data of the finished runs of a study, without folders, separated by commas.

    Raises:
        InputError: the environment of a run cannot be read.
    """
    return _data_names(_environments(scores, folder))


def _environments(scores: Mapping[str, CellScores], folder: Path) -> list[Environment]:
    """Return the environments of the finished runs of a study."""
    return [read_environment(run_folder(folder, c.cell, seed)) for c in scores.values() for seed in c.runs]


def _data_names(environments: Sequence[Environment]) -> str:
    return ", ".join(dict.fromkeys(Path(environment.data.name).name for environment in environments))


def _span(values: Sequence[Any]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def summary(
    rows: Mapping[str, CellScores],
    scores: Mapping[str, CellScores],
    pairs: Mapping[str, Pair],
    reference: str | None,
    about: Sequence[str],
    what: str = "row",
) -> str:
    """Return the summary of a study as HTML: the best row, and the significance of its difference from its baseline.

    Args:
        rows: name -> scores.
        scores: scores by name of the cell.
        pairs: name of a row -> cell of the row and cell of its baseline.
        reference: common baseline of all rows, if there is one.
        about: plain sentences: data, split, protocol, chance, seeds.
        what: noun for a row.
    """
    compared = differences(scores, pairs.values())
    tested = {name: compared[pair] for name, pair in pairs.items() if pair in compared}
    scored = {name: spread for name, cell in rows.items() if (spread := cell.over_seeds("map")) is not None}
    best = max(scored, key=lambda name: scored[name].mean)
    chance = mean_chance(rows.values())
    runs = sum(len(cell.runs) for cell in rows.values())
    failed = sum(len(cell.failed) for cell in rows.values())
    shown = [page.Fact(f"best test {mean_map(rows.values())}", str(scored[best]), best)]
    if reference in scored and reference != best:
        shown.append(page.Fact("compared with", str(scored[str(reference)]), str(reference)))
    shown.append(page.Fact("chance", f"{chance:.3f}", "MAP of a random order"))
    several = f"{len(rows)} {what}s" if len(rows) != 1 else f"1 {what}"
    several += f", {failed} run{'s' if failed > 1 else ''} failed" if failed else ""
    shown.append(page.Fact("runs", str(runs), several))
    words = f"{best} scores highest, {scored[best].mean / chance:.1f} times chance."
    if best in tested:
        against = reference or "its baseline"
        words += f" Its difference to {against} is {_how_sure(tested[best])}: {in_words(tested[best])}."
    return page.summary(shown, [note for note in (verdict(tested, what), *about) if note], verdict=words)


def _how_sure(minus: Difference) -> str:
    if math.isnan(minus.p):
        return "not tested"
    if minus.significant:
        return "significant"
    if minus.equivalent:
        return f"within ±{NEGLIGIBLE:g}"
    return "undecided, as two seeds are too few" if minus.seeds == 2 else "undecided"


def verdict(differences: Mapping[str, Difference], what: str) -> str:
    """Return a sentence that counts the differences by outcome, such as "undecided"; "" without differences.

    Args:
        differences: name of a row -> difference from its baseline.
        what: noun for a row.
    """
    if not differences:
        return ""
    tested = [minus for minus in differences.values() if not math.isnan(minus.p)]
    if not tested:
        compared = f"{len(differences)} {what}s were" if len(differences) > 1 else f"1 {what} was"
        return f"No differences are tested, as no pair has two common finished seeds ({compared} compared)."
    above = sum(minus.significant and minus.mean > 0 for minus in tested)
    below = sum(minus.significant and minus.mean < 0 for minus in tested)
    equal = sum(minus.equivalent and not minus.significant for minus in tested)
    return (
        f"Of {len(tested)} comparison{'s' if len(tested) > 1 else ''}: {above} significantly above, {below} "
        f"significantly below, {equal} equal within ±{NEGLIGIBLE:g}, {len(tested) - above - below - equal} undecided."
    )


def result_tables(shown: Table, key_columns: int = 1, figure: str = "") -> str:
    """Return a wide table as several tables in HTML.

    The tables contain the results, the published results beside the mean MAP of the study, and the cost.

    Args:
        shown: the table.
        key_columns: number of columns, at the beginning, that name a row.
        figure: HTML next to the cost.
    """
    keys, printed = shown.columns[:key_columns], [name for name in shown.columns if PUBLISHED in name]
    cost = [name for name in shown.columns if name in COST]
    html = page.table(shown, [name for name in shown.columns if name not in (*printed, *cost)])
    positions = [shown.columns.index(name) for name in printed]
    rows = tuple(row for row in shown.rows if any(row[position] is not None for position in positions))
    if rows:  # the best result of all rows is not marked among the rows with published results
        html += f'<h3>Beside the published results</h3><p class="note">{page.text(NOTE)}</p>'
        html += page.table(replace(shown, rows=rows, best=()), [*keys, "MAP mean", *printed])
    costs = "<h3>Cost</h3>" + page.table(shown, [*keys, *cost]) if cost else ""
    return html + page.drawings([part for part in (figure, costs) if part])
