"""Folders of studies. Only one process at a time uses a folder.

All runs in the same folder of runs use the same data.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from aadml.data.reading import is_address
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.atomic import refuse_address, refuse_links, write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import file_digest, read_bytes
from aadml.feature_extraction.ground.locks import locked

RUNS = "runs"
DATA = "data.json"
"""Data of the runs of a folder: {"data": path or name, "sha256": of the content}; lists for several."""

MARKS = (f"{RUNS}/*_seed*", f"*/{RUNS}/*_seed*", "shard-*-of-*")
"""Patterns of contents that identify the folder of a study, in addition to `data.json`."""

WRITTEN = (".html", ".csv", ".md", ".tex", ".svg", ".json")
"""Suffixes of pages, tables and figures."""


@contextmanager
def sole_owner(
    folder: Path, data: Mapping[Path, str | Sequence[str]] | None = None, judgments: Iterable[str] = ()
) -> Iterator[None]:
    """Lock a folder against other processes, and check data and judgments of the runs in each folder of runs.

    After use, `data.json` is removed from a folder of runs that contains only this file. New folders are removed if
    they are empty.

    Args:
        folder: folder of a study, or of a shard in a study.
        data: folder of runs -> all data of the runs. A folder of runs is `folder`, or is in `folder`, or contains
            the folder of the shard.
        judgments: files of judgments of the runs.

    Raises:
        InputError: a folder that is an address, is in use or cannot be created, a symbolic link in the study, missing
            data, or a folder of runs that contains runs on other data, runs with other judgments or a damaged
            `data.json`.
    """
    refuse_address(folder)
    data = data or {}
    absent = {part for place in (folder, *data) for part in (place, *place.parents) if not part.exists()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder} cannot be created or opened ({error.strerror}); choose another --output") from error
    noted: Mapping[Path, str | Sequence[str]] = {}
    try:
        busy = f"{folder}: another process uses this folder; wait until that process ends, or choose another --output"
        with locked(handle, folder / "lock.host", busy):
            refuse_links(*Path(os.path.commonpath([folder, *data])).iterdir())  # of the whole study
            noted = data
            for place, content in data.items():
                _keep_to(place, content, judgments)
            yield
    finally:
        for place in noted:
            if place.is_relative_to(folder) and set(place.glob("*")) == {place / DATA} and _noted(place / DATA):
                (place / DATA).unlink()
        os.close(handle)
        for place in sorted(absent, reverse=True):  # inner folders first
            with suppress(OSError):  # the folder was already removed, or is not empty
                place.rmdir()


def refuse_foreign(folder: Path) -> None:
    """Raise InputError if a folder contains files like those of a study, but is not the folder of a study.

    Pages and tables have common names and could overwrite unrelated files.
    """
    names = sorted(place.name for place in folder.iterdir()) if folder.is_dir() else []
    foreign = [name for name in names if Path(name).suffix in WRITTEN]
    notes = (folder / DATA, *folder.glob(f"*/{DATA}"))
    if foreign and not any(map(_noted, notes)) and not any(any(folder.glob(mark)) for mark in MARKS):
        some = ", ".join(foreign[:3]) + (" ..." if len(foreign) > 3 else "")
        raise InputError(f"{folder} contains files that do not belong to a study ({some}); choose another --output")


def _keep_to(folder: Path, data: str | Sequence[str], judgments: Iterable[str]) -> None:
    """Record data and judgments of a folder of runs, or compare them with those of existing runs.

    Raises:
        InputError: the data are missing, data or judgments differ from those of the runs, or `data.json` is damaged.
    """
    data = [data] if isinstance(data, str) else data
    for place in data:
        if not is_address(place) and not Path(place).exists():
            raise InputError(f"{place} does not exist; check the path of the data")
    checksums = {name: _fingerprint(Path(name)) for name in map(shown_address, data)}
    content = checksums | {name: _fingerprint(Path(name)) for name in judgments}
    path, names = folder / DATA, ", ".join(checksums)
    known = _noted(path)
    if path.exists() and not known:
        raise InputError(f"{path} is not a valid record of the data of the runs; choose another --output")
    if known and any(place.is_dir() for place in folder.iterdir()):
        if known == {names: hashlib.sha256("".join(checksums.values()).encode()).hexdigest()}:
            known = checksums  # an earlier version joined the checksums of several data
        same = [n for n, s in checksums.items() if known.get(n) == s or (s in known.values() and not is_address(n))]
        if changed := [name for name, sha256 in content.items() if known.get(name, sha256) != sha256]:
            raise InputError(
                f"{', '.join(changed)}: the content has changed since the runs in {folder} were begun; restore the "
                "content, or choose another --output"
            )
        if not same:
            raise InputError(
                f"{folder} contains runs on other data ({', '.join(known)}, which may have changed since); choose "
                f"another --output for {names}"
            )
        content = known | content
    places, sums = [*content], [*content.values()]
    record = {"data": places, "sha256": sums} if len(places) > 1 else {"data": places[0], "sha256": sums[0]}
    write_text(path, json.dumps(record, indent=2) + "\n")


def _noted(path: Path) -> dict[str, str] | None:
    """Read the checksums of `data.json`, by name of the data; None for a missing or invalid file."""
    try:
        content = json.loads(read_bytes(path))
        keys = content.keys() == {"data", "sha256"}
        lists = [[part] if isinstance(part, str) else part for part in content.values()]
        return dict(zip(*lists, strict=True)) if keys else None
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def _fingerprint(path: Path) -> str:
    """Return the checksum of a file, or of the names and sizes in a folder; a constant for a missing path."""
    if path.is_file():
        return file_digest(path)
    digest = hashlib.sha256()
    for inner in sorted(path.rglob("*")):
        digest.update(f"{inner.relative_to(path)} {inner.stat().st_size}\n".encode())
    return digest.hexdigest()
