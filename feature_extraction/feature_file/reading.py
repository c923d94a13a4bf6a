"""Reading a feature file, which may come from a stranger."""

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from feature_extraction.feature_file.checks import check
from feature_extraction.feature_file.content import FORMAT, MODALITIES, FeatureFile, Shard, Timeline
from feature_extraction.ground.errors import InputError

VERSIONS = (1, 2)


def is_feature_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether `path` is a feature file of this layout (any version), without reading its arrays."""
    try:
        with h5py.File(path, "r") as file:
            return bool(_text(file.attrs.get("format", "")) == FORMAT)
    except OSError:
        return False


def read_features(path: str | os.PathLike[str]) -> FeatureFile:
    """Read and check a feature file.

    Args:
        path: a file written by `write_features`.

    Returns:
        Its content, in memory.

    Raises:
        InputError: the file is missing, not a feature file, damaged, or contradicts itself; the message names the key.
    """
    place = os.fspath(path)
    if Path(path).is_dir():
        raise InputError(f"{place}: is a folder; a feature file was expected")
    if not Path(path).exists():
        raise InputError(f"{place}: no such file")
    try:
        with h5py.File(path, "r") as file:
            content = _read(file, place)
    except (OSError, RuntimeError) as error:
        raise InputError(f"{place}: cannot be read as HDF5 ({' '.join(str(error).split())})") from error
    check(content, place)
    return content


def _read(file: h5py.File, place: str) -> FeatureFile:
    if _text(file.attrs.get("format", "")) != FORMAT:
        raise InputError(f"{place}: is not a feature file (its attribute `format` is not '{FORMAT}')")
    version = int(file.attrs.get("version", 0))
    if version not in VERSIONS:
        read = " and ".join(map(str, VERSIONS))
        raise InputError(f"{place}: is a feature file of version {version}; this program reads versions {read}")
    names = [name for name in MODALITIES if name in file]
    columns = file.get("column", {})
    fitted = file.get("fitted", {})
    return FeatureFile(
        features={name: _array(file, name, np.float32, place) for name in names},
        labels=_array(file, "label", np.int64, place),
        ids=_strings(file, "id", place),
        splits=tuple("valid" if split == "val" else split for split in _strings(file, "split", place)),
        class_names=_strings(file, "class_names", place),
        provenance={name: _provenance(file[name], f"{place}: /{name}") for name in names},
        columns={name: _strings(columns, name, place) for name in columns},
        sequences={name: _sequence(file, name, place) for name in names if f"{name}_sequence" in file},
        fitted={name: {key: _array(fitted[name], key, np.float32, place) for key in fitted[name]} for name in fitted},
        shard=_shard(file, place) if "shard" in file else None,
    )


def _array(group: Any, key: str, dtype: type, place: str) -> NDArray[Any]:
    dataset = _dataset(group, key, place)
    if not np.issubdtype(dataset.dtype, np.number):
        raise InputError(f"{place}: /{key} holds {dataset.dtype}; numbers are needed")
    if np.issubdtype(dtype, np.integer) and not np.issubdtype(dataset.dtype, np.integer):
        raise InputError(f"{place}: /{key} holds {dataset.dtype}; integers are needed")
    return np.asarray(dataset[()], dtype=dtype)


def _strings(group: Any, key: str, place: str) -> tuple[str, ...]:
    dataset = _dataset(group, key, place)
    if h5py.check_string_dtype(dataset.dtype) is None or dataset.ndim != 1:
        raise InputError(f"{place}: /{key} holds {dataset.dtype} {dataset.shape}; a list of strings is needed")
    try:
        return tuple(dataset.asstr("utf-8")[()].tolist())
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: /{key} holds strings that are not UTF-8") from error


def _sequence(file: h5py.File, name: str, place: str) -> Timeline:
    values = _array(file, f"{name}_sequence", np.float32, place)
    times = _array(file, f"{name}_times", np.float64, place) if f"{name}_times" in file else None
    return Timeline(values=values, offsets=_array(file, f"{name}_offsets", np.int64, place), times=times)


def _shard(file: h5py.File, place: str) -> Shard:
    try:
        described = json.loads(_dataset(file, "shard", place).asstr()[()])
        failures = tuple((int(row), tuple(map(str, failure))) for row, failure in described.pop("failures"))
        return Shard(**described, rows=_array(file, "shard_rows", np.int64, place), failures=failures)
    except (TypeError, ValueError, KeyError) as error:
        raise InputError(f"{place}: /shard does not describe a shard") from error


def _provenance(dataset: h5py.Dataset, place: str) -> dict[str, Any]:
    try:
        provenance = json.loads(_text(dataset.attrs.get("provenance", "{}")))
    except ValueError as error:
        raise InputError(f"{place}: its attribute `provenance` is not JSON") from error
    if not isinstance(provenance, dict):
        raise InputError(f"{place}: its attribute `provenance` is not a JSON object")
    return provenance


def _dataset(group: Any, key: str, place: str) -> h5py.Dataset:
    if key not in group or not isinstance(group[key], h5py.Dataset):
        raise InputError(f"{place}: holds no /{key}")
    return group[key]


def _text(value: Any) -> str:
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)
