"""Relevance rules, selected by name or read from a file of judgments."""

import csv
import math
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from aadml.comparison.relevance import RULES, Judgments, Relevance
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import as_yaml
from aadml.feature_extraction.ground.registry import suggestion

HEADER = ["query", "item", "grade"]
_LEAST, _LARGEST = 1e-6, 1e6
"""Range of grades above 0, of which sums and quotients are exact enough."""


def relevance_name(relevance: str | Path | None) -> str | None:
    """Return the name of a relevance rule, or the absolute path of a file of judgments; None if no rule is passed."""
    return None if relevance is None else relevance if relevance in RULES else str(Path(relevance).absolute())


def judgment_files(relevance: Iterable[object]) -> list[str]:
    """Return the absolute paths of the files of judgments among relevance rules, without duplicates."""
    files = [name for name in relevance if isinstance(name, str) and name not in RULES and Path(name).is_file()]
    return list(dict.fromkeys(str(Path(name).absolute()) for name in files))


def chosen_relevance(name: str) -> Relevance:
    """Return a rule by its name, or read a rule from a file.

    Args:
        name: "own" (only the partner), "label" (the same class), "labels" (a shared label), "labels-graded" (more
            shared labels are more relevant), or the path of a file of judgments.

    Raises:
        InputError: the name is neither a rule nor a file, or the file does not contain judgments.
    """
    if name in RULES:
        return RULES[name]
    if not Path(name).is_file():
        raise InputError(f"relevance: '{name}' is neither a file of judgments nor a rule; {suggestion(name, RULES)}")
    return read_judgments(name)


def read_judgments(path: str | Path) -> Judgments:
    """Read judgments: a CSV with the columns query, item and grade, or TREC's qrels (query, 0, item, grade).

    Queries and items are ids of clips. An item with a grade of 0 or below is not relevant. Grades above 0 are from 1e-6
    to 1e6.

    Raises:
        InputError: the file cannot be read, contains no judgments, or contains an invalid line or a repeated judgment.
            The message about a line contains the line number.
    """
    lines = _lines(path)
    is_csv = bool(lines) and [cell.strip('" \t').lower() for cell in lines[0].split(",")] == HEADER
    cells = _cells_of_csv(lines, path) if is_csv else _cells_of_qrels(lines)
    grades: dict[str, dict[str, float]] = {}
    for number, row in cells:
        grade = _grade(row[2]) if len(row) == len(HEADER) else None
        if grade is None:
            raise InputError(
                f"{path}: line {number} is not a judgment ({as_yaml(lines[number - 1])}); write a CSV with the header "
                "'query,item,grade', or qrels with lines 'QUERY 0 ITEM GRADE', where each grade is 0 or from "
                "1e-6 to 1e6"
            )
        query, item, _ = row
        if item in grades.setdefault(query, {}):
            raise InputError(f"{path}: line {number} judges item '{item}' for query '{query}' again; remove this line")
        grades[query][item] = grade
    if not grades:
        raise InputError(f"{path} contains no judgments; add at least one line with a judgment")
    return Judgments({query: {i: g for i, g in judged.items() if g > 0} for query, judged in grades.items()})


def judgment_notes(relevance: Relevance, ids: Collection[str]) -> list[str]:
    """Return a list of at most one note on the judged queries and items outside the clips `ids`."""
    if not isinstance(relevance, Judgments):
        return []
    judged = dict.fromkeys(name for query, items in relevance.grades.items() for name in (query, *items))
    absent = list(judged.keys() - set(ids))
    shown = ", ".join(sorted(absent)[:3])
    return [f"{len(absent)} of {len(judged)} judged ids are not ids of the clips ({shown})"] if absent else []


def _lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as judgments ({error}); pass a text file in UTF-8") from error


def _cells_of_csv(lines: list[str], path: str | Path) -> Iterator[tuple[int, list[str]]]:
    try:
        yield from ((number, row) for number, row in enumerate(csv.reader(lines[1:]), 2) if row)
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV file ({error}); remove unpaired quotes from its lines") from error


def _cells_of_qrels(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        cells = line.split()
        if cells:
            yield number, [cells[0], *cells[2:]]


def _grade(text: str) -> float | None:
    try:
        grade = float(text)
    except ValueError:
        return None
    return grade if math.isfinite(grade) and (grade <= 0 or _LEAST <= grade <= _LARGEST) else None
