"""The folder of a sweep, or of a reproduction: one process at a time, the same data, and nothing of somebody else."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from aadml.data.layouts.arrays_on_disk import file_hash
from aadml.data.reading import SYNTHETIC
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.locks import locked

RUNS = "runs"
DATA = "data.json"
"""What the runs of a folder are on: {"data": as it was given, "sha256": of its content}."""

MARKS = (f"{RUNS}/*_seed*", f"*/{RUNS}/*_seed*", "shard-*-of-*")
"""What tells the folder of a sweep, or of a reproduction; a `data.json` of its own does so too."""

WRITTEN = (".html", ".csv", ".md", ".tex", ".svg", ".json")
"""The kinds of files that pages and tables are written to."""


@contextmanager
def sole_owner(folder: Path, data: Mapping[Path, str] | None = None) -> Iterator[None]:
    """Keep other processes from working in a folder as long as this one does, and all runs in it to the same data.

    Where nothing was begun, nothing is left behind: neither a folder that was made for it, nor what its data are.

    Args:
        folder: of a sweep, or of a shard in it.
        data: folder of runs -> what they are on; lies in `folder`, or around it, where that is of a shard.

    Raises:
        InputError: another process is at it, the folder cannot be made, or it holds runs on other data.
    """
    data = data or {}
    absent = {one for place in (folder, *data) for one in (place, *place.parents) if not one.exists()}
    with _locked(folder, absent):
        try:
            for place, on in data.items():
                _keep_to(place, on)
            yield
        finally:
            for place in data:
                if place.is_relative_to(folder) and set(place.glob("*")) == {place / DATA} and _noted(place / DATA):
                    (place / DATA).unlink()


@contextmanager
def _locked(folder: Path, absent: set[Path]) -> Iterator[None]:
    """Lock a folder, and remove afterwards what is empty of the folders that were absent before."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror}); choose another --output") from error
    try:
        busy = f"{folder}: another process works there; wait for it, or choose another --output"
        with locked(handle, folder / "lock.host", busy):
            yield
    finally:
        os.close(handle)
        for place in sorted(absent, reverse=True):  # inner ones first
            with suppress(OSError):  # not there, or not empty
                place.rmdir()


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder of something else: pages and tables have plain names, and could replace files of other people.

    Raises:
        InputError: it holds files of the kinds that are written, and nothing of a sweep.
    """
    names = sorted(place.name for place in folder.iterdir()) if folder.is_dir() else []
    held = [name for name in names if Path(name).suffix in WRITTEN]
    if held and not _is_of_a_sweep(folder):
        some = ", ".join(held[:3]) + (" ..." if len(held) > 3 else "")
        raise InputError(f"{folder}: holds other files ({some}); choose another --output")


def _is_of_a_sweep(folder: Path) -> bool:
    noted = any(_noted(path) for path in (folder / DATA, *folder.glob(f"*/{DATA}")))
    return noted or any(one for mark in MARKS for one in folder.glob(mark))


def _keep_to(folder: Path, data: str) -> None:
    """Write down what the runs of a folder are on; as long as none was begun, it is free for any data.

    Raises:
        InputError: the data were changed since the first run, or are others, or are not there.
    """
    made_up = data.startswith(SYNTHETIC)
    if not made_up and not Path(data).exists():
        raise InputError(f"{data}: no such file or folder")
    own = {"data": data, "sha256": _fingerprint(Path(data))}
    path = folder / DATA
    known = _noted(path)
    if path.exists() and not known:
        raise InputError(f"{path}: says nothing of the data of runs; choose another --output")
    if known and any(place.is_dir() for place in folder.iterdir()):
        if known["sha256"] != own["sha256"] or (made_up and known["data"] != data):
            raise InputError(
                f"{folder}: holds runs on {known['data']} as it was; {data} differs; choose another --output"
            )
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(own, indent=2) + "\n")


def _noted(path: Path) -> dict[str, str] | None:
    """Read what the runs of a folder are on; None where the file is absent, damaged, or somebody else's."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) and known.keys() == {"data", "sha256"} else None


def _fingerprint(path: Path) -> str:
    """Hash a file, or the names and sizes of the files of a folder."""
    if path.is_file():
        return file_hash(path)
    digest = hashlib.sha256()
    for inner in sorted(path.rglob("*")):
        digest.update(f"{inner.relative_to(path)} {inner.stat().st_size}\n".encode())
    return digest.hexdigest()
