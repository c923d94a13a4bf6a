"""Writing a feature file."""

import json
import os

import h5py

from feature_extraction.feature_file.checks import check
from feature_extraction.feature_file.content import FORMAT, UNLABELLED, FeatureFile
from feature_extraction.ground.atomic import atomic_path
from feature_extraction.ground.errors import InputError


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


def _write(file: h5py.File, content: FeatureFile) -> None:
    text = h5py.string_dtype("utf-8")
    file.attrs["format"] = FORMAT
    file.attrs["version"] = 2 if _needs_version_2(content) else 1
    for name, values in sorted(content.features.items()):
        dataset = file.create_dataset(name, data=values, track_times=False)
        dataset.attrs["provenance"] = json.dumps(content.provenance.get(name, {}), sort_keys=True, ensure_ascii=False)
    for name, sequence in sorted(content.sequences.items()):
        file.create_dataset(f"{name}_sequence", data=sequence.values, track_times=False)
        file.create_dataset(f"{name}_offsets", data=sequence.offsets, track_times=False)
        if sequence.times is not None:
            file.create_dataset(f"{name}_times", data=sequence.times, track_times=False)
    for name, arrays in sorted(content.fitted.items()):
        for key, array in sorted(arrays.items()):
            file.create_dataset(f"fitted/{name}/{key}", data=array, track_times=False)
    file.create_dataset("label", data=content.labels, track_times=False)
    if content.all_labels is not None:
        file.create_dataset("labels", data=content.all_labels, track_times=False)
    for name, strings in [("id", content.ids), ("split", content.splits), ("class_names", content.class_names)]:
        file.create_dataset(name, data=list(strings), dtype=text, track_times=False)
    if content.shard is not None:
        described = {key: getattr(content.shard, key) for key in ("index", "count", "total", "manifest", "failures")}
        file.create_dataset("shard", data=json.dumps(described, sort_keys=True), dtype=text, track_times=False)
        file.create_dataset("shard_rows", data=content.shard.rows, track_times=False)
    columns = file.create_group("column", track_order=False)
    for name, strings in sorted(content.columns.items()):
        columns.create_dataset(name, data=list(strings), dtype=text, track_times=False)


def _needs_version_2(content: FeatureFile) -> bool:
    timed = any(sequence.times is not None for sequence in content.sequences.values())
    return timed or content.all_labels is not None or bool((content.labels == UNLABELLED).any())
