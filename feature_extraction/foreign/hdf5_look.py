"""A look at everything in an HDF5 file except large numbers; run as a program of its own, which may be killed.

A file can make HDF5 loop for ever, allocate what it declares, follow links to other files, or take its process down,
all of that while nothing but names and sizes are read. So that happens here first, under limits of processor time and
memory. Standard output gets one line: what is wrong, or nothing. This file imports nothing of its package.
"""

import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

_FREE = 1 << 26  # bytes that may be declared whatever is there
_RATIO = 200  # bytes declared for one that is there: more is no compression but a bomb
_CHUNK = 1 << 28  # bytes of the largest chunk
_OBJECTS = 100_000
_CHUNKS = 1_000_000
_BLOCK = 1024  # strings read at once
_HEADROOM = 1 << 29  # bytes of memory beyond those of the libraries


class Refused(Exception):  # noqa: N818 - a finding about a file
    """What is wrong with a file, one line."""


def look(path: str) -> None:
    """Walk the whole file.

    Raises:
        Refused: something points out of it, declares more than is there, or cannot be read.
    """
    with h5py.File(path, "r") as file:
        walk = _Walk(os.path.getsize(path))  # noqa: PTH202 - the program has no other use for a path
        walk.group(file)


class _Walk:
    """What has been seen of a file so far."""

    def __init__(self, size: int) -> None:
        self._text = 4 * size + _FREE // 4  # bytes of text that a file of its size may hold
        self._seen: set[Any] = set()

    def group(self, top: h5py.Group) -> None:
        """Walk a group and what is below it."""
        waiting = [top]
        while waiting:
            group = waiting.pop()
            self._attributes(group)
            for name in group:
                found = _linked(group, name)
                if found is None:
                    continue
                where = h5py.h5o.get_info(found.id)
                if (where.fileno, where.addr) in self._seen:
                    continue
                self._seen.add((where.fileno, where.addr))
                if len(self._seen) > _OBJECTS:
                    raise Refused(f"holds more than {_OBJECTS:,} objects")
                if isinstance(found, h5py.Group):
                    waiting.append(found)
                elif isinstance(found, h5py.Dataset):
                    self._dataset(found)

    def _attributes(self, owner: h5py.Group | h5py.Dataset) -> None:
        for name in owner.attrs:
            declared = owner.attrs.get_id(name).get_storage_size()
            if declared > _FREE:
                raise Refused(f"{owner.name}: its attribute '{name}' declares {declared:,} bytes")
            value = owner.attrs[name]
            self._count(len(value) if isinstance(value, str | bytes) else np.asarray(value).nbytes, owner.name)

    def _dataset(self, dataset: h5py.Dataset) -> None:
        plan, name = dataset.id.get_create_plist(), dataset.name
        if plan.get_external_count():
            raise Refused(f"{name}: keeps its values in another file, which is not read")
        if dataset.is_virtual:
            raise Refused(f"{name}: is put together from other files, which are not read")
        self._attributes(dataset)
        if dataset.shape is None:
            return
        stored, item = dataset.id.get_storage_size(), dataset.id.get_type().get_size()
        declared = int(np.prod([int(length) for length in dataset.shape], dtype=object)) * item
        if declared > max(_FREE, _RATIO * stored):
            raise Refused(f"{name}: declares {declared:,} bytes, of which {stored:,} are there")
        if dataset.chunks is not None:
            self._chunks(dataset, item)
        if h5py.check_string_dtype(dataset.dtype) is not None and dataset.size:
            for rows in _blocks(dataset, _BLOCK):
                self._count(sum(len(text) for text in rows.ravel().tolist()), name)
        elif dataset.chunks is not None and 0 < declared <= _FREE:
            for _ in _blocks(dataset, max(1, (1 << 24) // max(1, declared // len(dataset)))):
                pass

    def _chunks(self, dataset: h5py.Dataset, item: int) -> None:
        size = int(np.prod([int(length) for length in dataset.chunks], dtype=object)) * item
        number = int(np.prod([-(-length // each) for length, each in zip(dataset.shape, dataset.chunks, strict=True)]))
        if size > _CHUNK or number > _CHUNKS:
            raise Refused(f"{dataset.name}: is kept in {number:,} pieces of {size:,} bytes")

    def _count(self, length: int, name: str) -> None:
        self._text -= length
        if self._text < 0:
            raise Refused(f"{name}: holds more text than a file of its size can")


def _blocks(dataset: h5py.Dataset, rows: int) -> Any:
    """Read along the first axis."""
    if not dataset.shape:
        yield np.asarray(dataset[()], dtype=object)
        return
    for start in range(0, len(dataset), rows):
        yield dataset[start : start + rows]


def _linked(group: h5py.Group, name: str) -> Any:
    """Return what a name stands for; None for a link to a place in the same file, which is looked at there."""
    link = group.get(name, getlink=True)
    if isinstance(link, h5py.ExternalLink):
        raise Refused(f"{group.name.rstrip('/')}/{name}: is a link to another file, which is not followed")
    if isinstance(link, h5py.SoftLink):
        if group.get(name) is None:
            raise Refused(f"{group.name.rstrip('/')}/{name}: is a link that leads nowhere")
        return None
    return group[name]


def _limit(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # from here on: how long the imports took is not the file's doing
    if Path("/proc/self/statm").exists():
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = used + _HEADROOM if hard == resource.RLIM_INFINITY else min(used + _HEADROOM, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main(path: str, seconds: float) -> str:
    """Look at a file under limits; return what is wrong with it."""
    _limit(seconds)
    try:
        look(path)
    except Refused as refused:
        return str(refused)
    except MemoryError:
        return "needs more memory than a file of its size can"
    except Exception as error:  # whatever HDF5 raises for a file that is damaged; the message says it
        return f"cannot be read as HDF5 ({error})"
    return ""


if __name__ == "__main__":
    sys.stdout.write(" ".join(main(sys.argv[1], float(sys.argv[2])).split()))
