"""Captions as items of an index: if any clip has several captions, every caption has its own item and vector."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import caption_columns
from aadml.search.store import CAPTION_COLUMNS, Item, columns_in

_CLIP, _NUMBER, _WORDS = CAPTION_COLUMNS


def caption_items(clips: Sequence[Item], texts: Texts) -> list[Item]:
    """Return an item for each of m captions, with the media, split, label and columns of its clip.

    Args:
        clips: n clips.
        texts: the captions of the clips.

    Raises:
        InputError: a clip has the id of a caption, or a column with a name that captions need.
    """
    names = {clip.id for clip in clips}
    if used := {column for clip in clips for column in clip.columns} & {*CAPTION_COLUMNS}:
        raise InputError(f"column '{min(used)}': the index stores captions under this name; rename the column")
    items, first = [], np.searchsorted(texts.rows, texts.rows)
    for row, number in zip(texts.rows.tolist(), (np.arange(len(texts.rows)) - first + 1).tolist(), strict=True):
        clip, name = clips[row], f"{clips[row].id}#{number}"
        if name in names:
            raise InputError(
                f"'{name}' is the id of a clip and of caption {number} of clip '{clip.id}'; rename clip '{name}'"
            )
        columns = {**clip.columns, _CLIP: clip.id, _NUMBER: str(number), _WORDS: _words(clip, number)}
        items.append(replace(clip, id=name, columns=columns))
    return items


def _words(clip: Item, number: int) -> str:
    """Return the text of a caption, from the columns `caption`, `caption_1`, ... of its clip; "" if unknown."""
    cells = (clip.columns[name] for name in caption_columns(clip.columns))
    return dict(enumerate(filter(str.strip, cells), 1)).get(number, "")


def clips_of_captions(database: sqlite3.Connection) -> dict[int, int]:
    """Return a mapping from the number of each caption in an index to the number of the caption's clip."""
    if _CLIP not in columns_in(database):
        return {}
    query = f"SELECT extra.number, item.number FROM extra JOIN item ON item.id = {_CLIP} WHERE {_CLIP} != ''"
    return dict(database.execute(query))


@dataclass(frozen=True)
class Known:
    """Digests of the items of an index, and ids of the captions among the items.

    Attributes:
        digests: digest of each item, by id.
        captions: ids of the items that are captions.
    """

    digests: dict[str, bytes]
    captions: frozenset[str]


def known_items(database: sqlite3.Connection) -> Known:
    """Read the digests of the items of an index, and the ids of the captions."""
    captions = clips_of_captions(database)
    rows = database.execute("SELECT number, id, digest FROM item").fetchall()
    return Known({name: digest for _, name, digest in rows}, frozenset(row[1] for row in rows if row[0] in captions))


def as_clips(numbers: NDArray[np.int64], clips: dict[int, int]) -> NDArray[np.int64]:
    """Return numbers of items (m,), with the number of each caption replaced by the number of its clip."""
    return np.asarray([clips.get(number, number) for number in numbers.tolist()], np.int64) if clips else numbers
