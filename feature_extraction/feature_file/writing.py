"""Writer of feature files."""

import json
import os
from collections.abc import Mapping

import h5py

from aadml.feature_extraction.feature_file.checks import checked
from aadml.feature_extraction.feature_file.content import FORMAT, UNLABELLED, FeatureFile, Shard
from aadml.feature_extraction.feature_file.names import MODALITIES, in_order
from aadml.feature_extraction.feature_file.output import Hdf5Writer, checksummed_hdf5
from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows
from aadml.feature_extraction.ground.atomic import atomic_path

_TEXT = h5py.string_dtype("utf-8")


def write_features(path: str | os.PathLike[str], content: FeatureFile) -> None:
    """Write a feature file, completely or not at all; equal content produces equal bytes.

    Args:
        path: the file to create or replace.
        content: content of the file, which is checked while it is written.

    Raises:
        InputError: the content is inconsistent, or the file cannot be written.
    """
    write_rows(path, content, content.rows_by_modality())


def write_rows(path: str | os.PathLike[str], content: FeatureFile, rows: Mapping[str, ModalityRows]) -> None:
    """Write a feature file in blocks of rows; the bytes equal those of `write_features`.

    Args:
        path: the file to create or replace.
        content: content of the file, except features and sequences.
        rows: features and sequences by modality, which are checked while they are written.

    Raises:
        InputError: the content is inconsistent, or the file cannot be written.
    """
    watched = checked(content, rows, os.fspath(path))
    with atomic_path(path) as temporary, checksummed_hdf5(temporary) as file:
        _write(file, content, watched)


def _write(file: Hdf5Writer, content: FeatureFile, rows: Mapping[str, ModalityRows]) -> None:
    masked = sorted(name for name, present in content.present.items() if not present.all())
    file.attrs["format"] = FORMAT
    file.attrs["version"] = 2 if masked or _needs_version_2(content, rows) else 1
    if not set(rows) <= set(MODALITIES):
        file.attrs["modalities"] = json.dumps(in_order(rows))
    _write_rows(file, content, rows)
    if content.texts is not None:
        file.dataset("text_row", data=content.texts.rows)
    for name in masked:
        file.dataset(f"{name}_present", data=content.present[name])
    for name, arrays in sorted(content.fitted.items()):
        for key, array in sorted(arrays.items()):
            file.dataset(f"fitted/{name}/{key}", data=array)
    file.dataset("label", data=content.labels)
    if content.all_labels is not None:
        file.dataset("labels", data=content.all_labels)
    for name, strings in [("id", content.ids), ("split", content.splits), ("class_names", content.class_names)]:
        file.dataset(name, data=list(strings), dtype=_TEXT)
    if content.shard is not None:
        file.dataset("shard", data=_described(content.shard), dtype=_TEXT)
        file.dataset("shard_rows", data=content.shard.rows)
    for name, values in sorted(content.fingerprints.items()):
        file.dataset(f"fingerprint/{name}", data=values)
    file.group("column")
    for name, strings in sorted(content.columns.items()):
        file.dataset(f"column/{name}", data=list(strings), dtype=_TEXT)


def _write_rows(file: Hdf5Writer, content: FeatureFile, rows: Mapping[str, ModalityRows]) -> None:
    for name, modality in sorted(rows.items()):
        several = content.texts if name == "text" else None
        dataset = _write_blocks(file, name, modality.pooled if several is None else FeatureRows.of(several.values))
        provenance = json.dumps(content.provenance.get(name, {}), sort_keys=True, ensure_ascii=False)
        dataset.attrs["provenance"] = provenance
    for name, modality in sorted(rows.items()):
        if modality.sequence is not None:
            _write_blocks(file, f"{name}_sequence", modality.sequence)
            file.dataset(f"{name}_offsets", data=modality.offsets)
        if modality.times is not None:
            _write_blocks(file, f"{name}_times", modality.times)


def _described(shard: Shard) -> str:
    """Return a shard as JSON; the keys `pending` and `sequence` are left out without a pending fit."""
    keys = ["index", "count", "total", "manifest", "failures"]
    keys += ["pending", "sequence"] if shard.pending else []
    return json.dumps({key: getattr(shard, key) for key in keys}, sort_keys=True, default=vars)


def _write_blocks(file: Hdf5Writer, name: str, rows: FeatureRows) -> h5py.Dataset:
    dataset = file.dataset(name, shape=rows.shape, dtype=rows.dtype)
    start = 0
    for block in rows.blocks():
        dataset[start : start + len(block)] = block
        start += len(block)
    return dataset


def _needs_version_2(content: FeatureFile, rows: Mapping[str, ModalityRows]) -> bool:
    return (
        not set(rows) <= set(MODALITIES)
        or any(modality.times is not None for modality in rows.values())
        or content.texts is not None
        or content.all_labels is not None
        or bool((content.labels == UNLABELLED).any())
    )
