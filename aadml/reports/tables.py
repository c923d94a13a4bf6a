"""Tables of results, written as Markdown, CSV or LaTeX."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.feature_extraction.ground.markdown import one_line
from aadml.retrieval.significance import Spread

Cell = str | int | float | Spread | None
"""Text, a count, a number, a number over seeds, or None for a missing value (not published, not run)."""

ABSENT = "–"
_LATEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {letter: f"${letter}$" for letter in "<>|"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}
    | {"±": r"$\pm$", "≈": r"$\approx$", "→": r"$\rightarrow$", "–": "--"}
)


@dataclass(frozen=True)
class Table:
    """Table of results.

    Attributes:
        columns: names of the columns.
        rows: rows of one cell per column.
        caption: a sentence with data, split, protocol and number of seeds.
        notes: sentences below the table.
        digits: number of decimal places.
        best: columns whose largest number is set in bold.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()
    digits: int = 3
    best: tuple[str, ...] = ()

    def text(self, cell: Cell) -> str:
        """Return the text of a cell; for a number over several seeds, mean ± standard deviation."""
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return ABSENT
        if isinstance(cell, Spread):
            several = cell.count > 1 and math.isfinite(cell.sd)
            return f"{cell.mean:.{self.digits}f}" + (f" ± {cell.sd:.{self.digits}f}" if several else "")
        return f"{cell:.{self.digits}f}" if isinstance(cell, float) else str(cell)

    def is_best(self, row: int, column: int) -> bool:
        """Return whether a column is in `best`, and the cell has the largest printed number of the column."""
        if self.columns[column] not in self.best:
            return False
        printed = [None if (n := _value(cells[column])) is None else round(n, self.digits) for cells in self.rows]
        return printed[row] is not None and printed[row] == max(number for number in printed if number is not None)

    def has_numbers(self, column: int) -> bool:
        """Return whether any cell of a column is a number."""
        return any(is_number(row[column]) for row in self.rows)


def as_json(table: Table) -> JsonObject:
    """Return a table as JSON: caption, rows by column name, and notes. Numbers over seeds have mean, sd and seeds."""
    rows = [dict(zip(table.columns, map(_json_of, row), strict=True)) for row in table.rows]
    return {"caption": table.caption, "rows": rows, "notes": table.notes}


def _json_of(cell: Cell) -> Json:
    if isinstance(cell, Spread):
        return {"mean": cell.mean, "sd": cell.sd if cell.count > 1 else None, "seeds": cell.count}
    return cell


def markdown(table: Table) -> str:
    """Return a table as Markdown, with its caption above and its notes below."""
    rules = ["---:" if table.has_numbers(j) else "---" for j in range(len(table.columns))]
    cells = [[one_line(name) for name in table.columns], rules]
    for i, row in enumerate(table.rows):
        texts = [one_line(table.text(cell)) for cell in row]
        cells.append([f"**{text}**" if table.is_best(i, j) else text for j, text in enumerate(texts)])
    lines = [f"| {' | '.join(row)} |" for row in cells]
    notes = [f"- {one_line(note)}" for note in table.notes]
    return "\n\n".join(filter(None, [one_line(table.caption), "\n".join(lines), "\n".join(notes)])) + "\n"


def comma_separated(table: Table) -> str:
    """Return a table as CSV in full precision. Numbers over seeds have three columns (mean, sd, n)."""
    spreads = [any(isinstance(row[j], Spread) for row in table.rows) for j in range(len(table.columns))]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    header: list[str] = []
    for name, several in zip(table.columns, spreads, strict=True):
        header += [name, f"{name} sd", f"{name} n"] if several else [name]
    writer.writerow(header)
    for row in table.rows:
        values: list[Cell] = []
        for cell, several in zip(row, spreads, strict=True):
            values += [cell.mean, cell.sd, cell.count] if isinstance(cell, Spread) else [cell]
            values += [None, None] if several and not isinstance(cell, Spread) else []
        writer.writerow(map(_exact, values))
    return stream.getvalue()


def latex(table: Table) -> str:
    """Return a table as a LaTeX `table` environment, which needs the package booktabs."""
    alignment = "".join("r" if table.has_numbers(j) else "l" for j in range(len(table.columns)))
    lines = [r"\begin{table}[t]", r"\centering"]
    if table.caption:
        lines.append(rf"\caption{{{_escaped_latex(table.caption)}}}")
    lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule"]
    lines += [" & ".join(_escaped_latex(name) for name in table.columns) + r" \\", r"\midrule"]
    for i, row in enumerate(table.rows):
        texts = [_escaped_latex(table.text(cell)) for cell in row]
        texts = [rf"\textbf{{{text}}}" if table.is_best(i, j) else text for j, text in enumerate(texts)]
        lines.append(" & ".join(texts) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\smallskip\footnotesize {_escaped_latex(note)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


WRITERS: dict[str, Callable[[Table], str]] = {".md": markdown, ".csv": comma_separated, ".tex": latex}


def write_tables(table: Table, path: Path, suffixes: Sequence[str] = tuple(WRITERS)) -> None:
    """Write a table in several formats.

    Args:
        table: the table.
        path: path of the files, without suffix.
        suffixes: keys of WRITERS.

    Raises:
        InputError: a file cannot be written.
    """
    for suffix in suffixes:
        write_text(Path(f"{path}{suffix}"), WRITERS[suffix](table))


def is_number(cell: Cell) -> bool:
    """Return whether a cell is a number, possibly over several seeds, that is not NaN."""
    return _value(cell) is not None


def _value(cell: Cell) -> float | None:
    value = cell.mean if isinstance(cell, Spread) else cell
    return float(value) if isinstance(value, int | float) and not math.isnan(value) else None


def _exact(cell: Cell) -> str:
    if isinstance(cell, float):
        return "" if math.isnan(cell) else repr(float(cell))
    return "" if cell is None else str(cell)


def _escaped_latex(text: str) -> str:
    plain = " ".join(text.split()).translate(_LATEX)
    # braces separate a bracket or star from the preceding \\
    return f"{{{plain[0]}}}{plain[1:]}" if plain.startswith(("[", "*")) else plain
