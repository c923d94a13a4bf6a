"""Merging of the shards of one job into one feature file."""

import os
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import FeatureFile, PendingFit, Shard, Texts
from aadml.feature_extraction.feature_file.reading import open_features
from aadml.feature_extraction.feature_file.replacement import refuse_other_clips
from aadml.feature_extraction.feature_file.rows import Cursor, FeatureRows, ModalityRows, gathered
from aadml.feature_extraction.frontends.whitening import PcaWhitening
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.assembly import Assembled, refuse_foreign, write, written_modalities
from aadml.feature_extraction.jobs.failures import Failure
from aadml.feature_extraction.jobs.fitting import fitted
from aadml.feature_extraction.jobs.plan import PCA_WHITENING
from aadml.feature_extraction.jobs.shard_names import shard_paths
from aadml.feature_extraction.manifest import RECORDING

_LISTED = 20  # missing shards in a message
_WINDOWS_ADVICE = "; with windows, extract each shard where the media of all shards exist"
_OTHER_FILES = 256  # open files of the process, in addition to the shards


@dataclass(frozen=True)
class Merged:
    """Result of merging shards.

    Attributes:
        shards: number of shards.
        clips: number of clips in the file; 0 if all clips failed. No file is then written, and an earlier file is kept.
        dimensions: dimension by modality.
        failures: failed clips of all shards, in the order of the manifest.
    """

    shards: int
    clips: int
    dimensions: Mapping[str, int]
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class _ShardPart:
    """Feature file of a shard, open for reading: path, content, features with sequences, and facts on the shard."""

    path: str
    content: FeatureFile
    rows: Mapping[str, ModalityRows]
    shard: Shard


def merge(paths: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> Merged:
    """Merge the shards of one job. The result equals that of a job without shards byte for byte.

    A transformation that needs the training clips of all shards (a whitening) is fitted during the merge. Features
    are read and written in blocks.

    Args:
        paths: feature files of all shards, in any order. A name that was passed to `extract` stands for its shards
            `<stem>.<i>-of-<n><suffix>`. An empty list stands for the shards of `output`.
        output: the feature file to create; its list of failures is written beside it.

    Returns:
        Counts, dimensions and failures.

    Raises:
        InputError: missing, unreadable or repeated shards, shards of several jobs or with different features, a
            transformation that cannot be fitted, or an output that is one of the shards, cannot be
            written, or is a feature file of other clips.
    """
    place = Path(output)
    refuse_foreign(place)
    with ExitStack() as stack:
        files = shard_paths(paths, place)
        if any(place.exists() and place.samefile(path) for path in files if path.exists()):
            raise InputError(f"{place} is one of the shards to merge; choose another output")
        _allow_open_files(len(files), stack)
        parts = [_opened(path, stack) for path in files]
        _check_complete(parts)
        _check_kinds(parts)
        clips = sum(len(part.content.ids) for part in parts)
        assembled = _joined(parts) if clips else None
        failed = sorted(pair for part in parts for pair in part.shard.failures)
        failures = tuple(Failure(*described) for _, described in failed)
        if assembled is not None:
            names = chain(assembled.head.ids, assembled.head.columns.get(RECORDING, ()))
            refuse_other_clips(place, names, "the shards")
        write(place, assembled, failures)
    dimensions = {name: rows.pooled.shape[1] for name, rows in assembled.rows.items()} if assembled else {}
    return Merged(len(parts), clips, dimensions, failures)


def _allow_open_files(count: int, stack: ExitStack) -> None:
    """Raise the soft limit of open files for `count` shards until `stack` is closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    if highest <= count:
        raise InputError(
            f"merging opens all {count:,} shards, but a process may open only {hard:,} files; raise the hard limit "
            "(ulimit -Hn), or extract with fewer shards"
        )
    if soft != resource.RLIM_INFINITY and soft < count + _OTHER_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + _OTHER_FILES, highest), hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))


def _opened(path: str | os.PathLike[str], stack: ExitStack) -> _ShardPart:
    content, rows = stack.enter_context(open_features(path))
    if content.shard is None:
        raise InputError(f"{os.fspath(path)} is not a shard of a job; pass files that were extracted with --shard")
    if any(len(described) != len(fields(Failure)) for _, described in content.shard.failures):
        raise InputError(f"{os.fspath(path)}: /shard does not describe its failed clips; extract the shard again")
    return _ShardPart(os.fspath(path), content, rows, content.shard)


def _check_complete(parts: Sequence[_ShardPart]) -> None:
    """Check that the files are the complete set of shards of one job, without repetition.

    Each clip must be a row or a failure of its shard.
    """
    known: dict[int, _ShardPart] = {}
    for part in parts:
        shard, first = part.shard, parts[0].shard
        if (shard.count, shard.total, shard.manifest) != (first.count, first.total, first.manifest):
            has_windows = RECORDING in part.content.columns
            raise InputError(
                f"{part.path} belongs to a different job than {parts[0].path} (the manifests or the "
                f"numbers of shards differ); pass the shards of one job{_WINDOWS_ADVICE * has_windows}"
            )
        if shard.index in known:
            raise InputError(
                f"{part.path} is shard {shard.index}/{shard.count}, and so is {known[shard.index].path}; "
                "pass each shard once"
            )
        expected = range(shard.index, shard.total, shard.count)
        rows = [*shard.rows.tolist(), *(row for row, _ in shard.failures)]
        if len(rows) != len(expected) or sorted(rows) != [*expected]:
            accounted = sum(row in expected for row in {*rows})
            raise InputError(
                f"{part.path} does not list each clip of its shard once (expected {len(expected)}, listed "
                f"{len(rows)}, correct {accounted}); extract this shard again"
            )
        known[shard.index] = part
    count = parts[0].shard.count
    absent = [*islice((f"{index}/{count}" for index in range(count) if index not in known), _LISTED)]
    if absent:
        raise InputError(
            f"the job is not complete, because shards are missing ({', '.join(absent)}); extract and pass all shards"
        )


def _check_kinds(parts: Sequence[_ShardPart]) -> None:
    """Check that all shards have the same kind of features."""
    first = parts[0]
    for part in parts[1:]:
        for modality in sorted({*first.rows, *part.rows}):
            expected, actual = (each.content.provenance.get(modality) for each in (first, part))
            if expected is None or actual is None:
                raise InputError(
                    f"{part.path}: only one of this file and {first.path} has {modality} features; "
                    "extract all shards with the same options"
                )
            for key in sorted({*expected, *actual}):
                if expected.get(key) != actual.get(key):
                    raise InputError(
                        f"{part.path}: its {modality} features are not of the same kind as those of {first.path}: "
                        f"{key} is {actual.get(key)!r} instead of {expected.get(key)!r}; "
                        "extract all shards with the same options"
                    )
        if _outline(part) != _outline(first):
            raise InputError(
                f"{part.path}: its classes, columns, sequences or fits differ from those of {first.path}; "
                "extract all shards with the same options"
            )


def _outline(part: _ShardPart) -> tuple[object, ...]:
    content, shard = part.content, part.shard
    sequences = {name for name, rows in part.rows.items() if rows.sequence is not None}
    outline = content.class_names, set(content.columns), content.all_labels is not None, sequences
    return *outline, shard.pending, shard.sequence


def _joined(parts: Sequence[_ShardPart]) -> Assembled:
    contents, first = [part.content for part in parts], parts[0]
    order = np.argsort(np.concatenate([part.shard.rows for part in parts]))
    all_labels = [content.all_labels for content in contents if content.all_labels is not None]
    present = {name: np.concatenate([content.has(name) for content in contents]) for name in first.rows}
    written = written_modalities(present)
    origins = {name: dict(first.content.provenance[name]) for name in written}
    for name, origin in origins.items():
        if name in first.shard.pending:
            origin.pop("notes", None)
    head = FeatureFile(
        features={},
        labels=np.concatenate([content.labels for content in contents]),
        ids=tuple(chain.from_iterable(content.ids for content in contents)),
        splits=tuple(chain.from_iterable(content.splits for content in contents)),
        class_names=first.content.class_names,
        all_labels=np.concatenate(all_labels) if all_labels else None,
        provenance=origins,
        columns={n: tuple(chain.from_iterable(c.columns[n] for c in contents)) for n in first.content.columns},
        fingerprints={
            name: np.concatenate([content.fingerprints[name] for content in contents])
            for name in first.content.fingerprints
            if name in written and all(name in content.fingerprints for content in contents)
        },
        present={name: present[name] for name in written if not present[name].all()},
        texts=_texts(parts),
    ).select(order)
    rows = {name: _interleaved([part.rows[name] for part in parts], order) for name in written}
    arrays = {}
    for name in written:
        if name in first.shard.pending:
            fit = _fit(first.shard.pending[name], first)
            rows[name], arrays[name] = fitted(
                rows[name], fit, head.splits, head.has(name), sequence=first.shard.sequence
            )
    return Assembled(replace(head, fitted=arrays), rows)


def _texts(parts: Sequence[_ShardPart]) -> Texts | None:
    """Join the texts of all parts, in the order of the parts; None if no clip has several texts."""
    if all(part.content.texts is None for part in parts):
        return None
    texts = [part.content.texts or _single_texts(part) for part in parts]
    starts = np.cumsum([0, *(len(part.content.ids) for part in parts[:-1])])
    rows = np.concatenate([each.rows + start for each, start in zip(texts, starts, strict=True)])
    filled = [each.values for each in texts if len(each.values)]  # the width is unknown in a part without clips
    return Texts(np.concatenate(filled), rows)


def _single_texts(part: _ShardPart) -> Texts:
    """Return the texts of a part whose clips have at most one text each."""
    present = part.content.has("text")
    return Texts(part.rows["text"].pooled.array()[present], np.flatnonzero(present).astype(np.int64))


def _interleaved(parts: Sequence[ModalityRows], order: NDArray[np.int64]) -> ModalityRows:
    """Return the clips of all parts in the order of the manifest."""
    counts = [part.pooled.shape[0] for part in parts]
    sources = np.repeat(np.arange(len(parts)), counts)[order]
    pooled = _merged([part.pooled for part in parts], sources, np.ones(len(order), dtype=np.int64))
    if any(part.sequence is None or part.offsets is None for part in parts):
        return ModalityRows(pooled)
    lengths = np.concatenate([np.diff(part.offsets) for part in parts if part.offsets is not None])[order]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    sequence = _merged([part.sequence for part in parts if part.sequence is not None], sources, lengths)
    times = [part.times for part in parts if part.times is not None]
    merged_times = _merged(times, sources, lengths) if len(times) == len(parts) else None
    return ModalityRows(pooled, sequence, offsets, merged_times)


def _merged(parts: Sequence[FeatureRows], sources: NDArray[np.int64], lengths: NDArray[np.int64]) -> FeatureRows:
    """Return the next `lengths[i]` rows of part `sources[i]`, for every i."""
    filled = next((part for part in parts if part.shape[0]), parts[0])  # the width is unknown in a part without clips

    def clips() -> Iterator[NDArray[Any]]:
        cursors = [Cursor(part) for part in parts]
        for source, length in zip(sources, lengths, strict=True):
            if length:  # the width is also unknown in a part without the modality
                yield cursors[source].take(int(length))

    return FeatureRows((int(lengths.sum()), *filled.shape[1:]), filled.dtype, lambda: gathered(clips()))


def _fit(pending: PendingFit, part: _ShardPart) -> PcaWhitening:
    if pending.name == PCA_WHITENING:
        return PcaWhitening(pending.dimension, pending.eight_bit)
    raise InputError(
        f"{part.path}: /shard has the fit {pending.name!r}, which is not {PCA_WHITENING}; "
        "merge the shards with the version of aadml that extracted them"
    )
