"""The writer of all HDF5 files, and the file under it: a write that fails is raised here, not inside HDF5.

HDF5 cannot close a file that it could not write: where a disk fills up, it fails again at every attempt, at last when
the process ends, and may crash there. So a write that fails is remembered, and the writes after it are dropped.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import h5py


class Output(io.RawIOBase):
    """A file that takes all writes, and knows the first that failed.

    Args:
        file: opened for reading and writing, without a buffer of its own.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.failure: OSError | None = None

    def readable(self) -> bool:
        """HDF5 reads back what it wrote."""
        return True

    def writable(self) -> bool:
        """It takes writes."""
        return True

    def seekable(self) -> bool:
        """HDF5 writes here and there."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Say where we are."""
        return self._file.tell()

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read into a buffer; what was dropped reads as zeros."""
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        buffer[len(data) :] = bytes(len(buffer) - len(data))
        return len(buffer)

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        """Write all of `data`, or drop it once a write has failed."""
        rest = memoryview(data).cast("B")
        size = len(rest)
        try:
            while rest and self.failure is None:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self.failure = error
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the size."""
        try:
            return self._file.truncate(size) if self.failure is None else size or 0
        except OSError as error:
            self.failure = error
            return size or 0

    def flush(self) -> None:
        """Do nothing: there is no buffer."""


class Hdf5Writer:
    """Writer of a new HDF5 file; equal calls give equal bytes, at any time and under any version of h5py.

    Args:
        root: the file, or the group that names are relative to.
    """

    def __init__(self, root: h5py.Group) -> None:
        self._root = root
        self.attrs = root.attrs

    def group(self, name: str) -> h5py.Group:
        """Create a group and those of its parents that are missing."""
        group = self._root
        for part in name.split("/"):
            if part not in group:
                group[part] = h5py.Group(h5py.h5g.create(group.id, None, gcpl=_without_times(h5py.h5p.GROUP_CREATE)))
            group = group[part]
        return group

    def dataset(
        self, name: str, data: Any = None, *, shape: tuple[int, ...] | None = None, dtype: Any = None
    ) -> h5py.Dataset:
        """Create a dataset from data, or from a shape and a type; missing parents are created."""
        parent, _, key = name.rpartition("/")
        group = self.group(parent) if parent else self._root
        return group.create_dataset(key, data=data, shape=shape, dtype=dtype, track_times=False, track_order=False)


@contextmanager
def hdf5_output(path: Path) -> Iterator[Hdf5Writer]:
    """Open a new HDF5 file at a path that exists and is empty.

    Raises:
        OSError: the first write that failed, once the file is closed.
    """
    with path.open("r+b", buffering=0) as file:
        output = Output(file)
        with h5py.File(_created(path, output)) as content:
            yield Hdf5Writer(content)
        if output.failure is not None:
            raise output.failure


def _created(path: Path, output: Output) -> Any:
    """Create an HDF5 file in `output`, with no list of properties left that names `output` when the process ends."""
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)  # an object that is still open is closed with the file
    access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V110)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, output)
    creation = _without_times(h5py.h5p.FILE_CREATE)
    return h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_TRUNC, fcpl=creation, fapl=access)


def _without_times(kind: Any) -> Any:
    creation = h5py.h5p.create(kind)
    creation.set_obj_track_times(False)
    return creation
