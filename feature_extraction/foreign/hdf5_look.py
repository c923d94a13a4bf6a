"""Program for inspecting an HDF5 file, except its large arrays, in a process that can be killed.

A file can make HDF5 loop without end, allocate declared sizes, follow links to other files, or crash the process.
Reading names and sizes is sufficient to cause these failures. The package therefore opens a file only after this
program has read the names and sizes in the file, within limits on processor time and memory. The program prints one
line about the problem, or nothing if the file is safe. The program imports no other module of the package.
"""

import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

_FREE = 1 << 26  # declared bytes of an array that are always allowed
_RATIO = 200  # declared bytes per stored byte; a higher ratio is a decompression bomb
_TOTAL = 1 << 30  # declared bytes of all arrays that are always allowed
_LINKS = 3  # soft links on the path of an object; a soft link to a group above itself has endless paths
_CHUNK = 1 << 28  # bytes of the largest chunk
_OBJECTS = 100_000
_CHUNKS = 1_000_000
_BLOCK = 1024  # strings per read
_HEADROOM = 1 << 29  # bytes of memory in addition to that of the imports


class UnsafeFile(Exception):  # noqa: N818 - a finding about a file
    """Problem of a file, described in one line."""


def look(path: str) -> None:
    """Inspect a file.

    Raises:
        UnsafeFile: the file refers to another file, has a link without a target, or exceeds a limit. For a damaged
            file, HDF5 raises other exceptions.
    """
    with h5py.File(path, "r") as file:
        walk = _Walk(os.path.getsize(path))  # noqa: PTH202 - no path is needed otherwise
        walk.group(file)


class _Walk:
    """State of the inspection. An object counts once under each of its names, since it can be read under each."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._text = 4 * size + _FREE // 4  # bytes of text that a file of this size may contain
        self._names = self._declared = 0

    def group(self, top: h5py.Group) -> None:
        """Inspect a group and all objects below the group; raise UnsafeFile for the first problem."""
        waiting = [(top, 0)]
        while waiting:
            group, links = waiting.pop()
            self._attributes(group)
            for name in group:
                member = _linked(group, name)
                followed = links + (group.get(name, getclass=True, getlink=True) is h5py.SoftLink)
                if followed > _LINKS:
                    continue
                self._names += 1
                if self._names > _OBJECTS:
                    raise UnsafeFile(f"the file contains more than {_OBJECTS:,} objects")
                if isinstance(member, h5py.Group):
                    waiting.append((member, followed))
                elif isinstance(member, h5py.Dataset):
                    self._dataset(member)

    def _attributes(self, owner: h5py.Group | h5py.Dataset) -> None:
        for name in owner.attrs:
            declared = owner.attrs.get_id(name).get_storage_size()
            if declared > _FREE:
                raise UnsafeFile(
                    f"{owner.name}: its attribute '{name}' declares {declared:,} bytes, more than the allowed {_FREE:,}"
                )
            value = owner.attrs[name]
            self._count(len(value) if isinstance(value, str | bytes) else np.asarray(value).nbytes, owner.name)

    def _dataset(self, dataset: h5py.Dataset) -> None:
        plan, name = dataset.id.get_create_plist(), dataset.name
        if plan.get_external_count():
            raise UnsafeFile(f"{name} stores its values in another file, which is not read")
        if dataset.is_virtual:
            raise UnsafeFile(f"{name} is a virtual dataset of other files, which are not read")
        self._attributes(dataset)
        if dataset.shape is None:
            return
        stored, item = dataset.id.get_storage_size(), dataset.id.get_type().get_size()
        declared = int(np.prod([int(length) for length in dataset.shape], dtype=object)) * item
        self._declared += declared
        if declared > max(_FREE, _RATIO * stored):
            raise UnsafeFile(f"{name} declares {declared:,} bytes, but stores {stored:,}")
        if self._declared > max(_TOTAL, _RATIO * self._size):
            raise UnsafeFile(
                f"the arrays up to {name} declare {self._declared:,} bytes, but the file has {self._size:,}"
            )
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
            raise UnsafeFile(f"{dataset.name} is stored in {number:,} chunks of {size:,} bytes, more than allowed")

    def _count(self, length: int, name: str) -> None:
        self._text -= length
        if self._text < 0:
            raise UnsafeFile(f"{name} contains more text than a file of its size can store")


def _blocks(dataset: h5py.Dataset, rows: int) -> Any:
    if not dataset.shape:
        yield np.asarray(dataset[()], dtype=object)
        return
    for start in range(0, len(dataset), rows):
        yield dataset[start : start + rows]


def _linked(group: h5py.Group, name: str) -> Any:
    """Return the object with a name, or the target of a link."""
    link = group.get(name, getlink=True)
    if isinstance(link, h5py.ExternalLink):
        raise UnsafeFile(f"{group.name.rstrip('/')}/{name} is a link to another file, which is not followed")
    if isinstance(link, h5py.SoftLink) and group.get(name) is None:
        raise UnsafeFile(f"{group.name.rstrip('/')}/{name} is a link without a target")
    return group[name]


def _limit(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)  # starts after the imports, which do not depend on the file
    if Path("/proc/self/statm").exists():
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = used + _HEADROOM if hard == resource.RLIM_INFINITY else min(used + _HEADROOM, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main(path: str, seconds: float) -> str:
    """Inspect a file within `seconds` of processor time, and return the problem; "" for a safe file."""
    _limit(seconds)
    try:
        look(path)
    except UnsafeFile as unsafe:
        return str(unsafe)
    except MemoryError:
        return "the file needs more memory than is plausible for a file of its size"
    except Exception as error:  # HDF5 raises many exceptions for damaged files
        return f"the file cannot be read as HDF5 ({error})"
    return ""


if __name__ == "__main__":
    sys.stdout.write(" ".join(main(sys.argv[1], float(sys.argv[2])).split()))
