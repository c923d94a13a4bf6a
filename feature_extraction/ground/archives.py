"""Archives of arrays that are damaged: what reading them raises depends on the first byte that is wrong."""

import tarfile
import tokenize
import zipfile
import zlib
from pathlib import Path

DAMAGED = (
    OSError,
    EOFError,  # cut short
    ValueError,  # a wrong header, a wrong size, text that is not UTF-8
    RuntimeError,  # said to be encrypted, or (NotImplementedError) compressed by another method
    zipfile.BadZipFile,  # a wrong directory or checksum
    zlib.error,  # compressed content that cannot be unpacked
    tarfile.TarError,
    tokenize.TokenError,  # a header of an array that ends nowhere
    SyntaxError,  # a header that is no Python literal
    RecursionError,  # one that is nested without end
    KeyError,  # one without its fields
    TypeError,
    OverflowError,  # a size beyond all bounds
    MemoryError,
)
"""Of npy and npz files, and of the tar files around them."""


def is_archive(path: Path) -> bool:
    """Say whether a file is a zip archive, as an npz file is; a damaged one is one too, and nobody waits for a pipe."""
    try:
        return path.is_file() and zipfile.is_zipfile(path)
    except zipfile.BadZipFile:
        return True
