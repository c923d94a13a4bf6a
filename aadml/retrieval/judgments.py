"""What is relevant, chosen by name or read from a file: judgments, or what can be perceived in each modality."""

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from aadml.comparison.relevance import RULES, Judgments, Perceived, Relevance
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import suggestion
from aadml.feature_extraction.manifest import split_labels

HEADER = ["query", "item", "grade"]
_EVENTS = "_labels"  # at the end of the name of a column, after that of a modality


def chosen_relevance(name: str) -> Relevance:
    """Find a rule by its name, or read it from a file.

    Args:
        name: "own" partner, same "label", shared "labels", "labels-graded" (the more of them, the more relevant), or
            the path of a file of judgments, or of the events that can be perceived in each modality.

    Raises:
        InputError: neither a rule nor such a file.
    """
    if name in RULES:
        return RULES[name]
    if not Path(name).is_file():
        raise InputError(f"relevance: no rule and no file '{name}'; {suggestion(name, RULES)}, or a file of judgments")
    return read_events(name) if _event_columns(_lines(name)) else read_judgments(name)


def read_judgments(path: str | Path) -> Judgments:
    """Read judgments: a CSV with the columns query, item and grade, or TREC's qrels (query, 0, item, grade).

    Queries and items are named by the ids of clips. A grade of 0 or below says that an item is not relevant.

    Raises:
        InputError: it cannot be read, or a line is no judgment; the message names the line.
    """
    lines = _lines(path)
    cells = _of_table(lines) if lines and _is_header(lines[0]) else _of_trec(lines)
    grades: dict[str, dict[str, float]] = {}
    for number, found in cells:
        grade = _grade(found[2]) if len(found) == len(HEADER) else None
        if grade is None:
            raise InputError(
                f"{path}: line {number} is no judgment; a CSV begins with query,item,grade, and each line of qrels "
                "holds a query, 0, an item and a grade"
            )
        named = grades.setdefault(found[0], {})
        if found[1] in named:
            raise InputError(f"{path}: line {number} judges item '{found[1]}' for query '{found[0]}' again")
        named[found[1]] = grade
    if not grades:
        raise InputError(f"{path}: holds no judgments")
    return Judgments({query: {i: g for i, g in named.items() if g > 0} for query, named in grades.items()})


def read_events(path: str | Path) -> Perceived:
    """Read which events can be perceived in which modality: a CSV with the columns id, audio_labels, visual_labels ...

    A cell holds any number of events, `dog|siren`; further columns are not looked at, so a manifest may have these.

    Raises:
        InputError: it cannot be read, a line has other cells than the header, or a clip stands there twice.
    """
    lines = _lines(path)
    columns, rows = _event_columns(lines), list(csv.reader(lines))
    events: dict[str, dict[str, frozenset[str]]] = {modality: {} for modality in columns}
    place = rows[0].index("id")
    for number, row in enumerate(rows[1:], 2):
        if not row:
            continue
        if len(row) != len(rows[0]):
            raise InputError(f"{path}: line {number} has {len(row)} cells, the header {len(rows[0])}")
        for modality, column in columns.items():
            if row[place] in events[modality]:
                raise InputError(f"{path}: line {number} names clip '{row[place]}' again")
            events[modality][row[place]] = frozenset(split_labels(row[column]))
    return Perceived(events)


def _event_columns(lines: list[str]) -> dict[str, int]:
    """Find the columns of events: modality -> its place; none where a file has no such columns, or no ids."""
    header = next(csv.reader(lines[:1]), [])
    found = {name.removesuffix(_EVENTS): place for place, name in enumerate(header) if name.endswith(_EVENTS)}
    return found if "id" in header else {}


def _lines(path: str | Path) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as judgments ({error})") from error


def _is_header(line: str) -> bool:
    return [cell.strip().lower() for cell in line.split(",")] == HEADER


def _of_table(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    yield from ((number, row) for number, row in enumerate(csv.reader(lines[1:]), 2) if row)


def _of_trec(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, 1):
        cells = line.split()
        if cells:
            yield number, [cells[0], *cells[2:]]


def _grade(text: str) -> float | None:
    try:
        grade = float(text)
    except ValueError:
        return None
    return grade if math.isfinite(grade) else None
