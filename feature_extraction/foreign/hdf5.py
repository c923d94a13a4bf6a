"""HDF5 files of strangers: opened only after a process that may be killed has looked at all of them."""

import functools
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.processor_time import reached_limit

_SECONDS = 0.5  # of processor time for a look at a small file, without the start of the process that looks
_OBJECT_BYTES_A_SECOND, _OBJECT_SECONDS = 1e6, 60.0  # a file of nothing but small objects, and the most it can take
_BYTES_A_SECOND = 1e7  # what a look gets through at least of other files
_PATIENCE = 120.0, 20.0  # seconds on the clock, and for each second of processor time: the machine may be busy
_QUIET = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HDF5_PLUGIN_PRELOAD": "::"}


@contextmanager
def open_hdf5(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Open a file for reading once a process that may be killed has looked at all of it (`hdf5_look`).

    Args:
        path: the file.

    Yields:
        The open file: nothing in it leads out of it, and all it declares is there.

    Raises:
        InputError: there is no such file, it is no HDF5, or was made to harm; one line. So is what HDF5 cannot read
            while the file is in use.
    """
    place = os.fspath(path)
    if "\0" in place:
        raise InputError(f"{place!r}: holds a zero byte; no file has such a name")
    try:
        status = Path(place).stat()
    except FileNotFoundError as error:
        raise InputError(f"{place}: no such file") from error
    except OSError as error:
        raise InputError(f"{place}: cannot be read ({error.strerror})") from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file but a device or a pipe"
        raise InputError(f"{place}: is {kind}; an HDF5 file was expected")
    if os.access(place, os.R_OK) and not h5py.is_hdf5(place):
        what = "a file of another kind" if status.st_size else "empty"
        raise InputError(f"{place}: cannot be read as HDF5 (it is {what})")
    problem = _looked_at(str(Path(place).resolve()), status.st_size, status.st_mtime_ns, status.st_ino)
    if problem:
        raise InputError(f"{place}: {problem}")
    try:
        with h5py.File(place, "r") as file:
            yield file
    except MemoryError as error:
        raise InputError(f"{place}: needs more memory than there is") from error
    except (OSError, RuntimeError, KeyError) as error:
        raise InputError(f"{place}: cannot be read as HDF5 ({' '.join(str(error).split())})") from error


def hdf5_keys(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """List the keys at the top of an HDF5 file.

    Raises:
        InputError: the file cannot be read.
    """
    with open_hdf5(path) as file:
        return tuple(file)


def hdf5_arrays(path: str | os.PathLike[str], wanted: Collection[str]) -> dict[str, NDArray[Any]]:
    """Read arrays of an HDF5 file whole.

    Raises:
        InputError: the file cannot be read, or a key is missing or no array; the message names it and what there is.
    """
    with open_hdf5(path) as file:
        require_keys(path, wanted, tuple(file))
        return {key: _values(file[key], f"{path}: '{key}'") for key in wanted}


def require_keys(path: str | os.PathLike[str], wanted: Collection[str], found: Collection[str]) -> None:
    """Refuse a file in which a key is missing.

    Raises:
        InputError: names the first missing key and the keys found.
    """
    missing = [key for key in wanted if key not in found]
    if missing:
        there = ", ".join([*found][:30]) or "none"
        raise InputError(f"{path}: holds no '{missing[0]}'; keys found: {there}")


def _values(dataset: Any, where: str) -> NDArray[Any]:
    if not isinstance(dataset, h5py.Dataset):
        raise InputError(f"{where} is a group; wanted an array")
    if dataset.shape is None:
        raise InputError(f"{where} holds nothing")
    if dataset.dtype.kind == "c":
        raise InputError(f"{where} holds {dataset.dtype}; real numbers or text are needed")
    return np.asarray(dataset[()])


@functools.lru_cache(maxsize=256)
def _looked_at(path: str, size: int, changed: int, number: int) -> str:
    """Have a file looked at; return what is wrong. The other arguments only tell whether it is still the same file."""
    del changed, number
    seconds = _SECONDS + min(size / _OBJECT_BYTES_A_SECOND, _OBJECT_SECONDS) + size / _BYTES_A_SECOND
    patience = _PATIENCE[0] + _PATIENCE[1] * seconds
    program = [sys.executable, "-P", str(Path(__file__).with_name("hdf5_look.py")), path, str(seconds)]
    try:
        done = subprocess.run(
            program,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_QUIET},
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"cannot be looked through in {patience:.0f} s"
    if reached_limit(done.returncode):
        limit = f"{seconds:.1f} s of processor time"
        return f"cannot be looked through in {limit}: it is damaged, or made to keep readers busy"
    if done.returncode < 0:
        return f"takes down what reads it ({signal.Signals(-done.returncode).name}): it is damaged"
    if done.returncode:
        return f"cannot be looked at ({(done.stderr.decode(errors='replace').splitlines() or ['no message'])[-1]})"
    return done.stdout.decode(errors="replace")[:500]
