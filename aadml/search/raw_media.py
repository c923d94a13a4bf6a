"""Embedding of media files in batches, by a model that also decodes the files. The vectors are cached."""

import hashlib
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.ground.atomic import separate_hard_links
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.file_content import content_of, stamp_of
from aadml.feature_extraction.jobs.failures import ABSENT, Failure
from aadml.feature_extraction.manifest import Row, is_text
from aadml.model.media import raw_media
from aadml.search.checksums import check_schema, matrix_of
from aadml.search.encoders import ModelEncoder, embed_media
from aadml.search.sources import IndexSource, Present, Work, listed, may_have, readable

_BATCH, _TEXTS = 16, 256

_Content = TypeVar("_Content")


def of_raw_media(place: str | Path, index: Path, encoder: ModelEncoder, work: Work) -> IndexSource:
    """Embed the media of a manifest or a folder.

    A file or text is not embedded again if the cache has the vector that the model computed from the same content.

    Raises:
        InputError: no media, an invalid manifest, a model that is only in memory, or no clip that can be read.
    """
    manifest, items = listed(place, index)
    name = encoder.record(index.parent).digest
    present: dict[Modality, Present] = {}
    failures: list[Failure] = []
    with _vector_cache(work.folder / "vectors.sqlite") as cache:
        for modality in (m for m in ("audio", "visual") if m in encoder.facts.modalities):
            keys, missing = _keys(manifest.rows, modality, name)
            failed = _embed_missing(manifest.rows, keys, modality, encoder, cache, work)
            failures += [*missing, *(failure for failure in failed if failure.reason != ABSENT[modality])]
            vectors = dict(cache.execute("SELECT key, content FROM vector"))
            embedded = [n for n, key in keys.items() if key in vectors]
            if embedded:
                values = matrix_of([vectors[keys[n]] for n in embedded], modality)
                present[modality] = Present(np.asarray(embedded, dtype=np.int64), torch.from_numpy(values.copy()))
        source = IndexSource(items, present, failures=tuple(failures), embedded=True)
        source = _with_texts(source, manifest.rows, encoder, name, cache)
    return readable(source, place, work.on_note)


@contextmanager
def _vector_cache(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the cache of vectors, which is created if needed.

    Raises:
        InputError: the cache is damaged, cannot be written, or contains more than plain tables and indexes.
    """
    separate_hard_links(*(path.with_name(path.name + suffix) for suffix in ("", "-journal", "-wal", "-shm")))
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as cache:
            check_schema(cache)
            cache.execute("PRAGMA journal_mode = WAL")
            cache.execute("CREATE TABLE IF NOT EXISTS vector (key TEXT PRIMARY KEY, content BLOB NOT NULL)")
            yield cache
    except sqlite3.DatabaseError as error:
        raise DamagedFileError(
            f"{path} cannot be used as a cache of vectors ({error}); remove this file, or check its folder "
            "for free space and permissions"
        ) from error


def _with_texts(
    source: IndexSource, rows: Sequence[Row], encoder: ModelEncoder, name: str, cache: sqlite3.Connection
) -> IndexSource:
    """Return the source with the embedded texts of the rows of a manifest.

    Without texts, or with a model that does not embed text, the source is returned unchanged.
    """
    texts = [
        (n, words) for n, row in enumerate(rows) for name, words in row.media.items() if is_text(name) and words.strip()
    ]
    if not texts or "text" not in encoder.facts.modalities:
        return source
    places, words = zip(*texts, strict=True)
    keys = [_key(name, "text", text) for text in words]
    missing = _missing(cache, dict(zip(keys, words, strict=True)))
    for begin in range(0, len(missing), _TEXTS):
        new, batch = zip(*missing[begin : begin + _TEXTS], strict=True)
        _store(cache, new, embed_media(encoder, "text", batch, "text"))
    vectors = dict(cache.execute("SELECT key, content FROM vector"))
    values = matrix_of([vectors[key] for key in keys], "text")
    return source.with_texts(Texts(values.copy(), np.asarray(places, dtype=np.int64)))


def _key(encoder: str, modality: Modality, content: str) -> str:
    return hashlib.sha256(f"{encoder} {modality} {content}".encode()).hexdigest()


def _missing(cache: sqlite3.Connection, contents: Mapping[str, _Content]) -> list[tuple[str, _Content]]:
    """Return the keys without a vector in the cache, and their contents."""
    known = {row[0] for row in cache.execute("SELECT key FROM vector")}
    return [(key, content) for key, content in contents.items() if key not in known]


def _store(cache: sqlite3.Connection, keys: Sequence[str], vectors: Tensor) -> None:
    values = [(key, vector.tobytes()) for key, vector in zip(keys, vectors.numpy().astype("<f4"), strict=True)]
    cache.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", values)


def _keys(rows: Sequence[Row], modality: Modality, encoder: str) -> tuple[dict[int, str], list[Failure]]:
    """Return the cache keys of the files of a modality, by row number, and the failures of files without a key.

    A key is a checksum of the digest of the encoder, the modality, the content of the file and the segment. Files that
    are missing or cannot be read have no key.
    """
    keys, failures = {}, []
    for n, row in enumerate(rows):
        path = row.media[modality]
        if not may_have(path, modality):
            continue
        stamp = stamp_of(path)
        content = "" if stamp is None else row.segment.named(content_of(path, stamp))
        if content:
            keys[n] = _key(encoder, modality, content)
        else:
            detail = "the file does not exist" if stamp is None else "the file cannot be read"
            failures.append(Failure(row.id, path, modality, "missing", detail))
    return keys, failures


def _embed_missing(
    rows: Sequence[Row],
    keys: Mapping[int, str],
    modality: Modality,
    encoder: ModelEncoder,
    cache: sqlite3.Connection,
    work: Work,
) -> list[Failure]:
    """Embed the files missing from the cache; return the failures of decoding."""
    missing = _missing(cache, {key: rows[n] for n, key in keys.items()})
    failures: list[Failure] = []
    for begin in range(0, len(missing), _BATCH):
        batch = missing[begin : begin + _BATCH]
        paths, segments = zip(*((row.media[modality], row.segment) for _, row in batch), strict=True)
        source = raw_media(encoder.facts, paths, segments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # files that cannot be decoded are reported as failures
            good, vectors = _decodable(source, modality, encoder)
        if vectors is not None:
            _store(cache, [batch[n][0] for n in good], vectors)
        for number, (_, row) in enumerate(batch):
            if (name := source.name(number)) in source.failures:
                reason, _, detail = source.failures[name].partition(": ")
                failures.append(Failure(row.id, row.media[modality], modality, reason, detail))
        if work.progress is not None:
            done = len(keys) - len(missing) + min(begin + _BATCH, len(missing))
            work.progress(f"{modality} of {len(keys)}", done, len(failures))
    return failures


def _decodable(source: MediaFiles, modality: Modality, encoder: ModelEncoder) -> tuple[list[int], Tensor | None]:
    """Return positions and embeddings of the files that can be decoded ([] and None without such files)."""
    good = list(range(len(source)))
    if isinstance(source, Waveforms):
        source.decoded(good)
    while good := [n for n in good if source.name(n) not in source.failures]:
        before = len(source.failures)
        try:
            return good, encoder.embed(source.select(torch.tensor(good)), modality)
        except InputError:
            if len(source.failures) == before:
                raise  # the error has another cause than decoding
    return good, None
