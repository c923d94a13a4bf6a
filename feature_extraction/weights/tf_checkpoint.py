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

from aadml.feature_extraction.ground.archives import DAMAGED, damage_as
from aadml.feature_extraction.ground.errors import InputError

_MAGIC = bytes.fromhex("57fb808b247547db")
_DTYPES = {1: ("<f4", 5), 2: ("<f8", 6), 19: ("<f2", 0)}
"""DataType of types.proto -> type of NumPy, and field of a TensorProto (float_val, double_val; 0: none is read)."""


def is_tf_checkpoint(path: Path) -> bool:
    """Return whether a file ends like a TensorFlow checkpoint of version 1."""
    if not path.is_file() or path.stat().st_size < 48:
        return False
    with path.open("rb") as file:
        file.seek(-8, 2)
        return file.read(8) == _MAGIC


def read_tf_checkpoint(path: Path) -> dict[str, NDArray[Any]]:
    """Read all tensors of floats in a checkpoint.

    Returns:
        Variable name -> array. Tensors of types other than float16/32/64 are omitted.

    Raises:
        InputError: the file cannot be read, is damaged or compressed, or has a tensor of several slices.
    """
    problem, advice = f"{path} is not a complete TensorFlow checkpoint", "download the checkpoint again"
    with damage_as(problem, advice, (*DAMAGED, IndexError, struct.error)):
        with path.open("rb") as file:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        try:
            return _slices(list(_table(content)))
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def _slices(entries: list[tuple[bytes, memoryview]]) -> dict[str, NDArray[Any]]:
    """Return the tensors of floats among the entries of a checkpoint, by name.

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
    kind, packed = _DTYPES[dtype]
    fields = dict(_fields(proto))
    return np.frombuffer(fields.get(4, fields.get(packed, b"")), dtype=kind).copy()


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
