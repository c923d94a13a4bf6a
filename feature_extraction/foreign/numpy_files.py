"""NumPy's files, npy and npz: the header of each array is compared with what is there before it is read."""

import math
import os
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.archives import DAMAGED
from aadml.feature_extraction.ground.errors import InputError

_FREE = 1 << 26  # bytes that may be declared whatever is there
_RATIO = 200  # bytes declared for one that is there: more is no compression but a bomb
_MEMBERS = 10_000


def npz_keys(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """List the keys of an npz.

    Raises:
        InputError: the file cannot be read.
    """
    return tuple(_read(path, ()))


def npz_arrays(path: str | os.PathLike[str], wanted: Collection[str] | None = None) -> dict[str, NDArray[Any]]:
    """Read arrays of an npz.

    Args:
        path: the file.
        wanted: which; those that are not there are left out. None: all.

    Returns:
        Key -> array.

    Raises:
        InputError: the file cannot be read, holds Python objects, or declares more than is there.
    """
    return {key: array for key, array in _read(path, wanted).items() if array is not None}


def npy_array(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read an npy file.

    Raises:
        InputError: the file cannot be read, holds Python objects, or declares more than is there.
    """
    place = _regular(path)
    try:
        with place.open("rb") as file:
            return read_npy(file, place.stat().st_size)
    except DAMAGED as error:
        raise InputError(f"{place}: cannot be read as npy ({_line(error)})") from error


def refuse_zip_bomb(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive whose members declare far more than is there, overlap, or are too many.

    Args:
        archive: opened for reading; the sizes its members declare are the most that is ever unpacked.
        size: of the file, in bytes.

    Raises:
        ValueError: with what is wrong.
    """
    members = archive.infolist()
    names = {member.filename for member in members}
    if len(members) > _MEMBERS or len(names) < len(members):
        raise ValueError(f"it has {len(members):,} members of {len(names):,} names")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("its members overlap")
    declared = sum(member.file_size for member in members)
    if declared > max(_FREE, _RATIO * size):
        raise ValueError(f"it declares {declared:,} bytes and has {size:,}")


def _read(path: str | os.PathLike[str], wanted: Collection[str] | None) -> dict[str, NDArray[Any] | None]:
    place = _regular(path)
    try:
        with zipfile.ZipFile(place) as archive:
            refuse_zip_bomb(archive, place.stat().st_size)
            found: dict[str, NDArray[Any] | None] = {}
            for member in archive.infolist():
                key = member.filename.removesuffix(".npy")
                found[key] = None
                if wanted is None or key in wanted:
                    with archive.open(member) as file:
                        found[key] = read_npy(file, member.file_size)
            return found
    except DAMAGED as error:
        raise InputError(f"{place}: cannot be read as npz ({_line(error)})") from error


def read_npy(file: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from an opened npy file if its header declares as many bytes as follow it.

    Args:
        file: at its start.
        size: of it, in bytes.

    Raises:
        ValueError: the header declares something else, or Python objects; or whatever `DAMAGED` names.
    """
    major, _ = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, fortran, kind = read(file)
    if kind.hasobject:
        raise ValueError("it holds Python objects, which are never loaded")
    if any(length < 0 for length in shape) or math.prod(shape) * kind.itemsize != size - file.tell():
        raise ValueError(f"it declares {kind} {shape}, but {size - file.tell():,} bytes are there")
    values = np.frombuffer(file.read(size), dtype=kind)
    array = values.reshape(shape[::-1]).T if fortran else values.reshape(shape)
    return np.array(array)


def _regular(path: str | os.PathLike[str]) -> Path:
    place = Path(path)
    if "\0" in str(place) or not place.is_file():
        raise InputError(f"{str(place)!r}: no such file" if "\0" in str(place) else f"{place}: no such file")
    return place


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
