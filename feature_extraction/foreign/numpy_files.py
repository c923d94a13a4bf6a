"""Reader of npy and npz files. The header of each array is checked against the size of the content."""

import math
import os
import zipfile
from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.archives import damage_as
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import require_regular

_FREE = 1 << 26  # declared bytes that are always allowed
_RATIO = 200  # declared bytes per stored byte; a higher ratio is a decompression bomb
_MEMBERS = 10_000
_FILES = "an npy or npz file"


def npz_keys(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the keys of an npz file.

    Raises:
        InputError: the file cannot be read.
    """
    return tuple(_read(path, ()))


def npz_arrays(path: str | os.PathLike[str], wanted: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read arrays of an npz file.

    Args:
        path: the file.
        wanted: keys to read; None for all keys. Missing keys are left out.

    Returns:
        Dictionary from keys to arrays, as stored.

    Raises:
        InputError: the file cannot be read, contains Python objects, or declares a different size than it stores.
    """
    return {key: array for key, array in _read(path, wanted).items() if array is not None}


def npy_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read an npy file.

    Raises:
        InputError: the file cannot be read, contains Python objects, or declares a different size than it stores.
    """
    status = require_regular(path, _FILES)
    with _damage_in(path, "npy"), Path(path).open("rb") as file:
        return read_npy(file, status.st_size, str(path))


def refuse_zip_bomb(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError if archive members overlap, have equal names, or declare far more than their stored size.

    Args:
        archive: archive opened for reading. `zipfile` decompresses no member beyond its declared size.
        size: size of the file in bytes.

    Raises:
        ValueError: the archive is unsafe or has too many members; the message describes the problem.
    """
    members = archive.infolist()
    names = {member.filename for member in members}
    if len(members) > _MEMBERS or len(names) < len(members):
        raise ValueError(f"it has {len(members):,} members with {len(names):,} names")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("its members overlap")
    declared = sum(member.file_size for member in members)
    if declared > max(_FREE, _RATIO * size):
        raise ValueError(f"it declares {declared:,} bytes, but stores {size:,}")


def _read(path: str | os.PathLike[str], wanted: Collection[str] | None) -> dict[str, NDArray[Any] | None]:
    status = require_regular(path, _FILES)
    with _damage_in(path, "npz"), zipfile.ZipFile(path) as archive:
        refuse_zip_bomb(archive, status.st_size)
        arrays: dict[str, NDArray[Any] | None] = {}
        for member in archive.infolist():
            key = member.filename.removesuffix(".npy")
            arrays[key] = None
            if wanted is None or key in wanted:
                with archive.open(member) as file:
                    arrays[key] = read_npy(file, member.file_size, f"{path}: array '{key}'")
        return arrays


def _damage_in(path: str | os.PathLike[str], kind: str) -> AbstractContextManager[None]:
    return damage_as(f"{path} cannot be read as {kind}", f"pass a readable, intact {kind} file")


def read_npy(file: IO[bytes], size: int, subject: str) -> NDArray[Any]:
    """Read an array from an open npy file.

    Args:
        file: file at its start.
        size: size of the file in bytes.
        subject: subject of the message about Python objects.

    Raises:
        InputError: the file contains Python objects.
        ValueError: the size that the header declares differs from the size of the content. A damaged file raises
            any exception of `aadml.feature_extraction.ground.archives.DAMAGED`.
    """
    major, _ = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read(file)
    if kind.hasobject:
        raise InputError(
            f"{subject} contains Python objects, which are never loaded; save text or numbers, for example with "
            "values.astype(str), or with column.to_numpy(str) in pandas"
        )
    if any(length < 0 for length in shape) or math.prod(shape) * kind.itemsize != size - file.tell():
        raise ValueError(f"it declares {kind} {shape}, but stores {size - file.tell():,} bytes")
    values = np.frombuffer(file.read(size), dtype=kind)
    array = values.reshape(shape[::-1]).T if fortran else values.reshape(shape)
    return np.array(array)
