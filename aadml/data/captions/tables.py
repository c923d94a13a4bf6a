"""Caption tables: the CSV files of AudioCaps and Clotho, and manifests with caption columns."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.data.manifests.table import is_utf8, read_table
from aadml.feature_extraction.feature_file.checks import check_unique
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.manifest import caption_columns

_SHOWN = 5


@dataclass(frozen=True)
class CaptionedFile:
    """A sound file and its captions.

    Attributes:
        name: name of the file in a table or a packed file, or id of the clip in a manifest.
        captions: one or more captions, as written in the source.
        aliases: other names that the file may have on disk.
        path: path of the sound; "" if the sound is missing or is in a packed file.
        segment: part of the sound that the captions describe.
    """

    name: str
    captions: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    path: str = ""
    segment: Segment = WHOLE


def read_caption_table(path: Path) -> tuple[CaptionedFile, ...]:
    """Read a CSV file of sound files and captions; its layout is recognized by its first line.

    `file_name,caption` or `file_name,caption_1,...` (Mei et al.'s AudioCaps, Clotho): one row per file.
    `audiocap_id,youtube_id,start_time,caption` (AudioCaps as released): one row per caption, joined by clip.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Raises:
        InputError: the file cannot be read, has no known columns, or has invalid rows.
    """
    header, rows = read_table(path)
    if any(not is_utf8(cell) for row in rows.values() for cell in row.values()):
        raise InputError(f"{path} is not UTF-8; save the file as CSV in UTF-8")
    if not _has_captions(header):
        raise InputError(
            f"{path}: the columns {', '.join(header):.80} are not those of a caption table; rename the columns to "
            "file_name,caption or file_name,caption_1,... or audiocap_id,youtube_id,start_time,caption"
        )
    if {"youtube_id", "caption"} <= set(header):
        files = _released_audiocaps(rows)
    else:
        columns = caption_columns(header)
        files = {
            n: CaptionedFile(row["file_name"], tuple(row[c] for c in columns if row[c])) for n, row in rows.items()
        }
    problems = [f"line {n} has no file name" for n, file in files.items() if not file.name]
    problems += [f"line {n} has no caption" for n, file in files.items() if not file.captions]
    if problems:
        more = f", and {len(problems) - _SHOWN} more cells are empty" if len(problems) > _SHOWN else ""
        raise InputError(f"{path}: {', '.join(problems[:_SHOWN])}{more}; fill in the cells")
    check_unique([file.name for file in files.values()], f"{path}: the column 'file_name'")
    return tuple(files.values())


def is_caption_table(path: Path) -> bool:
    """Return whether a path is a file whose first line has the columns of a caption table."""
    if not path.is_file():
        return False
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = next(iter(file.read(10_000).strip().splitlines()), "")
    return _has_captions([name.strip(' "') for name in re.split("[,;\t]", first)])


def _has_captions(header: Sequence[str]) -> bool:
    return {"youtube_id", "caption"} <= set(header) or ("file_name" in header and bool(caption_columns(header)))


def _released_audiocaps(rows: Mapping[int, Mapping[str, str]]) -> dict[int, CaptionedFile]:
    """Join the rows of a clip; return each clip with the number of its first line."""
    clips: dict[tuple[str, str], list[tuple[int, Mapping[str, str]]]] = {}
    for line, row in rows.items():
        clips.setdefault((row["youtube_id"], row.get("start_time", "")), []).append((line, row))
    files = {}
    for (video, start), group in clips.items():
        numbers = [row["audiocap_id"] for _, row in group if row.get("audiocap_id")]
        aliases = (video, f"{video}_{start}", f"{video}_{start}000", *numbers)
        captions = tuple(row["caption"] for _, row in group if row["caption"])
        files[group[0][0]] = CaptionedFile(f"Y{video}.wav", captions, tuple(f"{name}.wav" for name in aliases))
    return files
