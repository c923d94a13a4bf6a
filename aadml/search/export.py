"""Export of vectors: as NumPy files with ids, or as Parquet with the columns of the items."""

import re
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.atomic import atomic_path, refuse_links, refuse_other_kind
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import optional
from aadml.search.items import Galleries, items_of
from aadml.search.store import columns_in

VECTOR = "vector"
"""Name of the column of vectors in a Parquet file."""

_GROUP = 1 << 16  # rows of a row group
_BREAKS = re.compile(r"[\\\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")  # backslash, and the line breaks of `str.splitlines`


def export(database: sqlite3.Connection, galleries: Galleries, output: str | Path, kind: str) -> list[Path]:
    """Write the vectors of every modality, and return the files; see `Index.export`.

    Raises:
        InputError: see `Index.export`.
    """
    if kind not in KINDS:
        raise InputError(f"--format {kind[:80]!r} is not a format; choose {' or '.join(KINDS)}")
    written: list[Path] = []
    for modality, (numbers, gallery) in galleries.items():
        written += KINDS[kind](database, numbers, gallery.vectors.numpy(), f"{output}.{modality}")
    return written


def _npy(
    database: sqlite3.Connection, numbers: NDArray[np.int64], vectors: NDArray[np.float32], name: str
) -> list[Path]:
    place, names = Path(f"{name}.npy"), Path(f"{name}.ids.txt")
    ids = (_BREAKS.sub(_escaped, item.id) for item in items_of(database, numbers.tolist()))
    lines = "".join(f"{clip}\n" for clip in ids).encode()
    refuse_links(place, names)
    refuse_other_kind(place, "an export with its .ids.txt", lambda _: names.is_file())
    # after a kill, the ids may be without vectors
    refuse_other_kind(names, "an export with its .npy", lambda _: place.is_file() or names.read_bytes() == lines)
    with atomic_path(names) as temporary:
        temporary.write_bytes(lines)
    with atomic_path(place) as temporary, temporary.open("wb") as file:
        np.save(file, vectors, allow_pickle=False)
    return [place, names]


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _parquet(
    database: sqlite3.Connection, numbers: NDArray[np.int64], vectors: NDArray[np.float32], name: str
) -> list[Path]:
    """Write `id`, `split`, `label` and the columns of the table `extra` as text, and `vector` as a float32 list."""
    pa, pq = (optional(name, "--format parquet", "aadml[parquet]") for name in ("pyarrow", "pyarrow.parquet"))
    further = columns_in(database)
    if VECTOR in further:
        raise InputError(
            f"--format parquet: the index has a column '{VECTOR}', but the vectors are written under this name; "
            "rename the column in the source of the index"
        )
    names = ["id", "split", "label", *further]
    schema = pa.schema([*((key, pa.string()) for key in names), (VECTOR, pa.list_(pa.float32(), vectors.shape[1]))])
    place = Path(f"{name}.parquet")
    refuse_links(place)
    refuse_other_kind(place, "an export of vectors", lambda file: _has_vectors(pa, pq, file))
    with atomic_path(place) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for begin in range(0, len(numbers), _GROUP):
            rows = slice(begin, begin + _GROUP)
            items = list(items_of(database, numbers[rows].tolist()))
            values = [{"id": item.id, "split": item.split, "label": item.label, **item.columns} for item in items]
            lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors[rows].ravel()), vectors.shape[1])
            writer.write_table(pa.table([*([row[key] for row in values] for key in names), lists], schema=schema))
    return [place]


def _has_vectors(pa: ModuleType, pq: ModuleType, place: Path) -> bool:
    """Return whether a file is in Parquet and has a column of vectors."""
    try:
        return VECTOR in pq.read_schema(place).names
    except (pa.ArrowInvalid, OSError):  # pyarrow raises OSError for a damaged footer
        return False


KINDS: Mapping[str, Callable[..., list[Path]]] = {"npy": _npy, "parquet": _parquet}
"""Formats of exported vectors."""
