"""Writer of all HDF5 files, and the file object below HDF5, which stores the error of a failed write.

HDF5 cannot close a file that it could not write. On a full disk every attempt fails again. The last attempt, at the end
of the process, may crash. The file object therefore drops all later writes, and `hdf5_output` raises the error outside
HDF5.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py

from aadml.feature_extraction.foreign.hdf5 import CHECKSUMS
from aadml.feature_extraction.ground.atomic import append_all
from aadml.feature_extraction.ground.block_checksums import append_checksums


class Output(io.FileIO):
    """Unbuffered file that accepts all writes and stores the error of the first failed write."""

    failure: OSError | None = None

    def readinto(self, buffer: Any, /) -> int:
        """Read into a buffer, with zeros for dropped content, and return the size of the buffer."""
        view = memoryview(buffer)
        size = super().readinto(view) or 0
        view[size:] = bytes(len(view) - size)
        return len(view)

    def write(self, data: Any, /) -> int:
        """Write all of `data` and return the size of `data` in bytes. After a failed write, `data` is dropped."""
        view = memoryview(data).cast("B")
        try:
            if self.failure is None:
                append_all(self.fileno(), view)
        except OSError as error:
            self.failure = error
        return len(view)

    def truncate(self, size: int | None = None, /) -> int:
        """Set the size of the file and return the size. After a failed write, the change is dropped."""
        try:
            return super().truncate(size) if self.failure is None else size or 0
        except OSError as error:
            self.failure = error
            return size or 0


class Hdf5Writer:
    """Writer of a new HDF5 file; equal calls produce equal bytes, at any time and with any version of h5py.

    Args:
        root: the file, or a group; names are relative to `root`.
    """

    def __init__(self, root: h5py.Group) -> None:
        self._root = root
        self.attrs = root.attrs

    def group(self, name: str) -> h5py.Group:
        """Return a group, creating the group and its parents if absent."""
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
    """Open a new HDF5 file at the path of an existing empty file.

    Raises:
        OSError: a write failed. The first such error is raised after the file is closed.
    """
    with Output(path, "r+b") as output:
        with h5py.File(_created(path, output)) as content:
            yield Hdf5Writer(content)
        if output.failure is not None:
            raise output.failure


@contextmanager
def checksummed_hdf5(path: Path) -> Iterator[Hdf5Writer]:
    """Open a new HDF5 file at the path of an existing empty file; checksums are appended at the end.

    Raises:
        OSError: a write failed. The first such error is raised after the file is closed.
    """
    with hdf5_output(path) as file:
        file.attrs[CHECKSUMS] = "blocks"
        yield file
    append_checksums(path)


def _created(path: Path, output: Output) -> Any:
    """Create an HDF5 file in `output`, without a lasting property list that refers to `output`."""
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)  # closes objects that are still open with the file
    access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V110)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, output)
    creation = _without_times(h5py.h5p.FILE_CREATE)
    return h5py.h5f.create(os.fsencode(path), h5py.h5f.ACC_TRUNC, fcpl=creation, fapl=access)


def _without_times(kind: Any) -> Any:
    creation = h5py.h5p.create(kind)
    creation.set_obj_track_times(False)
    return creation
