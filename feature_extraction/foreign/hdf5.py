"""Reader of untrusted HDF5 files. Every file is first inspected in a process that can be killed."""

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.archives import damage_as
from aadml.feature_extraction.ground.block_checksums import CheckedReader, has_checksums
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.file_content import require_regular
from aadml.feature_extraction.ground.processor_time import reached_limit

CHECKSUMS = "checksums"
"""Root attribute of a file with checksums at its end. If the checksums are missing, the file is damaged."""

_SECONDS = 0.5  # processor time for a small file, without the start of the process
_OBJECT_BYTES_A_SECOND, _OBJECT_SECONDS = 1e6, 60.0  # speed for a file of small objects, and its upper limit
_BYTES_A_SECOND = 1e7  # lower bound of the speed for other files
_PATIENCE = 120.0, 20.0  # wall-clock seconds: a constant, and a factor of the processor time
_QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HDF5_PLUGIN_PRELOAD": "::"}


@contextmanager
def open_hdf5(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Open an HDF5 file for reading after its inspection in a separate process (`hdf5_look`).

    Args:
        path: the file.

    Yields:
        The open file, which has no links to other files.

    Raises:
        InputError: the file cannot be read, is not HDF5, is damaged or malicious, or HDF5 fails inside the `with`
            block. The message is one line.
    """
    place, status = os.fspath(path), require_regular(path, "an HDF5 file")
    if os.access(place, os.R_OK) and not h5py.is_hdf5(place):
        problem = "a file of another kind" if status.st_size else "empty"
        raise InputError(f"{place} cannot be read as HDF5 (it is {problem}); pass an HDF5 file")
    problem = _inspected(str(Path(place).resolve()), status.st_size, status.st_mtime_ns, status.st_ino)
    if problem:
        advice = "restore the file from a copy" if os.access(place, os.R_OK) else "make the file readable"
        raise DamagedFileError(f"{place}: {problem}; {advice}, or pass another file")
    problem, advice = f"{place} cannot be read as HDF5", "restore the file from a copy"
    try:
        with damage_as(problem, advice, (OSError, RuntimeError, KeyError)), _opened(place) as file:
            yield file
    except MemoryError as error:
        raise InputError(f"{place} needs more memory than is available; use a machine with more memory") from error


@contextmanager
def _opened(place: str) -> Iterator[h5py.File]:
    """Open a file. If it has checksums, each block is verified during reading."""
    if not has_checksums(place):
        with h5py.File(place, "r") as file:
            if CHECKSUMS in file.attrs:
                raise DamagedFileError(
                    f"{place} is damaged (its checksums are missing, after truncation or a change by another "
                    "program); restore the file from a copy, or create it again"
                )
            yield file
        return
    with CheckedReader(place) as reader:
        try:
            with h5py.File(_verified(place, reader), "r") as file:
                yield file
        finally:
            if reader.failure:  # HDF5 may have reported another error, or none
                raise DamagedFileError(reader.failure)


def _verified(place: str, reader: CheckedReader) -> Any:
    """Open an HDF5 file through `reader`, without a lasting property list that refers to `reader`."""
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)  # closes objects that are still open with the file
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, reader)
    return h5py.h5f.open(os.fsencode(place), h5py.h5f.ACC_RDONLY, fapl=access)


def hdf5_keys(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the keys at the root of an HDF5 file.

    Raises:
        InputError: the file cannot be read.
    """
    with open_hdf5(path) as file:
        return tuple(file)


def hdf5_arrays(path: str | os.PathLike[str], wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read arrays of an HDF5 file.

    Returns:
        Dictionary from each key of `wanted` to an array of numbers or text. MATLAB stores the axes of an array in
        reverse order. Arrays of MATLAB are returned with the axes that they have in MATLAB, and vectors as columns.

    Raises:
        InputError: the file cannot be read, or a key is missing or has a value other than an array of real numbers
            or text.
    """
    with open_hdf5(path) as file:
        require_keys(path, wanted, tuple(file))
        return {key: _values(file[key], f"{path}: '{key}'") for key in wanted}


def require_keys(path: str | os.PathLike[str], wanted: Collection[str], keys: Collection[str]) -> None:
    """Raise InputError if a requested key is not among the keys of a file.

    The message lists up to 30 keys of the file.
    """
    missing = [key for key in wanted if key not in keys]
    if missing:
        present = ", ".join([*keys][:30]) or "none"
        raise InputError(f"{path} contains no '{missing[0]}'; pass a file with this key (keys found: {present})")


def is_numbers_or_text(dataset: h5py.Dataset) -> bool:
    """Return whether an array contains real numbers or text.

    The inspection does not limit the size of other values, such as arrays of variable length.
    """
    return dataset.dtype.kind in "biuf" or h5py.check_string_dtype(dataset.dtype) is not None


def _values(dataset: Any, where: str) -> NDArray[Any]:
    if not isinstance(dataset, h5py.Dataset):
        raise InputError(f"{where} is a group, but must be an array; write an array")
    if dataset.shape is None:
        raise InputError(f"{where} is empty, but must contain one row per clip; write the rows")
    if not is_numbers_or_text(dataset):
        raise InputError(
            f"{where} contains {dataset.dtype}, but must contain real numbers or text; write numbers or text"
        )
    values = np.asarray(dataset[()])
    is_column = values.ndim == 2 and values.shape[1] == 1
    return values.T if "MATLAB_class" in dataset.attrs and not is_column else values


@functools.lru_cache(maxsize=256)
def _inspected(path: str, size: int, modified: int, inode: int) -> str:
    """Inspect a file in a subprocess, and return the problem; "" for a safe file.

    `modified` and `inode` only identify the version of the file.
    """
    del modified, inode
    seconds = _SECONDS + min(size / _OBJECT_BYTES_A_SECOND, _OBJECT_SECONDS) + size / _BYTES_A_SECOND
    patience = _PATIENCE[0] + _PATIENCE[1] * seconds
    program = [sys.executable, "-P", str(Path(__file__).with_name("hdf5_look.py")), path, str(seconds)]
    try:
        inspection = subprocess.run(
            program,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_QUIET},
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the file cannot be inspected in {patience:.0f} s, so the file is damaged or the disk is too slow"
    if reached_limit(inspection.returncode):
        return f"the file cannot be inspected in {seconds:.1f} s of processor time, so the file is damaged or malicious"
    if inspection.returncode < 0:
        return f"the file crashes its reader ({signal.Signals(-inspection.returncode).name}), so the file is damaged"
    if inspection.returncode:
        lines = inspection.stderr.decode(errors="replace").splitlines() or ["no message"]
        return f"the file cannot be inspected ({lines[-1]})"
    return inspection.stdout.decode(errors="replace")[:500]
