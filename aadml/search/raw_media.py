"""Media for a model that decodes them itself: embedded in batches, each of which is stored at once."""

import hashlib
import json
import sqlite3
import warnings
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import content_of, stamp_of
from aadml.feature_extraction.jobs.failures import ABSENT, Failure
from aadml.feature_extraction.manifest import Row
from aadml.model.media import raw_media
from aadml.search.encoders import ModelEncoder
from aadml.search.sources import IndexSource, Present, Work, listed, may_have, with_any

_BATCH = 16


@dataclass(frozen=True)
class _File:
    place: int
    id: str
    path: str
    key: str


def of_raw_media(place: str | Path, index: Path, encoder: ModelEncoder, work: Work) -> IndexSource:
    """Embed the media of a manifest or a folder, except those that were embedded before with equal content.

    Raises:
        InputError: no clip can be read.
    """
    manifest, items = listed(place, index)
    name = json.dumps(encoder.to_json(index.parent), sort_keys=True)
    present: dict[Modality, Present] = {}
    failures: list[Failure] = []
    with closing(sqlite3.connect(work.folder / "vectors.sqlite", isolation_level=None)) as cache:
        cache.execute("PRAGMA journal_mode = WAL")
        cache.execute("CREATE TABLE IF NOT EXISTS vector (key TEXT PRIMARY KEY, content BLOB NOT NULL)")
        for modality in (m for m in ("audio", "visual") if m in encoder.facts.modalities):
            files, missing = _files(manifest.rows, modality, name)
            failed = _embed_missing(files, modality, encoder, cache, work)
            failures += [*missing, *(failure for failure in failed if failure.reason != ABSENT[modality])]
            values = dict(cache.execute("SELECT key, content FROM vector"))
            embedded = [file for file in files if file.key in values]
            if embedded:
                vectors = np.stack([np.frombuffer(values[file.key], dtype="<f4") for file in embedded])
                rows = np.asarray([file.place for file in embedded], dtype=np.int64)
                present[modality] = Present(rows, torch.from_numpy(vectors))
    if not present:
        raise InputError(
            f"{place}: none of {len(manifest.rows)} clips can be read by this model; check the media files"
        )
    return with_any(IndexSource(items, present, failures=tuple(failures), embedded=True))


def _files(rows: Sequence[Row], modality: Modality, encoder: str) -> tuple[list[_File], list[Failure]]:
    """Return the files with their keys, checksums of content and encoder, and the failures of missing files."""
    files, failures = [], []
    for place, row in enumerate(rows):
        path = row.media[modality]
        if not may_have(path, modality):
            continue
        stamp = stamp_of(path)
        if stamp is None:
            failures.append(Failure(row.id, path, modality, "missing", "no such file"))
            continue
        key = hashlib.sha256(f"{encoder} {modality} {content_of(path, stamp)}".encode()).hexdigest()
        files.append(_File(place, row.id, path, key))
    return files, failures


def _embed_missing(
    files: Sequence[_File], modality: Modality, encoder: ModelEncoder, cache: sqlite3.Connection, work: Work
) -> list[Failure]:
    """Embed the files that are not in the cache."""
    known = {row[0] for row in cache.execute("SELECT key FROM vector")}
    missing = list({file.key: file for file in files if file.key not in known}.values())
    failures: list[Failure] = []
    for begin in range(0, len(missing), _BATCH):
        failures += _embed(missing[begin : begin + _BATCH], modality, encoder, cache)
        if work.progress is not None:
            done = len(files) - len(missing) + min(begin + _BATCH, len(missing))
            work.progress(f"{modality} of {len(files)}", done, len(failures))
    return failures


def _embed(
    files: Sequence[_File], modality: Modality, encoder: ModelEncoder, cache: sqlite3.Connection
) -> list[Failure]:
    """Embed files into the cache, and return the failures of those that cannot be decoded."""
    source = raw_media(encoder.facts, [file.path for file in files])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # files that cannot be decoded are reported as failures
        good, vectors = _decodable(source, modality, encoder)
    if vectors is not None:
        content = vectors.numpy().astype("<f4")
        rows = [(files[n].key, vector.tobytes()) for n, vector in zip(good, content, strict=True)]
        cache.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)
    return [
        _failure(file, modality, source.failures[file.path])
        for n, file in enumerate(files)
        if n not in good and file.path in source.failures
    ]


def _decodable(
    source: MediaFiles | Waveforms, modality: Modality, encoder: ModelEncoder
) -> tuple[list[int], Tensor | None]:
    """Embed the files that can be decoded; return their positions and vectors."""
    good = list(range(len(source)))
    if isinstance(source, Waveforms):
        source.sounds(good)
    while good := [n for n in good if source.paths[n] not in source.failures]:
        before = len(source.failures)
        try:
            return good, encoder.embed(source.select(torch.tensor(good)), modality)
        except InputError:
            if len(source.failures) == before:
                raise  # not a failure of decoding
    return good, None


def _failure(file: _File, modality: Modality, message: str) -> Failure:
    reason, _, detail = message.partition(": ")
    return Failure(file.id, file.path, modality, reason, detail)
