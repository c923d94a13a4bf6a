"""Reader of feature files, which may come from untrusted sources."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.checks import check_texts, checked
from aadml.feature_extraction.feature_file.content import FORMAT, FeatureFile, JobPart, Shard, Texts, Timeline
from aadml.feature_extraction.feature_file.names import MODALITIES, check_modality, in_order
from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows, block_rows, is_large
from aadml.feature_extraction.foreign.hdf5 import open_hdf5
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, read_as
from aadml.feature_extraction.ground.strings import as_text

VERSIONS = (1, 2)
_MOST_ROWS = 1 << 62  # of a manifest, so that numbers of rows are int64
Group = Mapping[str, "h5py.Dataset | Group"]


def is_feature_file(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a readable feature file of any version, without reading arrays."""
    try:
        with open_hdf5(path) as file:
            return _attribute(file, "format") == FORMAT
    except InputError:
        return False


def read_features(path: str | os.PathLike[str]) -> FeatureFile:
    """Read and check a feature file.

    Args:
        path: a file written by `write_features`, or from an untrusted source.

    Returns:
        Content of the file. Large contiguous arrays (`is_large`) are mapped from the file. The file must therefore not
        be changed in place; the writers of this package replace files by renaming.

    Raises:
        InputError: the file is missing, not a feature file, damaged, malicious, or inconsistent.
    """
    with open_features(path) as (content, rows):
        features = {name: modality.pooled.array() for name, modality in rows.items()}
        timelines = {name: _timeline(modality) for name, modality in rows.items()}
        return replace(content, features=features, sequences={n: t for n, t in timelines.items() if t is not None})


@contextmanager
def open_features(path: str | os.PathLike[str]) -> Iterator[tuple[FeatureFile, dict[str, ModalityRows]]]:
    """Open a feature file without reading its features and sequences into memory.

    Args:
        path: see `read_features`.

    Yields:
        The content without features and sequences, then features and sequences by modality, which are read and checked
        in blocks while the file is open.

    Raises:
        InputError: see `read_features`.
    """
    place = os.fspath(path)
    with open_hdf5(path) as file:
        content, rows = _read(file, place)
        yield content, checked(content, rows, place)


def _read(file: h5py.File, place: str) -> tuple[FeatureFile, dict[str, ModalityRows]]:
    if _attribute(file, "format") != FORMAT:
        raise InputError(
            f"{place} is not a feature file (its attribute `format` is not '{FORMAT}'); pass a feature file"
        )
    version = _attribute(file, "version")
    if version not in map(str, VERSIONS):
        possible = " and ".join(map(str, VERSIONS))
        raise InputError(
            f"{place} is a feature file of version '{version[:20]}', but this program reads versions {possible}; "
            "install a newer version of aadml, or write the file again"
        )
    names = _modalities(file, place)
    columns, fitted = _group(file, "column", place), _group(file, "fitted", place)
    fingerprints = _group(file, "fingerprint", place)
    texts = _texts(file, place) if "text_row" in file else None
    content = FeatureFile(
        features={},
        labels=_array(file, "label", np.int64, place),
        ids=_strings(file, "id", place),
        splits=tuple("valid" if split == "val" else split for split in _strings(file, "split", place)),
        class_names=_strings(file, "class_names", place),
        provenance={name: _provenance(_dataset(file, name, place), f"{place}: /{name}") for name in names},
        columns={name: _strings(columns, name, place) for name in columns},
        fitted={name: _fitted(_group(fitted, name, place), place) for name in fitted},
        shard=_shard(file, place) if "shard" in file else None,
        all_labels=_array(file, "labels", np.uint8, place) if "labels" in file else None,
        present={name: _flags(file, f"{name}_present", place) for name in names if f"{name}_present" in file},
        fingerprints={name: _array(fingerprints, name, np.uint8, place) for name in names if name in fingerprints},
        texts=texts,
    )
    rows = {name: _modality(file, name, place) for name in names}
    if texts is None:
        return content, rows
    first, present = texts.first_of_each(len(content.ids))
    masks = content.present if present.all() else {**content.present, "text": present}
    return replace(content, present=masks), rows | {"text": replace(rows["text"], pooled=FeatureRows.of(first))}


def _texts(file: h5py.File, place: str) -> Texts:
    texts = Texts(_array(file, "text", np.float32, place), _array(file, "text_row", np.int64, place))
    check_texts(texts, len(_strings(file, "id", place)), place)
    return texts


def _modalities(file: h5py.File, place: str) -> tuple[str, ...]:
    """Return the modalities of a file: the usual modalities in it, and the modalities that the file lists."""
    listed = _json(file, "modalities", "[]", place)
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise InputError(f"{place}: its attribute `modalities` is not a list of names; write a JSON list of names")
    for name in listed:
        check_modality(name, place)
    return in_order([*(name for name in MODALITIES if name in file), *listed])


def _modality(file: h5py.File, name: str, place: str) -> ModalityRows:
    pooled = _features(file, name, place)
    if f"{name}_sequence" not in file:
        return ModalityRows(pooled)
    times = _rows(file, f"{name}_times", np.float64, place) if f"{name}_times" in file else None
    offsets = _array(file, f"{name}_offsets", np.int64, place)
    return ModalityRows(pooled, _features(file, f"{name}_sequence", place), offsets, times)


def _timeline(rows: ModalityRows) -> Timeline | None:
    if rows.sequence is None or rows.offsets is None:
        return None
    return Timeline(rows.sequence.array(), rows.offsets, None if rows.times is None else rows.times.array())


def _group(owner: Group, key: str, place: str) -> Group:
    """Return a group; an empty mapping if the file lacks the group."""
    group = owner.get(key, {})
    if not isinstance(group, Mapping):
        raise InputError(f"{place}: /{key} is not a group; write a group")
    return group


def _fitted(group: Group, place: str) -> dict[str, NDArray[np.float32]]:
    return {key: _array(group, key, np.float32, place) for key in group}


def _array(group: Group, key: str, dtype: type, place: str) -> NDArray[Any]:
    return _rows(group, key, dtype, place).array()


def _flags(group: Group, key: str, place: str) -> NDArray[np.bool_]:
    dataset = _dataset(group, key, place)
    if dataset.shape is None or dataset.dtype.kind not in "biu":
        wrong: object = f"values of type {dataset.dtype}"
    else:
        values = np.asarray(dataset[()])
        if np.isin(values, (0, 1)).all():
            return values.astype(np.bool_)
        wrong = values[~np.isin(values, (0, 1))][0]
    raise InputError(
        f"{place}: /{key} contains {wrong}, but must contain one boolean per clip; write 0 or 1 for each clip"
    )


def _rows(group: Group, key: str, dtype: type, place: str) -> FeatureRows:
    dataset = _dataset(group, key, place)
    if dataset.dtype.kind not in "fiu":
        raise InputError(f"{place}: /{key} contains {dataset.dtype}, but must contain real numbers; write numbers")
    if np.issubdtype(dtype, np.integer) and dataset.dtype.kind == "f":
        raise InputError(f"{place}: /{key} contains {dataset.dtype}, but must contain integers; write integers")
    if not dataset.shape:
        raise InputError(f"{place}: /{key} is a single value or empty, but must be an array with rows; write rows")
    return FeatureRows(dataset.shape, np.dtype(dtype), partial(_blocks, dataset, np.dtype(dtype)))


def _features(group: Group, key: str, place: str) -> FeatureRows:
    """Return features; large, contiguous float32 features are mapped from the file."""
    rows, dataset = _rows(group, key, np.float32, place), _dataset(group, key, place)
    start = dataset.id.get_offset()  # None for chunked datasets, and for data outside this file
    size = int(np.prod(rows.shape, dtype=np.int64)) * rows.dtype.itemsize
    if start is None or dataset.dtype != rows.dtype or not is_large(size):
        return rows
    # mode "c": pages are private, so writes do not reach the file
    return replace(rows, mapped=np.memmap(dataset.file.filename, rows.dtype, "c", start, rows.shape))


def _blocks(dataset: h5py.Dataset, dtype: np.dtype[Any]) -> Iterator[NDArray[Any]]:
    step = block_rows(dataset.shape, dtype)
    for start in range(0, len(dataset), step):
        with np.errstate(over="ignore"):  # numbers beyond float32 become infinity, which the checks detect
            yield np.asarray(dataset[start : start + step], dtype=dtype)


def _strings(group: Group, key: str, place: str) -> tuple[str, ...]:
    dataset = _dataset(group, key, place)
    if h5py.check_string_dtype(dataset.dtype) is None or dataset.ndim != 1:
        raise InputError(
            f"{place}: /{key} has type {dataset.dtype} and shape {dataset.shape}, but must be a list of strings; "
            "write a one-dimensional array of strings"
        )
    try:
        return tuple(dataset.asstr("utf-8")[()].tolist())
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: /{key} contains strings that are not UTF-8; write UTF-8") from error


def _shard(file: h5py.File, place: str) -> Shard:
    rows = _array(file, "shard_rows", np.int64, place)
    try:
        described = json.loads(_dataset(file, "shard", place).asstr()[()])
        incomplete = described.pop("incomplete", "keep")
        failures = tuple((int(row), tuple(map(str, names))) for row, names in described.pop("failures"))
        part = read_as(JobPart, described, f"{place}: /shard")
        if not 0 <= part.index < part.count or not 0 <= part.total < _MOST_ROWS:
            raise ValueError(part)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{place}: /shard does not describe a shard; extract the shard again") from error
    if incomplete != "keep":
        raise InputError(f"{place} was extracted with --incomplete drop, which was removed; extract all shards again")
    return Shard(**vars(part), rows=rows, failures=failures)


def _provenance(dataset: h5py.Dataset, place: str) -> JsonObject:
    provenance = _json(dataset, "provenance", "{}", place)
    if not isinstance(provenance, dict):
        raise InputError(f"{place}: its attribute `provenance` is not a JSON object; write a JSON object")
    notes = provenance.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise InputError(
            f"{place}: the notes in its attribute `provenance` are not a list of strings; write a list of strings"
        )
    return provenance


def _dataset(group: Group, key: str, place: str) -> h5py.Dataset:
    if key not in group or not isinstance(group[key], h5py.Dataset):
        raise InputError(f"{place} contains no array /{key}; add this array")
    return group[key]


def _attribute(owner: Any, name: str) -> str:
    """Return an attribute as text; "" if it is absent."""
    return as_text(owner.attrs.get(name, ""))


def _json(owner: Any, name: str, default: str, place: str) -> Any:
    try:
        return json.loads(_attribute(owner, name) or default)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: its attribute `{name}` is not JSON; write JSON") from error
