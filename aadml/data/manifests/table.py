"""Listing of a user's table of media: cells separated by `,`, `;` or tab, any names of columns, optional labels."""

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aadml.data.manifests.folder import unique_names
from aadml.data.manifests.listing import ListedClip, Listing, with_sources
from aadml.data.manifests.media_names import media_index, media_name, template_fields
from aadml.data.splitting.folds import first_five
from aadml.feature_extraction.feature_file.checks import check_unique
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import suggestion
from aadml.feature_extraction.manifest import ALIASES, LABELS_SEPARATOR, NO_LABEL, split_labels

SEPARATORS = (",", ";", "\t")
_ROLES = ("id", "media", "audio", "visual", "label", "labels", "split")
_EXCLUSIVE = (("media", "audio"), ("media", "visual"), ("label", "labels"))
_GUESSES = {
    "media": ("filename", "file", "path", "filepath", "file_name", "video", "clip", "wav", "mp4"),
    "label": ("class", "category", "target", "event", "class_name"),
}


@dataclass(frozen=True, kw_only=True)
class TableForm:
    """Format of a table: names of its columns, mark of its comment lines, and template of the names of media files.

    Args:
        header: table: names of the columns, if the first line is a clip, as in id,start,label,split.
        comment: table: beginning of lines that are left out, such as "#".
        media_name: table: name of the media file of a row, as in {id}_{start:06d}.mp4, at any depth of the folder of
            media. Files named by start or end are clips cut beforehand, so the manifest has these columns as
            video_start and video_end.
    """

    header: str = ""
    comment: str = ""
    media_name: str = ""


def table(
    source: Path,
    *,
    form: TableForm = TableForm(),
    columns: str = "",
    media: Path | None = None,
    labels_separator: str | None = None,
    first_label: bool = False,
    no_labels: bool = False,
) -> Listing:
    """List the clips of a table with the column names of manifests, or with names mapped by `columns`.

    Args:
        source: a CSV file, UTF-8; the separator of its columns is detected in its first line.
        form: column names of a table without a header, comment lines, and names of media that are not in a column.
        columns: table: columns to rename, as in media=filename,label=class; other columns are copied.
        media: folder of relative media paths; by default the folder of the table.
        labels_separator: table: separator of several labels in a cell. By default, a cell of the column label is one
            label, and a cell of labels contains labels separated by "|".
        first_label: table: keep only the first of several labels.
        no_labels: table, folder: leave the labels out.

    Returns:
        The clips; if the table has no splits, the splits of the clips are empty.

    Raises:
        InputError: a table that cannot be read, lacks a column, has two columns for the same use or has invalid rows,
            an invalid option, or media files that are ambiguous or cannot be read.
    """
    column_names = [name.strip() for name in form.header.split(",")] if form.header else []
    header, rows = read_table(source, column_names, form.comment)
    names = _mapped(header, columns, str(source))
    written = _written(names, form.media_name, str(source))
    _check_roles(names, str(source), named=bool(form.media_name), labeled=not no_labels)
    roles, index = set(names.values()) & set(_ROLES), media_index(media, source.parent)
    separator = labels_separator or (LABELS_SEPARATOR if "labels" in roles else None)
    label = None if no_labels else next((role for role in ("label", "labels") if role in roles), None)
    clips = []
    for row in rows.values():
        cells = {names[column]: cell for column, cell in row.items()}
        named = [index.find(media_name(form.media_name, row | cells))] if form.media_name else []
        known = {role: cells.pop(role) for role in roles}
        paths = [known[role] for role in ("media", "audio", "visual") if role in roles]
        files = named or [index.folder / path if path else Path() for path in paths]
        split = known.get("split", "").lower()
        labels = labels_of(known[label], separator) if label else ()
        visual = files[1] if len(files) > 1 else None
        others = {written[name]: cell for name, cell in cells.items()}
        clips.append(ListedClip(known.get("id", ""), files[0], labels, ALIASES.get(split, split), "", others, visual))
    _check(clips, list(rows), named="id" in roles, labeled=label is not None, place=str(source))
    if first_label:
        clips = [replace(clip, labels=clip.labels[:1]) for clip in clips]
    notes = _notes(clips, {old: written[new] for old, new in names.items()}, labeled=not no_labels)
    if "id" not in roles:
        ids = unique_names([clip.media for clip in clips], index.folder)
        clips = [replace(clip, id=name) for name, clip in zip(ids, clips, strict=True)]
    return Listing(with_sources(clips), tuple(notes))


def read_table(path: Path, names: Sequence[str] = (), comment: str = "") -> tuple[list[str], dict[int, dict[str, str]]]:
    """Return the names of the columns, and the cells of each row by column, with the line numbers as keys.

    Bytes that are not UTF-8 become surrogates.

    Args:
        path: the table.
        names: names of the columns of a table without a header; empty if the first line has the names.
        comment: beginning of lines that are left out; empty if there are no such lines.

    Raises:
        InputError: the file cannot be read, is not a CSV file, repeats a column, has no rows, or has rows that do not
            fit the header.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); pass a readable CSV file") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4096]:
        raise InputError(f"{path} is UTF-16 text or a binary file; save the table as CSV in UTF-8")
    text = data.decode("utf-8-sig", errors="surrogateescape")
    if comment:
        text = re.sub(rf"^{re.escape(comment)}.*$", "", text, flags=re.MULTILINE)
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = max(SEPARATORS, key=lambda candidate: _cell_count(first, candidate))
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=True)
    try:
        rows = [(lines.line_num, [cell.strip() for cell in line]) for line in lines if any(map(str.strip, line))]
    except csv.Error as error:
        raise InputError(f"{path}: line {lines.line_num} is not CSV ({error}); correct the line") from error
    if names:
        rows.insert(0, (0, list(names)))
    if len(rows) < 2:
        problem = "has a header but no rows" if rows and not names else "contains no rows"
        raise InputError(f"{path} {problem}; add a row per clip")
    (_, header), *rows = rows
    origin = "the header" if names else "the first line"
    check_unique([name for name in header if name], f"{path}: {origin}")
    for line, row in rows:
        nameless = any(cell for name, cell in zip(header, row, strict=False) if not name)
        if len(row) < len(header) or any(row[len(header) :]) or nameless:
            count = sum(map(bool, header))
            raise InputError(
                f"{path}: line {line} has {len(row)} cells, but {origin} has {len(header)} cells with {count} names; "
                "correct the line"
            )
    return header, {line: {name: cell for name, cell in zip(header, row, strict=False) if name} for line, row in rows}


def _cell_count(line: str, separator: str) -> int:
    """Return the number of cells of a line, or 0 if a cell would exceed the size limit of `csv`."""
    try:
        return len(next(csv.reader([line], delimiter=separator)))
    except csv.Error:
        return 0


def labels_of(cell: str, separator: str | None) -> tuple[str, ...]:
    """Return the labels in a cell: one label, or several if a `separator` is given. NO_LABEL is not a label."""
    labels = split_labels(cell, separator) if separator else [cell]
    return tuple(label for label in labels if label not in ("", NO_LABEL))


def _mapped(header: Sequence[str], columns: str, place: str) -> dict[str, str]:
    """Return the manifest column of each column of the table."""
    names = {name: name for name in header if name}
    known, new_names = list(names), set[str]()
    for part in filter(None, (part.strip() for part in columns.split(","))):
        new, equals, old = (word.strip() for word in part.partition("="))
        if not equals or not new or not old:
            raise InputError(
                f"--columns {part} does not have the form NEW=COLUMN; write, for example, media=filename,label=class"
            )
        if old not in names:
            raise InputError(f"{place} has no column '{old}'; {suggestion(old, known)}")
        if new in new_names:
            raise InputError(f"--columns {columns:.80}: the new name '{new}' occurs twice; use each new name once")
        new_names.add(new)
        names[old] = new
    doubled = [name for name, count in Counter(names.values()).items() if count > 1]
    if doubled:
        raise InputError(
            f"{place}: --columns renames a column to '{doubled[0]}', which exists already; rename the existing column "
            f"too: --columns {columns},old_{doubled[0]}={doubled[0]}"
        )
    wrong = [name for name in names.values() if "/" in name or name in (".", "..") or not name.isprintable()]
    if wrong:
        raise InputError(
            f"{place}: {wrong[0]!r} cannot name a column of a manifest; rename the column with --columns NEW=COLUMN"
        )
    return names


def _written(names: Mapping[str, str], template: str, place: str) -> dict[str, str]:
    """Return the column of the manifest for each value of `names`: the times of clips cut beforehand are renamed.

    Clips are cut beforehand if the template of file names has a time.
    """
    new = set(names.values())
    fields = {field if field in new else names.get(field, field) for field in template_fields(template)}
    times = {"start": "video_start", "end": "video_end"} if fields & {"start", "end"} else {}
    for time, video_time in times.items():
        if {time, video_time} <= new:
            raise InputError(
                f"{place}: --media-name has a time, so '{time}' is written as '{video_time}', which exists already; "
                "rename the existing column with --columns NEW=COLUMN"
            )
    return {name: times.get(name, name) for name in new}


def _check_roles(names: Mapping[str, str], place: str, *, named: bool, labeled: bool) -> None:
    """Raise InputError for column names without media files, or for two names with the same role.

    `named` is True with a template of media names, and `labeled` is False if no label is read.
    """
    files = {"media", "audio", "visual"} & set(names.values())
    if named and files:
        raise InputError(
            f"{place} has the column '{min(files)}', so --media-name does not apply; leave out --media-name, or rename "
            "the column with --columns NEW=COLUMN"
        )
    for first, second in _EXCLUSIVE:
        if {first, second} <= set(names.values()) and (labeled or first != "label"):
            raise InputError(
                f"{place} has both '{first}' and '{second}'; rename one of the two columns with --columns NEW=COLUMN"
            )
    if not (named or "media" in names.values() or {"audio", "visual"} <= set(names.values())):
        guesses = {role: _guess(role, names) for role in _GUESSES}
        advice = ",".join(f"{role}={name}" for role, name in guesses.items() if name)
        raise InputError(
            f"{place} has no column 'media' (its columns are {', '.join(names)}); name the column of media files with "
            f"--columns {advice if guesses['media'] else 'media=COLUMN,label=COLUMN'}"
        )


def _guess(role: str, header: Iterable[str]) -> str | None:
    """Return a column that probably has a role under another name, or None."""
    return next((name for name in header if name.lower().replace(" ", "_") in _GUESSES[role]), None)


def _check(clips: Sequence[ListedClip], lines: Sequence[int], *, named: bool, labeled: bool, place: str) -> None:
    rows = list(zip(lines, clips, strict=True))
    foreign = [
        line for line, clip in rows if not is_utf8("".join((clip.id, *clip.labels, clip.split, *clip.columns.values())))
    ]
    if foreign:
        raise InputError(f"{place}: the cells in {_lines(foreign)} are not UTF-8; save the table as CSV in UTF-8")
    empty = [line for line, clip in rows if Path() in clip.files]
    if empty:
        raise InputError(f"{place} has no media file in {_lines(empty)}; fill in the cells")
    if labeled and not any(clip.labels for clip in clips):
        raise InputError(f"{place}: the labels of all clips are empty or -1; fill in the cells, or pass --no-labels")
    lines_of: dict[str | Path, list[int]] = defaultdict(list)
    for line, clip in rows:
        lines_of[clip.id if named else clip.media].append(line)
    doubled = {key: numbers for key, numbers in lines_of.items() if len(numbers) > 1 or not key}
    if doubled and named:
        name, numbers = next(iter(doubled.items()))
        if not name:
            raise InputError(f"{place} has no id in {_lines(numbers)}; fill in the cells")
        more = f", and {len(doubled) - 1} more ids are repeated" if len(doubled) > 1 else ""
        raise InputError(f"{place}: id '{name}' occurs in {_lines(numbers)}{more}; make each id unique")
    if doubled:
        numbers = sorted(number for group in doubled.values() for number in group)
        raise InputError(
            f"{place}: {_lines(numbers)} share media files; pass a column of unique ids: --columns id=COLUMN"
        )


def is_utf8(text: str) -> bool:
    """Return whether a text of `read_table` has no surrogates."""
    return not any("\udc80" <= character <= "\udcff" for character in text)


def _notes(clips: Sequence[ListedClip], names: Mapping[str, str], *, labeled: bool) -> list[str]:
    several, bare = sum(len(clip.labels) > 1 for clip in clips), sum(not clip.labels for clip in clips)
    notes = [f"column '{old}' is read as '{new}'" for old, new in names.items() if old != new]
    guess = _guess("label", names.values())
    if labeled and guess and not {"label", "labels"} & set(names.values()):
        notes.append(
            f"no column is named label, so clips have no labels; if '{guess}' has labels, pass --columns label={guess}"
        )
    if 0 < bare < len(clips):
        notes.append(f"{bare} of {len(clips)} clips have the label -1 or an empty label, which is not a class")
    if several:
        notes.append(
            f"{several} clips have several labels, and methods that train on classes leave these clips out; pass "
            "--first-label to keep only the first label of each clip"
        )
    return notes


def _lines(numbers: Sequence[int]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {first_five([str(number) for number in numbers])}"
