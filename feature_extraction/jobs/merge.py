"""The shards of one job become one feature file, if they are all there and of one kind."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Description, Fit, mean_over_time
from aadml.feature_extraction.feature_file import (
    Cursor,
    FeatureFile,
    FeatureRows,
    ModalityRows,
    Shard,
    Texts,
    gathered,
    open_features,
    spread,
)
from aadml.feature_extraction.frontends.whitening import FITS
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.jobs.assembly import PENDING_NOTE, Assembled, refuse_foreign, write, written_modalities
from aadml.feature_extraction.jobs.failures import Failure
from aadml.feature_extraction.jobs.shard_names import shard_paths


@dataclass(frozen=True)
class Merged:
    """What the shards of a job came to.

    Attributes:
        shards: how many were joined.
        clips: how many the file holds.
        dimensions: of each modality.
        failures: the clips that failed in any shard, in the manifest's order.
    """

    shards: int
    clips: int
    dimensions: Mapping[str, int]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class _ShardPart:
    """One shard: its path, its content without the numbers, and these."""

    path: str
    content: FeatureFile
    rows: Mapping[str, ModalityRows]
    shard: Shard


def merge(paths: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> Merged:
    """Join the shards of one job; the result equals, byte for byte, what the job would have given in one piece.

    What is fitted to the training clips of all shards (a whitening) is fitted here. The numbers are read and written
    block by block.

    Args:
        paths: the feature files of all shards, in any order, or the name given to `extract`, of which all shards
            `<stem>.<i>-of-<n>.h5` are taken; none: the shards of `output`.
        output: the feature file to make; its list of failures is written beside it.

    Returns:
        What the shards came to.

    Raises:
        InputError: a shard is missing, given twice, of another job, or of other features; or it is the output.
    """
    place = Path(output)
    refuse_foreign(place)
    with ExitStack() as stack:
        found = shard_paths(paths, place)
        if any(place.exists() and place.samefile(path) for path in found if path.exists()):
            raise InputError(f"{place}: is a shard that is read; name another output")
        parts = [_opened(path, stack) for path in found]
        _check_complete(parts)
        _check_kinds(parts)
        assembled = _joined(parts)
        failed = sorted(pair for part in parts for pair in part.shard.failures)
        failures = tuple(Failure(*described) for _, described in failed)
        write(place, assembled, failures)
    dimensions = {name: rows.pooled.shape[1] for name, rows in assembled.rows.items()}
    return Merged(len(parts), len(assembled.head.ids), dimensions, failures)


def _opened(path: str | os.PathLike[str], stack: ExitStack) -> _ShardPart:
    content, rows = stack.enter_context(open_features(path))
    if content.shard is None:
        raise InputError(f"{os.fspath(path)}: is not a shard of a job (it was not extracted with --shard)")
    return _ShardPart(os.fspath(path), content, rows, content.shard)


def _check_complete(parts: Sequence[_ShardPart]) -> None:
    """Verify that the files are all shards of one job, each once, and that no clip is unaccounted for."""
    known: dict[int, _ShardPart] = {}
    for part in parts:
        shard, first = part.shard, parts[0].shard
        if (shard.count, shard.total, shard.manifest) != (first.count, first.total, first.manifest):
            raise InputError(
                f"{part.path}: belongs to another job than {parts[0].path} (another manifest, or other shards)"
            )
        if shard.index in known:
            raise InputError(f"{part.path}: is shard {shard.index}/{shard.count}, as {known[shard.index].path} is")
        expected = np.arange(shard.index, shard.total, shard.count)
        found = np.sort(np.concatenate([shard.rows, np.array([row for row, _ in shard.failures], dtype=np.int64)]))
        if not np.array_equal(found, expected):
            accounted = len(np.intersect1d(found, expected))
            raise InputError(f"{part.path}: accounts for {accounted} of its {len(expected)} clips")
        known[shard.index] = part
    count = parts[0].shard.count if parts else 0
    absent = [f"{index}/{count}" for index in range(count) if index not in known]
    if absent or not parts:
        raise InputError(f"shard {', '.join(absent) or 'files'} missing: the job is not complete")


def _check_kinds(parts: Sequence[_ShardPart]) -> None:
    first = parts[0]
    for part in parts[1:]:
        for modality in sorted({*first.rows, *part.rows}):
            ours, theirs = (each.content.provenance.get(modality) for each in (first, part))
            if ours is None or theirs is None:
                raise InputError(f"{part.path}: {modality} features are in only one of it and {first.path}")
            different = [key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key)]
            if different:
                key = different[0]
                raise InputError(
                    f"{part.path}: its {modality} features are of another kind than those of {first.path}: "
                    f"{key} is {theirs.get(key)!r} there and {ours.get(key)!r} here"
                )
        if _outline(part) != _outline(first):
            raise InputError(
                f"{part.path}: its classes, columns, sequences or incomplete clips are not those of {first.path}"
            )


def _outline(part: _ShardPart) -> tuple[Any, ...]:
    sequences = {name for name, rows in part.rows.items() if rows.sequence is not None}
    content, shard = part.content, part.shard
    several = content.all_labels is not None
    kept = shard.pending, shard.sequence, shard.incomplete
    return content.class_names, set(content.columns), several, sequences, *kept


def _all_labels(contents: Sequence[FeatureFile]) -> NDArray[np.uint8]:
    return np.concatenate([content.all_labels for content in contents if content.all_labels is not None])


def _joined(parts: Sequence[_ShardPart]) -> Assembled:
    contents, first = [part.content for part in parts], parts[0]
    order = np.argsort(np.concatenate([part.shard.rows for part in parts]))

    def ordered(column: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        flat = [text for part in column for text in part]
        return tuple(flat[row] for row in order)

    present = {name: np.concatenate([content.has(name) for content in contents])[order] for name in first.rows}
    written = written_modalities(present)
    head = FeatureFile(
        features={},
        labels=np.concatenate([content.labels for content in contents])[order],
        ids=ordered([content.ids for content in contents]),
        splits=ordered([content.splits for content in contents]),
        class_names=first.content.class_names,
        all_labels=None if first.content.all_labels is None else _all_labels(contents)[order],
        provenance={name: _origin(first, name) for name in written},
        columns={name: ordered([c.columns[name] for c in contents]) for name in first.content.columns},
        fingerprints={
            name: np.concatenate([c.fingerprints[name] for c in contents])[order]
            for name in first.content.fingerprints
            if name in written and all(name in c.fingerprints for c in contents)
        },
        texts=_texts(parts, order),
    )
    rows = {name: _interleaved([part.rows[name] for part in parts], order) for name in written}
    fitted = {}
    for name, pending in first.shard.pending.items():
        if name not in written:
            continue
        fit, there = _fit(pending, first), present[name]
        rows[name], fitted[name] = _fitted(rows[name], fit, head.splits, there, keep=first.shard.sequence)
    lacking = {name: present[name] for name in written if not present[name].all()}
    return Assembled(replace(head, fitted=fitted, present=lacking), rows)


def _texts(parts: Sequence[_ShardPart], order: NDArray[np.int64]) -> Texts | None:
    """Join all texts, where a clip of any part has several."""
    if all(part.content.texts is None for part in parts):
        return None
    own = [part.content.texts or _one_each(part) for part in parts]
    starts = np.cumsum([0, *(len(part.content.ids) for part in parts)])
    rows = np.concatenate([texts.rows + start for texts, start in zip(own, starts[:-1], strict=True)])
    filled = [texts.values for texts in own if len(texts.values)]  # of a part without clips, no width is known
    return Texts.sorted(np.concatenate(filled), np.argsort(order)[rows])


def _one_each(part: _ShardPart) -> Texts:
    """Give the texts of a part whose clips have one each."""
    there = part.content.has("text")
    return Texts(part.rows["text"].pooled.array()[there], np.flatnonzero(there).astype(np.int64))


def _origin(part: _ShardPart, modality: str) -> JsonObject:
    origin = dict(part.content.provenance[modality])
    if origin.get("notes") == [PENDING_NOTE.format(modality)]:
        del origin["notes"]
    return origin


def _interleaved(parts: Sequence[ModalityRows], order: NDArray[np.int64]) -> ModalityRows:
    """Take the clips of all parts in the manifest's order."""
    counts = [part.pooled.shape[0] for part in parts]
    whose = np.repeat(np.arange(len(parts)), counts)[order]
    pooled = _merged([part.pooled for part in parts], whose, np.ones(len(order), dtype=np.int64))
    if any(part.sequence is None or part.offsets is None for part in parts):
        return ModalityRows(pooled)
    lengths = np.concatenate([np.diff(part.offsets) for part in parts if part.offsets is not None])[order]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    sequence = _merged([part.sequence for part in parts if part.sequence is not None], whose, lengths)
    times = [part.times for part in parts if part.times is not None]
    return ModalityRows(pooled, sequence, offsets, _merged(times, whose, lengths) if len(times) == len(parts) else None)


def _merged(parts: Sequence[FeatureRows], whose: NDArray[np.int64], lengths: NDArray[np.int64]) -> FeatureRows:
    """Take the next `lengths[i]` rows of part `whose[i]`, for every i."""
    filled = next((part for part in parts if part.shape[0]), parts[0])  # of a part without clips, no width is known

    def clips() -> Iterator[NDArray[Any]]:
        cursors = [Cursor(part) for part in parts]
        for part, length in zip(whose, lengths, strict=True):
            if length:  # a part that has nothing of a modality does not know its width either
                yield cursors[part].take(int(length))

    return FeatureRows((int(lengths.sum()), *filled.shape[1:]), filled.dtype, lambda: gathered(clips()))


def _fit(pending: Mapping[str, Any], part: _ShardPart) -> Fit:
    """Build what the shards left to be fitted, from its name and its options."""
    options = dict(pending)
    try:
        return FITS[options.pop("name")](**options)
    except (KeyError, TypeError) as error:
        possible = ", ".join(FITS)
        raise InputError(f"{part.path}: /shard leaves {dict(pending)} to be fitted; possible are {possible}") from error


def _fitted(
    rows: ModalityRows, fit: Fit, splits: Sequence[str], there: NDArray[np.bool_], *, keep: bool
) -> tuple[ModalityRows, dict[str, NDArray[np.float32]]]:
    """Fit to the training clips, apply to all, and pool as `Extractor` does by default."""
    assert rows.sequence is not None
    assert rows.offsets is not None
    read = partial(_clips, rows.sequence, np.diff(rows.offsets)[there])
    own = (split for split, has in zip(splits, there, strict=True) if has)
    arrays = fit.arrays(values for values, split in zip(read(), own, strict=True) if split == "train")
    change = fit.transformation(arrays)
    width = change(np.zeros((1, rows.sequence.shape[1]), np.float32)).shape[1]

    def made() -> Iterator[Description]:
        return map(change, read())

    kind = np.dtype(np.float32)
    pooled = FeatureRows(
        (len(splits), width), kind, lambda: gathered(spread(map(mean_over_time, made()), there, width))
    )
    if not keep:
        return ModalityRows(pooled), arrays
    sequence = FeatureRows((rows.sequence.shape[0], width), kind, lambda: gathered(made()))
    return ModalityRows(pooled, sequence, rows.offsets, rows.times), arrays


def _clips(sequence: FeatureRows, lengths: NDArray[np.int64]) -> Iterator[Description]:
    cursor = Cursor(sequence)
    return (cursor.take(int(length)) for length in lengths)
