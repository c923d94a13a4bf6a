"""Manifests: CSV files of clips with their media, classes and split."""

import csv
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sys import intern

from aadml.feature_extraction.foreign.media_tables import media_table
from aadml.feature_extraction.foreign.tables import fetch_beside, is_remote, is_table, local_path, shown_address
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import file_kind
from aadml.feature_extraction.ground.segment import Segment, segment_of

SPLITS = ("train", "valid", "test")
ALIASES = {"val": "valid", "validation": "valid", "dev": "valid"}
"""Other names of splits, in lower case."""

TEXT_COLUMNS = ("text", "caption", "caption_1")
"""Columns for the text of a clip. Without `text`, each of the columns `caption`, `caption_1`, `caption_2`, ... contains
a text."""
_CAPTION = re.compile(r"caption(?:_([1-9][0-9]*))?")

FURTHER_TEXT = "text_"
"""Prefix of the names of further texts of a clip: `text_2`, `text_3`, ..."""

LABELS_SEPARATOR = "|"
"""Separator of the classes of a clip in the column `labels`."""

NO_LABEL = "-1"
"""Label of a clip without a class, like an empty cell; feature files store this number too."""

UNDIVIDED = "test"
"""Split of all clips of a manifest without the column `split`. Test clips are not used in training."""
RECORDING = "recording"
"""Column for the name of the recording of a segment; by default the first id with the same media."""

_WANTED = "id,media,label,split or id,audio,visual,label,split"
_KNOWN = ("id", "media", "audio", "visual", "label", "labels", "split")
_SHOWN = 5  # problems listed in a message; the others are counted


@dataclass(frozen=True, slots=True)
class Row:
    """Clip of a manifest.

    Attributes:
        id: name of the clip, unique in the manifest, UTF-8.
        media: paths under the keys `audio` and `visual`, "" for an empty cell. The two paths are equal if the manifest
            has the column `media`. Texts, if any, are under the keys `text`, `text_2`, `text_3`, and so on.
        label: first class of the clip; empty if the clip has no class.
        split: `train`, `valid` or `test`.
        columns: values of the columns other than the id, the media, the classes and the split, by name.
        more_labels: classes of the clip after the first.
    """

    id: str
    media: Mapping[str, str]
    label: str
    split: str
    columns: Mapping[str, str]
    more_labels: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the media."""
        return tuple(path for name, path in self.media.items() if path and not is_text(name))

    @property
    def labels(self) -> tuple[str, ...]:
        """All classes of the clip."""
        return (self.label, *self.more_labels) if self.label else ()

    @property
    def segment(self) -> Segment:
        """Segment of the media, as the columns `start` and `end` state; see `segment_of` for the errors."""
        return segment_of(self.columns)


@dataclass(frozen=True)
class Manifest:
    """Clips of a job, in order.

    Attributes:
        path: path or address of the file.
        rows: rows of the file, one per clip.
        class_names: names of all classes, in numeric order if all are integers, otherwise in alphabetical order.
    """

    path: str
    rows: tuple[Row, ...]
    class_names: tuple[str, ...]

    @property
    def further_texts(self) -> tuple[str, ...]:
        """Names of the second and all later texts of the clips, in order: `text_2`, `text_3`, and so on."""
        most = max((sum(is_text(name) for name in row.media) for row in self.rows), default=0)
        return tuple(f"{FURTHER_TEXT}{number}" for number in range(2, most + 1))

    @property
    def has_several_labels(self) -> bool:
        """Whether some clip has more than one class."""
        return any(row.more_labels for row in self.rows)


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read and check a manifest.

    The first line lists the columns: `id,media,label,split`, or `id,audio,visual,label,split` if sound and picture
    are in different files. Clips of sound alone or of pictures alone need only one of `audio` and `visual`. Instead
    of `label`, the column `labels` contains several classes, separated by `|`. With neither `label` nor `labels`,
    clips can only be extracted and embedded. A label that is empty or -1 is not a class. Without the column
    `split`, all clips are test clips. The splits `val`, `validation` and `dev` are read as `valid`. A column `text`
    contains the text of a clip. Without this column, each of the columns `caption`, `caption_1`, `caption_2`, and so
    on contains a text.

    The columns `start` and `end` contain the limits of a segment of the media in seconds; their cells may be empty.
    With `start` or `end`, or if media repeat, a missing column `recording` is added, and its empty cells are filled.
    The value is the id of the first row with the same media. Further columns are stored. Relative paths of media start
    at the folder of the manifest. Paths of media may contain any bytes except zero bytes. The values of all other
    columns are UTF-8 without zero bytes.

    Args:
        path: the CSV file.

    Returns:
        The manifest; the existence of the media is not checked.

    Raises:
        InputError: the file cannot be read, is not a manifest, or has invalid rows. The message lists the first
            five problems of the rows.
    """
    place = os.fspath(path)
    try:
        if not Path(path).is_file():
            kind = f"is a {file_kind(Path(path).stat())}" if Path(path).exists() else "does not exist"
            raise InputError(f"{place} {kind}; pass a manifest (a CSV file)")
        with Path(path).open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            _check_header(header, place)
            rows = _rows(header, ((lines.line_num, line) for line in lines if line), place)
    except OSError as error:
        reason = f"cannot be read ({error.strerror}); change the permissions of the file, or pass another path"
        raise InputError(f"{place} {reason}") from error
    except csv.Error as error:
        raise InputError(f"{place}: line {lines.line_num} is not CSV ({error}); correct that line") from error
    return _manifest(rows, place)


def _manifest(rows: tuple[Row, ...], place: str) -> Manifest:
    if not rows:
        raise InputError(f"{place} has a header but no rows; add a row for each clip")
    return Manifest(path=place, rows=rows, class_names=_class_names(label for row in rows for label in row.labels))


def open_manifest(source: str | os.PathLike[str]) -> Manifest:
    """Return the manifest of a CSV file, or of a table of clips with their media (see `media_table`).

    Args:
        source: a CSV file, a Parquet file, a WebDataset tar, a folder of Parquet files, or the folder of a data set
            saved by `datasets`. A file can also be at an address. "hf:NAME" is a data set on the Hugging Face Hub.
            If the source is the address of a CSV file, the media beside this file are copied to a temporary folder.

    Raises:
        InputError: the source cannot be read, is not a manifest, or has invalid rows.
        MissingExtraError: pyarrow, datasets or fsspec is not installed.
    """
    place = local_path(source)
    if not is_table(place):
        manifest = read_manifest(place)
    else:
        header, lines = media_table(place)
        _check_header(header, str(source))
        manifest = _manifest(_rows(header, enumerate(lines, 1), str(place)), str(place))
    if is_remote(source):
        fetch_beside(str(source), place, (file for row in manifest.rows for file in row.files))
        return replace(manifest, path=shown_address(str(source)))
    return manifest


def _check_header(header: list[str], place: str) -> None:
    if not header:
        raise InputError(f"{place}: the first line is missing or empty; write the columns {_WANTED} in this line")
    name, count = Counter(header).most_common(1)[0]
    if count > 1:
        raise InputError(
            f"{place}: column '{_shown(name)}' occurs {count} times; rename or remove the repeated columns"
        )
    if "id" not in header or not {"media", "audio", "visual"} & set(header):
        absent = "media" if "id" in header else "id"
        columns = ", ".join(_shown(name) for name in header[:12])
        raise InputError(
            f"{place}: column '{absent}' is missing (columns found: {columns}); pass a manifest with the columns "
            f"{_WANTED}, or convert this table with `aadml manifest`"
        )
    if {"label", "labels"} <= set(header):
        raise InputError(f"{place} has both 'label' and 'labels'; remove one of the two columns")
    if "media" in header and {"audio", "visual"} & set(header):
        raise InputError(
            f"{place} has the column 'media' and also 'audio' or 'visual'; "
            "remove 'media', or remove 'audio' and 'visual'"
        )
    for name in header:
        if "/" in name or name in ("", ".", "..") or not _is_utf8(name):
            raise InputError(
                f"{place}: '{_shown(name)}' cannot be the name of a column; use a name in UTF-8 that has no '/' "
                "and is not empty, '.' or '..'"
            )


def _rows(header: list[str], table: Iterable[tuple[int, list[str]]], place: str) -> tuple[Row, ...]:
    problems: list[str] = []
    rows = []
    first_lines: dict[str, int] = {}
    doubled: dict[str, list[int]] = {}
    folder = os.path.join(str(Path(place).parent), "")  # noqa: PTH118 - ends with a slash
    texts = ["text"] if "text" in header else caption_columns(header)
    for number, line in table:
        if len(line) != len(header):
            problems.append(f"line {number} has {len(line)} cells, but the header has {len(header)}")
            continue
        row = _row(dict(zip(header, line, strict=True)), folder, texts)
        text = "".join(line)
        problems += [f"line {number}: {p}" for p in _problems(row, plain=text.isascii() and "\0" not in text)]
        if first_lines.setdefault(row.id, number) != number:
            doubled.setdefault(row.id, [first_lines[row.id]]).append(number)
        rows.append(row)
    problems += [
        f"id '{_shown(name)}' occurs in lines {', '.join(map(str, lines[:4]))}" for name, lines in doubled.items()
    ]
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InputError(f"{place}: {'; '.join(problems[:_SHOWN])}{more}; correct the manifest")
    media = [row.files for row in rows if row.files]
    return with_recordings(rows) if {"start", "end"} & set(header) or len(set(media)) < len(media) else tuple(rows)


def with_recordings(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows with the column `recording`.

    Values of the manifest are kept. A missing or empty value becomes that of the first row with the same media, or the
    id of this first row.
    """
    first: dict[tuple[str, ...], str] = {}
    names = [first.setdefault(row.files or ("", row.id), row.columns.get(RECORDING) or row.id) for row in rows]
    return tuple(
        replace(row, columns={**row.columns, RECORDING: row.columns.get(RECORDING) or name})
        for row, name in zip(rows, names, strict=True)
    )


def _row(cells: dict[str, str], folder: str, texts: Sequence[str]) -> Row:
    """Build a row with interned label and split, since a manifest may have a million rows.

    Args:
        cells: cells by column; cells with a known meaning are removed.
        folder: folder at which relative paths of media start, with a slash at the end.
        texts: columns of the texts.
    """
    known = {name: cells.pop(name) for name in _KNOWN if name in cells}
    if "media" in known:
        media = dict.fromkeys(("audio", "visual"), _joined(folder, known["media"]))
    else:
        media = {modality: _joined(folder, known.get(modality, "")) for modality in ("audio", "visual")}
    if texts:
        media |= _texts([cells[name] for name in texts])
    split = known.get("split", UNDIVIDED).strip().lower()
    labels = [label] if (label := known.get("label", "").strip()) else split_labels(known.get("labels", ""))
    labels = [label for label in labels if label != NO_LABEL]
    return Row(
        id=known["id"],
        media=media,
        label=intern(labels[0]) if labels else "",
        split=intern(ALIASES.get(split, split)),
        columns=cells,
        more_labels=tuple(map(intern, labels[1:])),
    )


def caption_columns(names: Iterable[str]) -> list[str]:
    """Return the caption columns (`caption`, `caption_1`, ...) among `names`, in the order of their numbers."""
    columns = [(int(match.group(1) or 0), name) for name in names if (match := _CAPTION.fullmatch(name))]
    return [name for _, name in sorted(columns)]


def _texts(cells: Sequence[str]) -> dict[str, str]:
    """Return the texts of a clip, by name; empty cells after the first text are left out."""
    texts = [text for text in cells if text.strip()] or cells[:1]
    return {"text": texts[0], **{f"{FURTHER_TEXT}{number}": text for number, text in enumerate(texts[1:], 2)}}


def is_text(modality: str) -> bool:
    """Return whether `modality` is the key of a text in `Row.media`, not of a path."""
    return modality == "text" or modality.startswith(FURTHER_TEXT)


def _joined(folder: str, name: str) -> str:
    return name if not name or name.startswith("/") else folder + name  # keeps "a/../b" unchanged


def split_labels(cell: str, separator: str = LABELS_SEPARATOR) -> list[str]:
    """Split a cell into classes, without repetitions, in order."""
    return list(dict.fromkeys(label for part in cell.split(separator) if (label := part.strip())))


def _problems(row: Row, *, plain: bool) -> list[str]:
    """Return the problems of a row.

    The checks for UTF-8 and zero bytes are omitted for a `plain` row, whose cells are ASCII without zero bytes.
    """
    problems = []
    if not row.id:
        problems.append("the id is empty")
    if row.split not in SPLITS:
        problems.append(f"the split is '{_shown(row.split)}', not one of {', '.join(SPLITS)}")
    try:
        _ = row.segment
    except ValueError as error:
        problems.append(str(error))
    if plain:
        return problems
    for name, text in [("id", row.id), *(("label", label) for label in row.labels), *row.columns.items()]:
        if not _is_utf8(text):
            problems.append(f"the {name} '{_shown(text)}' is not UTF-8")
        if "\0" in text:
            problems.append(f"the {name} contains a zero byte")
    if any("\0" in path for path in row.media.values()):
        problems.append("a path or text of the clip contains a zero byte")
    return problems


def _class_names(labels: Iterable[str]) -> tuple[str, ...]:
    names = set(labels)
    integers = bool(names) and all(re.fullmatch(r"-?[0-9]{1,18}", name) for name in names)
    return tuple(sorted(names, key=lambda name: (int(name), name)) if integers else sorted(names))


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _shown(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")[:80]
