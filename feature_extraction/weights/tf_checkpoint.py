"""Tensors of a TensorFlow checkpoint of version 1 (`vggish_model.ckpt`), read with only NumPy.

No maintained reader exists outside TensorFlow, which needs 2 GB of disk space. The format is a sorted string table
(LevelDB's layout) of protocol buffers. Sources: saved_tensor_slice.proto of TensorFlow, LevelDB's table_format.md.
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError

_MAGIC = bytes.fromhex("57fb808b247547db")
_DTYPES: dict[int, str] = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 19: "<f2"}  # DataType of types.proto
_PACKED_FIELDS: dict[int, int] = {1: 5, 2: 6, 3: 7, 9: 10}  # float_val, double_val, int_val, int64_val of a TensorProto


def is_tf_checkpoint(path: Path) -> bool:
    """Return whether a file ends like a TensorFlow checkpoint of version 1."""
    if not path.is_file() or path.stat().st_size < 48:
        return False
    with path.open("rb") as file:
        file.seek(-8, 2)
        return file.read(8) == _MAGIC


def read_tf_checkpoint(path: Path) -> dict[str, NDArray[Any]]:
    """Read all numeric tensors of a checkpoint.

    Returns:
        Variable name -> array. Tensors of types other than float16/32/64 and int32/64 are omitted.

    Raises:
        InputError: the file cannot be read, is damaged or compressed, or has a tensor of several slices.
    """
    try:
        with path.open("rb") as file:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        return _slices(list(_table(content)))
    except (ValueError, KeyError, IndexError, TypeError, struct.error, OSError, OverflowError, MemoryError) as error:
        if isinstance(error, InputError):
            raise InputError(f"{path}: {error}") from error
        raise InputError(
            f"{path} is not a complete TensorFlow checkpoint ({error}); download the checkpoint again"
        ) from error


def _slices(entries: list[tuple[bytes, memoryview]]) -> dict[str, NDArray[Any]]:
    """Return the numeric tensors of the entries of a checkpoint, by name.

    The first entry contains the names, shapes and types of all tensors. Every later entry contains the values of
    one tensor.

    Raises:
        InputError: a tensor consists of several slices.
    """
    shapes: dict[str, tuple[tuple[int, ...], int]] = {}
    tensors: dict[str, NDArray[Any]] = {}
    for kind, meta in _fields(dict(_fields(entries[0][1]))[1]):
        if kind == 1:
            header = dict(_fields(meta))
            shapes[bytes(header[1]).decode()] = (_shape(header.get(2)), int(header.get(3, 0)))
    for _, value in entries[1:]:
        data = dict(_fields(dict(_fields(value))[2]))
        name = bytes(data[1]).decode()
        shape, dtype = shapes[name]
        if name in tensors:
            raise InputError(
                f"the tensor {name} consists of several slices; save the checkpoint again without partitioned variables"
            )
        if dtype in _DTYPES:
            tensors[name] = _tensor_values(data[3], dtype).reshape(shape)
    return tensors


def _tensor_values(proto: memoryview, dtype: int) -> NDArray[Any]:
    """Return the values (n,) of a TensorProto.

    The values are read from the raw content if present, and otherwise from the packed field of `dtype`.
    """
    fields = dict(_fields(proto))
    raw = fields.get(4, fields.get(_PACKED_FIELDS.get(dtype, 0), b""))
    if 4 not in fields and dtype in (3, 9):
        return np.array(list(_varints(raw)), dtype=np.uint64).astype(_DTYPES[dtype])
    return np.frombuffer(raw, dtype=_DTYPES[dtype]).copy()


def _shape(proto: Any) -> tuple[int, ...]:
    sizes = [dict(_fields(dim)) for field, dim in _fields(proto) if field == 2] if proto is not None else []
    return tuple(int(size.get(1, 0)) for size in sizes)


def _table(content: memoryview) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the entries of a sorted string table in order."""
    footer = content[-48:]
    _, at = _varint(footer, 0)
    _, at = _varint(footer, at)
    for _, handle in _block(content, *_handle(footer, at)):
        yield from _block(content, *_handle(handle, 0))


def _handle(buffer: memoryview, at: int) -> tuple[int, int]:
    offset, at = _varint(buffer, at)
    size, _ = _varint(buffer, at)
    return offset, size


def _block(content: memoryview, offset: int, size: int) -> Iterator[tuple[bytes, memoryview]]:
    """Yield the entries of a block. Keys share prefixes; the restart points at the end are not needed."""
    if content[offset + size] != 0:
        raise InputError("the checkpoint has compressed blocks; save the checkpoint again without compression")
    block = content[offset : offset + size]
    end = len(block) - 4 - 4 * struct.unpack("<I", block[-4:])[0]
    at, key = 0, b""
    while at < end:
        shared, at = _varint(block, at)
        added, at = _varint(block, at)
        length, at = _varint(block, at)
        key = key[:shared] + bytes(block[at : at + added])
        yield key, block[at + added : at + added + length]
        at += added + length


def _fields(buffer: Any) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a protocol buffer.

    The value of a varint is an integer. Any other value is a slice of `buffer`.
    """
    at = 0
    while at < len(buffer):
        tag, at = _varint(buffer, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(buffer, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            length, at = _varint(buffer, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise ValueError(f"wire type {kind} is unknown")
        if at + length > len(buffer):
            raise ValueError("a field extends beyond the end")
        yield tag >> 3, buffer[at : at + length]
        at += length


def _varint(buffer: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError("a number is too long")


def _varints(buffer: memoryview) -> Iterator[int]:
    at = 0
    while at < len(buffer):
        value, at = _varint(buffer, at)
        yield value
