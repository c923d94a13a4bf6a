"""Tables of captions: the csv files of AudioCaps and Clotho, and manifests with caption columns."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError

_CAPTION = re.compile(r"caption(?:_([1-9][0-9]*))?")
_SHOWN = 5


@dataclass(frozen=True)
class CaptionedFile:
    """A sound file and what people wrote of it.

    Attributes:
        name: the file's name in the table.
        captions: as written, one or several.
        aliases: other names under which the file may lie on disk.
    """

    name: str
    captions: tuple[str, ...]
    aliases: tuple[str, ...] = ()


def read_caption_table(path: Path) -> tuple[CaptionedFile, ...]:
    """Read one of the known csv layouts, recognized by its first line.

    `file_name,caption` or `file_name,caption_1,...` (Mei et al.'s AudioCaps, Clotho): a row a file.
    `audiocap_id,youtube_id,start_time,caption` (AudioCaps as released): a row a caption; rows of one clip are joined.

    Raises:
        InputError: no such file, another first line, or rows in error, named by their lines.
    """
    header, rows = _rows(path)
    if {"youtube_id", "caption"} <= set(header):
        return _released_audiocaps(rows, path)
    places = caption_columns(header)
    if "file_name" not in header or not places:
        raise InputError(
            f"{path}: its columns are {', '.join(header)}; known are file_name,caption | file_name,caption_1,... | "
            "audiocap_id,youtube_id,start_time,caption"
        )
    files = [
        CaptionedFile(row["file_name"], tuple(row[place] for place in places if row[place].strip())) for _, row in rows
    ]
    _check(files, [line for line, _ in rows], path)
    return tuple(files)


def caption_columns(names: Sequence[str]) -> list[str]:
    """Pick the columns `caption`, `caption_1`, `caption_2`, ... out of names, in the order of their numbers."""
    found = [(int(match.group(1) or 0), name) for name in names if (match := _CAPTION.fullmatch(name))]
    return [name for _, name in sorted(found)]


def _rows(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = [name.strip() for name in next(lines, [])]
            if doubled := [name for name, count in Counter(header).items() if count > 1]:
                raise InputError(f"{path}: has several columns named {doubled[0]!r}")
            rows = []
            for line in lines:
                if not line:
                    continue
                if len(line) != len(header):
                    raise InputError(
                        f"{path}: line {lines.line_num} has {len(line)} columns, the first one {len(header)}"
                    )
                rows.append((lines.line_num, dict(zip(header, line, strict=True))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a csv table in UTF-8 ({error})") from error
    if not rows:
        raise InputError(f"{path}: holds no rows")
    return header, rows


def _released_audiocaps(rows: list[tuple[int, dict[str, str]]], path: Path) -> tuple[CaptionedFile, ...]:
    captions: dict[tuple[str, str], list[str]] = {}
    numbers: dict[tuple[str, str], list[str]] = {}
    first_line: dict[tuple[str, str], int] = {}
    for line, row in rows:
        clip = row["youtube_id"], row.get("start_time", "")
        captions.setdefault(clip, []).append(row["caption"])
        numbers.setdefault(clip, []).append(row.get("audiocap_id", ""))
        first_line.setdefault(clip, line)
    files = []
    for clip, written in captions.items():
        identity, start = clip
        other = (f"{identity}.wav", f"{identity}_{start}.wav", f"{identity}_{start}000.wav")
        aliases = (*other, *(f"{number}.wav" for number in numbers[clip] if number))
        files.append(CaptionedFile(f"Y{identity}.wav", tuple(w for w in written if w.strip()), aliases))
    _check(files, list(first_line.values()), path)
    return tuple(files)


def _check(files: Sequence[CaptionedFile], lines: Sequence[int], path: Path) -> None:
    problems = [f"line {n}: no file name" for f, n in zip(files, lines, strict=True) if not f.name.strip()]
    problems += [f"line {n}: no caption" for f, n in zip(files, lines, strict=True) if not f.captions]
    doubled = [name for name, count in Counter(file.name for file in files).items() if count > 1]
    problems += [f"'{name}' occurs {sum(f.name == name for f in files)} times" for name in doubled[:_SHOWN]]
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InputError(f"{path}: {'; '.join(problems[:_SHOWN])}{more}")
