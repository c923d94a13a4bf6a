"""Recognition of zip archives, and the exceptions that reading a damaged array or archive can raise."""

import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aadml.feature_extraction.ground.errors import DamagedFileError, InputError, cause

DAMAGED = (
    OSError,
    EOFError,  # cut short
    ValueError,  # a wrong header, a wrong size, text that is not UTF-8
    RuntimeError,  # marked as encrypted; NotImplementedError, an unknown compression; RecursionError, a deep header
    zipfile.BadZipFile,  # a wrong directory or checksum
    zlib.error,  # compressed content that cannot be decompressed
    tarfile.TarError,
    tokenize.TokenError,  # an array header without an end
    SyntaxError,  # an array header that is not a Python literal
    KeyError,  # an array header without its fields
    TypeError,
    OverflowError,  # a size beyond the range of an index
    MemoryError,
)
"""Exceptions that reading a damaged npy, npz or tar file can raise; the first wrong byte determines the exception."""


@contextmanager
def damage_as(problem: str, advice: str, errors: tuple[type[Exception], ...] = DAMAGED) -> Iterator[None]:
    """Raise DamagedFileError for the exceptions `errors`, with the message "PROBLEM (CAUSE); ADVICE".

    An InputError is raised unchanged.
    """
    try:
        yield
    except InputError:
        raise
    except errors as error:
        raise DamagedFileError(f"{problem} ({cause(error)}); {advice}") from error


def is_archive(path: Path) -> bool:
    """Return whether `path` is a regular file with the end record of a zip archive, such as an npz.

    Devices and pipes are not opened.
    """
    try:
        return path.is_file() and zipfile.is_zipfile(path)
    except zipfile.BadZipFile:
        return True
