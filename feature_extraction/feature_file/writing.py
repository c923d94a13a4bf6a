"""Writing a feature file."""

import json
import os
from collections.abc import Mapping

import h5py

from aadml.feature_extraction.feature_file.checks import checked
from aadml.feature_extraction.feature_file.content import FORMAT, UNLABELLED, FeatureFile
from aadml.feature_extraction.feature_file.names import MODALITIES, in_order
from aadml.feature_extraction.feature_file.output import Hdf5Writer, hdf5_output
from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows
from aadml.feature_extraction.ground.atomic import atomic_path


def write_features(path: str | os.PathLike[str], content: FeatureFile) -> None:
    """Write a feature file, whole or not at all; equal content gives equal bytes.

    Args:
        path: the file to make or replace.
        content: what to write; it is checked as it is written.

    Raises:
        InputError: the content contradicts itself, or the place cannot be written.
    """
    write_rows(path, content, content.rows_by_modality())


def write_rows(path: str | os.PathLike[str], content: FeatureFile, rows: Mapping[str, ModalityRows]) -> None:
    """Write a feature file of which a block of rows at a time is in memory; the bytes are those of `write_features`.

    Args:
        path: the file to make or replace.
        content: what to write, but for the numbers of its modalities.
        rows: these; they are checked as they are written.

    Raises:
        InputError: the content contradicts itself, or the place cannot be written.
    """
    watched = checked(content, rows, os.fspath(path))
    with atomic_path(path) as temporary, hdf5_output(temporary) as file:
        _write(file, content, watched)


def _write(file: Hdf5Writer, content: FeatureFile, rows: Mapping[str, ModalityRows]) -> None:
    text = h5py.string_dtype("utf-8")
    file.attrs["format"] = FORMAT
    file.attrs["version"] = 2 if _needs_version_2(content, rows) else 1
    if not set(rows) <= set(MODALITIES):
        file.attrs["modalities"] = json.dumps(in_order(rows))
    for name, each in sorted(rows.items()):
        dataset = _write_blocks(file, name, _written(content, name, each))
        provenance = json.dumps(content.provenance.get(name, {}), sort_keys=True, ensure_ascii=False)
        dataset.attrs["provenance"] = provenance
    for name, each in sorted(rows.items()):
        if each.sequence is None:
            continue
        _write_blocks(file, f"{name}_sequence", each.sequence)
        file.dataset(f"{name}_offsets", data=each.offsets)
        if each.times is not None:
            _write_blocks(file, f"{name}_times", each.times)
    if content.texts is not None:
        file.dataset("text_row", data=content.texts.rows)
    for name in _masked(content):
        file.dataset(f"{name}_present", data=content.present[name])
    for name, arrays in sorted(content.fitted.items()):
        for key, array in sorted(arrays.items()):
            file.dataset(f"fitted/{name}/{key}", data=array)
    file.dataset("label", data=content.labels)
    if content.all_labels is not None:
        file.dataset("labels", data=content.all_labels)
    for name, strings in [("id", content.ids), ("split", content.splits), ("class_names", content.class_names)]:
        file.dataset(name, data=list(strings), dtype=text)
    if content.shard is not None:
        keys = [
            "index",
            "count",
            "total",
            "manifest",
            "failures",
            *(("pending", "sequence") if content.shard.pending else ()),
            *(("incomplete",) if content.shard.incomplete == "drop" else ()),
        ]
        described = {key: getattr(content.shard, key) for key in keys}
        file.dataset("shard", data=json.dumps(described, sort_keys=True), dtype=text)
        file.dataset("shard_rows", data=content.shard.rows)
    for name, values in sorted(content.fingerprints.items()):
        file.dataset(f"fingerprint/{name}", data=values)
    file.group("column")
    for name, strings in sorted(content.columns.items()):
        file.dataset(f"column/{name}", data=list(strings), dtype=text)


def _write_blocks(file: Hdf5Writer, name: str, rows: FeatureRows) -> h5py.Dataset:
    dataset = file.dataset(name, shape=rows.shape, dtype=rows.dtype)
    start = 0
    for block in rows.blocks():
        dataset[start : start + len(block)] = block
        start += len(block)
    return dataset


def _written(content: FeatureFile, name: str, rows: ModalityRows) -> FeatureRows:
    """Give the numbers of a modality as they stand in the file: of several texts a clip, all."""
    return rows.pooled if name != "text" or content.texts is None else FeatureRows.of(content.texts.values)


def _masked(content: FeatureFile) -> list[str]:
    """Name the modalities that some clips lack."""
    return sorted(name for name, there in content.present.items() if not there.all())


def _needs_version_2(content: FeatureFile, rows: Mapping[str, ModalityRows]) -> bool:
    timed = any(each.times is not None for each in rows.values())
    further = not set(rows) <= set(MODALITIES)
    return (
        bool(_masked(content))
        or further
        or timed
        or content.texts is not None
        or content.all_labels is not None
        or bool((content.labels == UNLABELLED).any())
    )
