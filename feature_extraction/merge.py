"""The shards of one job become one feature file, if they are all there and of one kind."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from feature_extraction.assembly import Failure, refuse_foreign, write
from feature_extraction.feature_file import FeatureFile, Shard, Timeline, read_features
from feature_extraction.ground.errors import InputError
from feature_extraction.shard_names import shard_paths


def merge(paths: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> tuple[FeatureFile, list[Failure]]:
    """Join the shards of one job; the result equals, byte for byte, what the job would have given in one piece.

    Args:
        paths: the feature files of all shards, in any order, or the name given to `extract`, of which all shards
            `<stem>.<i>-of-<n>.h5` are taken; none: the shards of `output`.
        output: the feature file to make; its list of failures is written beside it.

    Returns:
        The content of the file, and the clips that failed in any shard.

    Raises:
        InputError: a shard is missing, given twice, of another job, or of other features.
    """
    place = Path(output)
    refuse_foreign(place)
    parts = [(os.fspath(path), read_features(path)) for path in shard_paths(paths, place)]
    shards = _checked(parts)
    _check_kinds(parts)
    merged, failures = _joined([content for _, content in parts], shards)
    write(place, merged, failures)
    return merged, failures


def _checked(parts: Sequence[tuple[str, FeatureFile]]) -> list[Shard]:
    """Verify that the files are all shards of one job, each once, and that no clip is unaccounted for."""
    shards: dict[int, tuple[str, Shard]] = {}
    for path, content in parts:
        shard = content.shard
        if shard is None:
            raise InputError(f"{path}: is not a shard of a job (it was not extracted with --shard)")
        first_path, first = next(iter(shards.values()), (path, shard))
        if (shard.count, shard.total, shard.manifest) != (first.count, first.total, first.manifest):
            raise InputError(f"{path}: belongs to another job than {first_path} (another manifest, or other shards)")
        if shard.index in shards:
            raise InputError(f"{path}: is shard {shard.index}/{shard.count}, as {shards[shard.index][0]} is")
        expected = set(range(shard.index, shard.total, shard.count))
        found = [*shard.rows.tolist(), *(row for row, _ in shard.failures)]
        if sorted(found) != sorted(expected):
            raise InputError(f"{path}: accounts for {len(set(found) & expected)} of its {len(expected)} clips")
        shards[shard.index] = (path, shard)
    count = next(iter(shards.values()))[1].count if shards else 0
    absent = [f"{index}/{count}" for index in range(count) if index not in shards]
    if absent or not shards:
        raise InputError(f"shard {', '.join(absent) or 'files'} missing: the job is not complete")
    return [shard for _, shard in shards.values()]


def _check_kinds(parts: Sequence[tuple[str, FeatureFile]]) -> None:
    first_path, first = parts[0]
    for path, content in parts[1:]:
        for modality in sorted({*first.features, *content.features}):
            ours, theirs = first.provenance.get(modality), content.provenance.get(modality)
            if ours is None or theirs is None:
                raise InputError(f"{path}: {modality} features are in only one of it and {first_path}")
            different = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
            if different:
                key = different[0]
                raise InputError(
                    f"{path}: its {modality} features are of another kind than those of {first_path}: "
                    f"{key} is {theirs.get(key)!r} there and {ours.get(key)!r} here"
                )
        if _outline(content) != _outline(first):
            raise InputError(f"{path}: its classes, columns or sequences are not those of {first_path}")


def _outline(content: FeatureFile) -> tuple[object, ...]:
    return content.class_names, set(content.columns), set(content.sequences), content.all_labels is None


def _all_labels(contents: Sequence[FeatureFile]) -> NDArray[np.uint8]:
    return np.concatenate([content.all_labels for content in contents if content.all_labels is not None])


def _joined(contents: Sequence[FeatureFile], shards: Sequence[Shard]) -> tuple[FeatureFile, list[Failure]]:
    order = np.argsort(np.concatenate([shard.rows for shard in shards]))
    first = contents[0]

    def ordered(column: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        flat = [text for part in column for text in part]
        return tuple(flat[row] for row in order)

    merged = FeatureFile(
        features={name: np.concatenate([c.features[name] for c in contents])[order] for name in first.features},
        labels=np.concatenate([content.labels for content in contents])[order],
        ids=ordered([content.ids for content in contents]),
        splits=ordered([content.splits for content in contents]),
        class_names=first.class_names,
        all_labels=None if first.all_labels is None else _all_labels(contents)[order],
        provenance=first.provenance,
        columns={name: ordered([content.columns[name] for content in contents]) for name in first.columns},
        sequences={name: _timeline([c.sequences[name] for c in contents], order.tolist()) for name in first.sequences},
    )
    failed = sorted(pair for shard in shards for pair in shard.failures)
    return merged, [Failure(*described) for _, described in failed]


def _timeline(parts: Sequence[Timeline], order: Sequence[int]) -> Timeline:
    clips = [slice(*ends) for ends in _ends(parts)]
    values = np.concatenate([part.values for part in parts])
    times = None if any(part.times is None for part in parts) else np.concatenate([part.times for part in parts])
    rows = np.concatenate([np.arange(clips[row].start, clips[row].stop) for row in order])
    offsets = np.concatenate([[0], np.cumsum([clips[row].stop - clips[row].start for row in order])]).astype(np.int64)
    return Timeline(values=values[rows], offsets=offsets, times=None if times is None else times[rows])


def _ends(parts: Sequence[Timeline]) -> list[tuple[int, int]]:
    """List where each clip of each part begins and ends once the parts stand one after the other."""
    before = np.cumsum([0, *(len(part.values) for part in parts)])
    return [
        (int(first + start), int(first + stop))
        for first, part in zip(before, parts, strict=False)
        for start, stop in zip(part.offsets, part.offsets[1:], strict=False)
    ]
