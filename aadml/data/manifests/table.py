"""A table of media that a person made: any names of columns, `,` `;` or tab between them, labels or none."""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.data.manifests.class_folders import unique_names
from aadml.data.manifests.listing import ListedClip, Listing, contents
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import suggestion
from aadml.feature_extraction.manifest import ALIASES, LABELS_SEPARATOR, split_labels

SEPARATORS = (",", ";", "\t")
_ROLES = ("id", "media", "audio", "visual", "label", "labels", "split")
_GUESSES = {
    "media": ("filename", "file", "path", "filepath", "file_name", "video", "clip", "wav", "mp4"),
    "label": ("class", "category", "target", "event", "class_name"),
}
_SHOWN = 5


def table(
    source: Path,
    *,
    columns: str = "",
    media: Path | None = None,
    labels_separator: str | None = None,
    first_label: bool = False,
    no_labels: bool = False,
) -> Listing:
    """List the clips of a table; the manifest's columns are those of the same name, or those that `columns` says.

    Args:
        source: a CSV file, UTF-8; what separates its columns is found from its first line.
        columns: "media=filename,label=class": the manifest's name, then the table's. Other columns are kept.
        media: the folder that names of media are relative to; by default the table's own.
        labels_separator: what stands between several labels of a cell; None: a cell of `label` is one label, one of
            `labels` is separated by "|".
        first_label: keep the first of several labels.
        no_labels: leave the labels out.

    Returns:
        The clips; where the table has no split, that of each is empty.

    Raises:
        InputError: the table cannot be read, lacks a column, or has rows in error; one line.
    """
    header, rows = _read(source)
    names = _mapped(header, columns, str(source))
    if no_labels:
        rows = [(line, {name: cell for name, cell in cells.items() if names[name] not in ("label", "labels")})
                for line, cells in rows]  # fmt: skip
    separator = labels_separator or (LABELS_SEPARATOR if "labels" in names.values() else None)
    folder = source.parent if media is None else media
    if media is not None and not media.is_dir():
        raise InputError(f"{media}: is not a folder of media")
    clips = [_clip(line, {names[old]: cell for old, cell in cells.items()}, folder, separator) for line, cells in rows]
    _check(clips, labelled=not no_labels and bool({"label", "labels"} & set(names.values())), place=str(source))
    if first_label:
        clips = [_Row(**{**vars(clip), "labels": clip.labels[:1]}) for clip in clips]
    return Listing(_entries(clips, folder, str(source)), tuple(_notes(clips, names, labelled=not no_labels)))


@dataclass(frozen=True)
class _Row:
    """One clip of the table: where it stands, and what its cells say."""

    line: int
    id: str | None
    files: tuple[Path, ...]
    labels: tuple[str, ...]
    split: str | None
    columns: Mapping[str, str]


def _read(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Read the header, and of each row its line and its cells by column."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4096]:
        raise InputError(f"{path}: is UTF-16 or holds zero bytes; save it as CSV in UTF-8")
    text = data.decode("utf-8-sig", errors="surrogateescape")
    first = next((line for line in text.splitlines() if line.strip()), "")
    separator = max(SEPARATORS, key=lambda one: len(next(csv.reader([first], delimiter=one))))
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        found = [(lines.line_num, [cell.strip() for cell in line]) for line in lines if any(map(str.strip, line))]
    except csv.Error as error:
        raise InputError(f"{path}: line {lines.line_num} is not CSV ({error})") from error
    if len(found) < 2:
        raise InputError(f"{path}: has {'a header but no rows' if found else 'nothing in it'}")
    (_, header), *rows = found
    _check_shape(header, rows, path)
    return header, [(line, {name: cell for name, cell in zip(header, row, strict=False) if name}) for line, row in rows]


def _check_shape(header: Sequence[str], rows: Sequence[tuple[int, list[str]]], path: Path) -> None:
    doubled = [name for name, count in Counter(header).items() if name and count > 1]
    if doubled:
        raise InputError(f"{path}: column '{doubled[0]}' occurs twice")
    for line, row in rows:
        nameless = any(cell for name, cell in zip(header, row, strict=False) if not name)
        if len(row) < len(header) or any(row[len(header) :]) or nameless:
            named = sum(map(bool, header))
            raise InputError(f"{path}: line {line} has {len(row)} cells, but its first line names {named} columns")


def _mapped(header: Sequence[str], columns: str, place: str) -> dict[str, str]:
    """Give each column of the table the manifest's name for it."""
    there = [name for name in header if name]
    names = {name: name for name in there}
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in columns.split(","))):
        new, equals, old = (word.strip() for word in part.partition("="))
        if not equals or not new or not old:
            raise InputError(f"--columns {part}: write NEW=COLUMN, for example media=filename,label=class")
        if old not in names:
            raise InputError(f"{place}: has no column '{old}'; {suggestion(old, there)}")
        if new in given.values():
            raise InputError(f"--columns {columns}: '{new}' is named twice")
        given[old] = new
    names |= given
    doubled = [name for name, count in Counter(names.values()).items() if count > 1]
    if doubled:
        raise InputError(
            f"{place}: column '{doubled[0]}' is there besides the one that --columns calls so; give it another name: "
            f"--columns {columns},old_{doubled[0]}={doubled[0]}"
        )
    wrong = [name for name in names.values() if "/" in name or name in (".", "..") or not name.isprintable()]
    if wrong:
        raise InputError(
            f"{place}: {wrong[0]!r} cannot name a column of a manifest; rename it with --columns NEW=COLUMN"
        )
    if not ("media" in names.values() or {"audio", "visual"} <= set(names.values())):
        raise InputError(f"{place}: has no column 'media'; its columns are {', '.join(there)}; {_advice(there)}")
    return names


def _advice(header: Sequence[str]) -> str:
    """Say how the columns could be named."""
    found = {role: _guess(role, header) for role in _GUESSES}
    named = ",".join(f"{role}={name}" for role, name in found.items() if name)
    return f"name them: --columns {named if found['media'] else 'media=COLUMN,label=COLUMN'}"


def _guess(role: str, header: Iterable[str]) -> str | None:
    """Find a column that is likely to be what `role` says, under another name."""
    return next((name for name in header if name.lower().replace(" ", "_") in _GUESSES[role]), None)


def _clip(line: int, cells: dict[str, str], folder: Path, separator: str | None) -> _Row:
    known = {name: cells.pop(name) for name in _ROLES if name in cells}
    files = [known["media"]] if "media" in known else [known["audio"], known["visual"]]
    label = known.get("label", known.get("labels", ""))
    split = known.get("split")
    return _Row(
        line=line,
        id=known.get("id"),
        files=tuple(folder / name for name in files) if all(files) else (),
        labels=tuple(split_labels(label, separator)) if separator else (label,) if label else (),
        split=None if split is None else ALIASES.get(split.lower(), split.lower()),
        columns=cells,
    )


def _check(clips: Sequence[_Row], *, labelled: bool, place: str) -> None:
    foreign = [clip.line for clip in clips if not _is_utf8(clip)]
    if foreign:
        raise InputError(f"{place}: {_lines(foreign)}: what stands there is not UTF-8; save the table as CSV in UTF-8")
    empty = [clip.line for clip in clips if not clip.files]
    if empty:
        raise InputError(f"{place}: {_lines(empty)} name no media file")
    bare = [clip.line for clip in clips if labelled and not clip.labels]
    if bare:
        raise InputError(f"{place}: {_lines(bare)} have no label; fill them in, or leave all labels out: --no-labels")
    lines_of: dict[str, list[int]] = defaultdict(list)
    for clip in clips:
        if clip.id is not None:
            lines_of[clip.id].append(clip.line)
    doubled = {name: lines for name, lines in lines_of.items() if len(lines) > 1 or not name}
    if doubled:
        name, lines = next(iter(doubled.items()))
        more = f"; and {len(doubled) - 1} more ids" if len(doubled) > 1 else ""
        raise InputError(f"{place}: id '{name}' occurs in {_lines(lines)}; each must name one clip{more}")


def _is_utf8(clip: _Row) -> bool:
    """Tell whether all cells but the names of media are text."""
    try:
        "".join((clip.id or "", *clip.labels, clip.split or "", *clip.columns.values())).encode()
    except UnicodeEncodeError:
        return False
    return True


def _entries(clips: Sequence[_Row], folder: Path, place: str) -> tuple[ListedClip, ...]:
    files = [clip.files[0] for clip in clips]
    repeated = {file: count for file, count in Counter(files).items() if count > 1}
    if repeated and clips[0].id is None:
        lines = [clip.line for clip in clips if clip.files[0] in repeated]
        raise InputError(
            f"{place}: {_lines(lines)} name a file of another line; give each clip an id: --columns id=COLUMN"
        )
    names = [clip.id or "" for clip in clips] if clips[0].id is not None else unique_names(files, folder)
    same = contents(file for file in dict.fromkeys(files) if file.is_file())
    return tuple(
        ListedClip(
            id=name,
            media=clip.files[0],
            visual=clip.files[1] if len(clip.files) > 1 else None,
            labels=clip.labels,
            split=clip.split or "",
            source=same.get(clip.files[0], str(clip.files[0]) if clip.files[0] in repeated else ""),
            columns=clip.columns,
        )
        for name, clip in zip(names, clips, strict=True)
    )


def _notes(clips: Sequence[_Row], names: Mapping[str, str], *, labelled: bool) -> list[str]:
    several = sum(len(clip.labels) > 1 for clip in clips)
    notes = [f"column '{old}' is '{new}'" for old, new in names.items() if old != new]
    guess = _guess("label", names.values())
    if labelled and guess and not {"label", "labels"} & set(names.values()):
        notes.append(f"no column is called label, so the clips have none; if it is '{guess}': --columns label={guess}")
    if several:
        notes.append(
            f"{several} clips have several labels: they are kept, extracted and embedded, but nothing is trained on "
            "several labels yet; --first-label keeps the first"
        )
    return notes


def _lines(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN])) + (
        f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    )
    return f"line{'s' if len(numbers) > 1 else ''} {shown}"
