"""Rows of tables of clips as cells of a manifest; media inside a table become files of a temporary folder."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import IO

from aadml.feature_extraction.foreign.tables import (
    TarFile,
    class_names,
    copy_of,
    damage_in,
    is_tar,
    open_tables,
    tar_files,
    temporary_folder,
)
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.media_suffixes import MEDIA_SUFFIXES, PICTURE_SUFFIXES, SOUND_SUFFIXES

_MEDIA = ("media", "audio", "visual", "video", "image")
_LABELS = ("label", "labels")
_TEXTS = ("text", "caption", "captions", "caption_1")
_ROWS = 16  # rows whose media are in memory at a time
_TEXT_BYTES = 1 << 20  # of a text or JSON file in a tar
_ENDING = re.compile(r"\.\w{1,5}", re.ASCII)

_Value = bytes | str | float | list[str | float | None] | Mapping[str, bytes | str | None] | None
Cells = dict[str, str]
_ListCells = dict[str, str | list[str]]


def media_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the header and the lines of a manifest that lists the clips of a table.

    The columns `audio`, `video`, `visual`, `image` and `media` contain encoded files, or paths relative to the
    folder of the table. Encoded files are written to a temporary folder, which is deleted at the end of the
    process. Without a column `audio` in a table, or an audio file of the clip in a tar, the sound of a clip is that
    of its video. Class numbers become names if the table stores the names. A list of labels becomes the column
    `labels`. A list of texts in a column `text`, `caption` or `captions` becomes the columns `caption_1`, `caption_2`,
    and so on; without such a column, the only other column of lists of texts does. Other lists, mappings and bytes are
    left out. Rows of a table without ids are numbered.

    Args:
        path: a table; see `is_table`. In a tar, KEY.mp4, KEY.wav and KEY.jpg are media of the clip KEY. KEY.txt is
            its text, KEY.cls its label, KEY.COLUMN.txt the value of a column, and KEY.json the values of several
            columns.

    Raises:
        InputError: an unreadable table, a column of media with other values, lists in several columns of captions, or
            a full disk.
        MissingExtraError: pyarrow or datasets is not installed.
    """
    folder = _Folder(path)
    with damage_in(path):
        rows = _without_lists(list(_tar_rows(path, folder) if is_tar(path) else _table_rows(path, folder)), path)
    others = dict.fromkeys(name for row in rows for name in row if name not in (*_MEDIA, "id"))
    lines = [[row["id"], *_sound_and_picture(row), *(row.get(name, "") for name in others)] for row in rows]
    return ["id", "audio", "visual", *others], lines


def has_media(path: Path) -> bool:
    """Return whether a table contains encoded media.

    Raises:
        InputError: the table cannot be read.
        MissingExtraError: pyarrow or datasets is not installed.
    """
    if is_tar(path):
        with damage_in(path):
            return any(f".{file.kind.lower()}" in MEDIA_SUFFIXES | PICTURE_SUFFIXES for file in tar_files(path))
    fields = (part.schema.field(name) for part in open_tables(path) for name in part.schema.names if name in _MEDIA)
    return any("binary" in str(field.type) for field in fields)


def _sound_and_picture(row: Cells) -> tuple[str, str]:
    media = row.get("media", row.get("video", ""))
    return row.get("audio", media), row.get("visual", media or row.get("image", ""))


class _Folder:
    """Temporary folder for the media of a table, created with the first file."""

    def __init__(self, table: Path) -> None:
        self._table, self._base = table, (table if table.is_dir() else table.parent).absolute()
        self._folder, self._numbers = "", count()

    def add(self, content: IO[bytes], name: str) -> str:
        """Write a file, named by a number and the ending of `name`, and return the path."""
        self._folder = self._folder or temporary_folder().name
        ending = Path(name).suffix.lower()
        place = Path(self._folder, f"{next(self._numbers)}{ending if _ENDING.fullmatch(ending) else ''}")
        copy_of(content, place, str(self._table))
        return str(place)

    def path_of(self, column: str, value: _Value) -> str:
        """Return a path for media that `datasets` stores as content, path, or both; "" for an empty value.

        Args:
            column: name of the column, for the message.
            value: value of a cell.

        Raises:
            InputError: the value is not media, or the disk is full.
        """
        content, name = (value.get("bytes"), value.get("path")) if isinstance(value, Mapping) else (value, None)
        if isinstance(content, bytes):
            return self.add(io.BytesIO(content), str(name or ""))
        if not isinstance(place := content or name or "", str):
            raise InputError(
                f"{self._table}: the column {column} has values of type {type(place).__name__}, not media; pass a "
                "table with encoded files or paths in this column"
            )
        return str(self._base / place) if place else ""


def _table_rows(path: Path, folder: _Folder) -> Iterator[_ListCells]:
    numbers = count()
    for part in open_tables(path):
        names, split = class_names(part.schema), {"split": part.split} if part.split else {}
        for batch in part.batches(_ROWS):
            for row in batch.to_pylist():
                media = {name: folder.path_of(name, row[name]) for name in _MEDIA if name in row}
                yield {"id": f"{next(numbers):06d}", **split, **_values(row, names), **media}


def _tar_rows(path: Path, folder: _Folder) -> Iterator[_ListCells]:
    clips: dict[str, _ListCells] = {}
    for file in tar_files(path):
        if cells := _tar_cells(file, folder):
            clips.setdefault(file.clip, {}).update(cells)
    yield from ({**cells, "id": clip} for clip, cells in clips.items())


def _tar_cells(file: TarFile, folder: _Folder) -> _ListCells:
    """Return the cells of a file of a tar; empty if the file is not of the kind media, txt, cls or json."""
    ending = f".{file.kind.lower()}"
    if ending in MEDIA_SUFFIXES | PICTURE_SUFFIXES:
        kind = "audio" if ending in SOUND_SUFFIXES else "image" if ending in PICTURE_SUFFIXES else "video"
        return {file.column if file.column in _MEDIA else kind: folder.add(file.content, f"x{ending}")}
    if file.kind not in ("txt", "cls", "json"):
        return {}
    if file.size > _TEXT_BYTES:
        raise ValueError(f"{file.clip:.80}.{file.kind} has {file.size:,} bytes, more than {_TEXT_BYTES:,}")
    text = file.content.read().decode().strip()
    return _values(json.loads(text), []) if file.kind == "json" else {file.column: text}


def _values(row: Mapping[str, _Value], names: list[str]) -> _ListCells:
    """Return the cells of a row without its media, and its lists of labels and texts without nulls.

    Args:
        row: values by column.
        names: names of the classes, by class number; empty if the table does not store them.
    """
    cells: _ListCells = {}
    for column, value in row.items():
        if column in _MEDIA:
            continue
        if column in _LABELS:
            labels = [_label(each, names) for each in (value if isinstance(value, list) else [value])]
            cells[column] = [*filter(None, labels)] if isinstance(value, list) else labels[0]
        elif isinstance(value, list):
            texts = [text for text in value if isinstance(text, str)]
            if texts and column != "id" and len(texts) + value.count(None) == len(value):
                cells[column] = texts
        elif value is None or isinstance(value, str | int | float):
            cells[column] = "" if value is None else str(value)
    return cells


def _without_lists(rows: list[_ListCells], path: Path) -> list[Cells]:
    """Return the rows with lists of labels in the column `labels`, and lists of texts in `caption_1`, `caption_2`, ...

    Raises:
        InputError: several columns of captions have lists.
    """
    lists = dict.fromkeys(name for row in rows for name, value in row.items() if isinstance(value, list))
    texts = [name for name in lists if name not in _LABELS]
    if any(name in row for row in rows for name in _TEXTS):
        texts = [name for name in texts if name in _TEXTS]
        if len(texts) > 1:
            raise InputError(
                f"{path}: the columns {' and '.join(map(repr, texts))} have lists of texts; rename the column of the "
                "captions to 'captions' and the other columns to other names, or remove the other columns"
            )
    elif len(texts) > 1:  # none of these columns is known to contain the captions
        texts = []
    flat = []
    for row in rows:
        cells: Cells = {}
        for column, value in row.items():
            several = value if isinstance(value, list) else [*filter(None, [value])]
            if column in _LABELS and column in lists:
                cells["labels"] = "|".join(several)
            elif column in texts:
                cells |= {f"caption_{number}": text for number, text in enumerate(several, 1)}
            elif isinstance(value, str):
                cells[column] = value
        flat.append(cells)
    return flat


def _label(value: object, names: list[str]) -> str:
    if isinstance(value, int) and names:
        return names[value] if value >= 0 else ""
    return "" if value is None else str(value)
