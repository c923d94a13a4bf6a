"""The feature file: features of each modality, labels, ids and splits in one HDF5 file that says where they come from.

Layout (version 1): root attributes `format`, `version`; `/<modality>` float32 (n, d) with a JSON attribute
`provenance`; `/label` int64 (n,); `/id`, `/split` UTF-8 (n,); `/class_names` UTF-8; `/column/<name>` UTF-8 (n,);
optionally `/<modality>_sequence` (total, d) with `/<modality>_offsets` int64 (n + 1,), and `/fitted/<modality>/<name>`
for arrays that were fitted on the training rows (a whitening).
"""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from feature_extraction.ground.atomic import atomic_path
from feature_extraction.ground.errors import InputError
from feature_extraction.manifest import SPLITS

FORMAT = "aadml-features"
VERSION = 1
MODALITIES = ("audio", "visual", "text")
_BLOCK = 8192  # rows looked at once while checking for NaN


@dataclass(frozen=True)
class Timeline:
    """Descriptions over time of all clips, one after the other.

    Attributes:
        values: (total, d) float32; clip i owns rows `offsets[i]` to `offsets[i + 1]`.
        offsets: (n + 1,) int64, not decreasing, from 0 to total.
    """

    values: NDArray[np.float32]
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class Shard:
    """Which part of a job a file holds; a whole job has none.

    Attributes:
        index: of the shard, from 0.
        count: of shards. Shard i holds the manifest's rows i, i + count, i + 2 count ...
        total: rows of the manifest.
        manifest: fingerprint of the manifest.
        rows: (n,) int64, the manifest's row of each clip of the file.
        failures: of each clip that failed: its row, and what the list of failures says of it.
    """

    index: int
    count: int
    total: int
    manifest: str
    rows: NDArray[np.int64]
    failures: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class FeatureFile:
    """The content of a feature file; row i of every field is the same clip.

    Attributes:
        features: per modality (n, d) float32, finite.
        labels: (n,) int64, positions in `class_names`.
        ids: n names of clips.
        splits: n of `train`, `valid`, `test`.
        class_names: C names of classes.
        provenance: per modality what made the features (extractor, weights, parameters, versions), JSON-able.
        columns: further columns of the manifest, each of n strings.
        sequences: per modality the descriptions over time, where they were kept.
        fitted: per modality named arrays that were fitted on the training rows.
        shard: which part of a job this is, where it is a part.
    """

    features: Mapping[str, NDArray[np.float32]]
    labels: NDArray[np.int64]
    ids: tuple[str, ...]
    splits: tuple[str, ...]
    class_names: tuple[str, ...]
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sequences: Mapping[str, Timeline] = field(default_factory=dict)
    fitted: Mapping[str, Mapping[str, NDArray[np.float32]]] = field(default_factory=dict)
    shard: Shard | None = None

    def rows(self, split: str) -> NDArray[np.int64]:
        """Give the row numbers of one split, in order."""
        return np.flatnonzero(np.asarray(self.splits) == split).astype(np.int64)

    def notes(self) -> tuple[str, ...]:
        """Say what people should know of where the features come from: what readers did, networks without training."""
        found = [str(note) for origin in self.provenance.values() for note in origin.get("notes", [])]
        for modality, origin in self.provenance.items():
            parameters = origin.get("parameters")
            inner = parameters.get("weights") if isinstance(parameters, Mapping) else None
            if "untrained" in (origin.get("weights"), inner):
                found.append(f"{modality}: made by an untrained network (random weights)")
        return tuple(dict.fromkeys(found))


def is_feature_file(path: str | os.PathLike[str]) -> bool:
    """Tell whether `path` is a feature file of this layout (any version), without reading its arrays."""
    try:
        with h5py.File(path, "r") as file:
            return bool(_text(file.attrs.get("format", "")) == FORMAT)
    except OSError:
        return False


def write_features(path: str | os.PathLike[str], content: FeatureFile) -> None:
    """Write a feature file, whole or not at all; equal content gives equal bytes.

    Args:
        path: the file to make or replace.
        content: what to write; it is checked first.

    Raises:
        InputError: the content contradicts itself, or the place cannot be written.
    """
    check(content, os.fspath(path))
    try:
        with atomic_path(path) as temporary, h5py.File(temporary, "w", libver=("v108", "v110")) as file:
            _write(file, content)
    except RuntimeError as error:  # h5py's word for a disk that fills up while a file is closed
        raise InputError(f"{path}: cannot be written ({error}); choose another place or free some space") from error


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


def check(content: FeatureFile, place: str) -> None:
    """Refuse content that contradicts itself.

    Args:
        content: what is to be written or was read.
        place: what the message shall name, usually a path.

    Raises:
        InputError: counts, shapes, types, NaN or infinity, labels out of range, unknown splits.
    """
    n = len(content.ids)
    if not content.features:
        raise InputError(f"{place}: holds no modality; one of {', '.join(MODALITIES)} is needed")
    if n == 0 and content.shard is None:
        raise InputError(f"{place}: holds no clips")
    for name, values in content.features.items():
        if name not in MODALITIES:
            raise InputError(f"{place}: '{name}' is no modality; possible are {', '.join(MODALITIES)}")
        _check_matrix(values, n, f"{place}: /{name}")
    for name, count in [("label", len(content.labels)), ("split", len(content.splits))]:
        _check_count(count, n, f"{place}: /{name}")
    for name, values_of_column in content.columns.items():
        _check_count(len(values_of_column), n, f"{place}: /column/{name}")
    if content.shard is not None:
        _check_count(len(content.shard.rows), n, f"{place}: /shard_rows")
    _check_labels(content, place)
    unknown = Counter(split for split in content.splits if split not in SPLITS)
    if unknown:
        raise InputError(f"{place}: /split holds '{next(iter(unknown))}'; possible are {', '.join(SPLITS)}")
    for name, sequence in content.sequences.items():
        _check_sequence(sequence, n, content.features.get(name), f"{place}: /{name}_sequence")


def _check_count(count: int, n: int, place: str) -> None:
    if count != n:
        raise InputError(f"{place} has {count} rows, but there are {n} ids")


def _check_matrix(values: NDArray[np.float32], n: int, place: str) -> None:
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"{place} has shape {values.shape}; (clips, dimensions) is needed")
    if values.dtype != np.float32:
        raise InputError(f"{place} holds {values.dtype}; float32 is needed")
    _check_count(len(values), n, place)
    _check_finite(values, place)


def _check_finite(values: NDArray[np.float32], place: str) -> None:
    for start in range(0, len(values), _BLOCK):
        finite = np.isfinite(values[start : start + _BLOCK]).all(axis=1)
        if not finite.all():
            raise InputError(f"{place}: row {start + int(np.argmin(finite))} holds NaN or infinity")


def _check_labels(content: FeatureFile, place: str) -> None:
    if content.labels.dtype != np.int64 or content.labels.ndim != 1:
        raise InputError(f"{place}: /label is {content.labels.dtype} {content.labels.shape}; int64 (clips,) is needed")
    classes = len(content.class_names)
    wrong = np.flatnonzero((content.labels < 0) | (content.labels >= classes))
    if len(wrong):
        raise InputError(
            f"{place}: /label is {content.labels[wrong[0]]} in row {wrong[0]}, but there are {classes} class names"
        )


def _check_sequence(sequence: Timeline, n: int, pooled: NDArray[np.float32] | None, place: str) -> None:
    offsets, values = sequence.offsets, sequence.values
    if pooled is None:
        raise InputError(f"{place} has no pooled features beside it")
    if values.ndim != 2 or values.dtype != np.float32:
        raise InputError(f"{place} is {values.dtype} {values.shape}; float32 (total, dimensions) is needed")
    if offsets.dtype != np.int64 or offsets.shape != (n + 1,):
        raise InputError(f"{place}: its offsets are {offsets.dtype} {offsets.shape}; int64 ({n + 1},) is needed")
    if offsets[0] != 0 or offsets[-1] != len(values) or (np.diff(offsets) < 0).any():
        raise InputError(f"{place}: its offsets do not run from 0 to {len(values)} without a step back")
    _check_finite(values, place)


def _write(file: h5py.File, content: FeatureFile) -> None:
    text = h5py.string_dtype("utf-8")
    file.attrs["format"] = FORMAT
    file.attrs["version"] = VERSION
    for name, values in sorted(content.features.items()):
        dataset = file.create_dataset(name, data=values, track_times=False)
        dataset.attrs["provenance"] = json.dumps(content.provenance.get(name, {}), sort_keys=True, ensure_ascii=False)
    for name, sequence in sorted(content.sequences.items()):
        file.create_dataset(f"{name}_sequence", data=sequence.values, track_times=False)
        file.create_dataset(f"{name}_offsets", data=sequence.offsets, track_times=False)
    for name, arrays in sorted(content.fitted.items()):
        for key, array in sorted(arrays.items()):
            file.create_dataset(f"fitted/{name}/{key}", data=array, track_times=False)
    file.create_dataset("label", data=content.labels, track_times=False)
    for name, strings in [("id", content.ids), ("split", content.splits), ("class_names", content.class_names)]:
        file.create_dataset(name, data=list(strings), dtype=text, track_times=False)
    if content.shard is not None:
        described = {key: getattr(content.shard, key) for key in ("index", "count", "total", "manifest", "failures")}
        file.create_dataset("shard", data=json.dumps(described, sort_keys=True), dtype=text, track_times=False)
        file.create_dataset("shard_rows", data=content.shard.rows, track_times=False)
    columns = file.create_group("column", track_order=False)
    for name, strings in sorted(content.columns.items()):
        columns.create_dataset(name, data=list(strings), dtype=text, track_times=False)


def _read(file: h5py.File, place: str) -> FeatureFile:
    if _text(file.attrs.get("format", "")) != FORMAT:
        raise InputError(f"{place}: is not a feature file (its attribute `format` is not '{FORMAT}')")
    version = int(file.attrs.get("version", 0))
    if version != VERSION:
        raise InputError(f"{place}: is a feature file of version {version}; this program reads version {VERSION}")
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
    return Timeline(values=values, offsets=_array(file, f"{name}_offsets", np.int64, place))


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
