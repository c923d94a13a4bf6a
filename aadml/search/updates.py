"""Update of an index from its source, in one transaction. Digests identify changed items."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.arrays import require_finite_embeddings
from aadml.comparison.features import Modality
from aadml.feature_extraction.jobs.failures import Failure
from aadml.search.best_moment import MomentVectors
from aadml.search.captions import Known
from aadml.search.encoders import IndexEncoder
from aadml.search.facts import CalibrationRecord, IndexFacts
from aadml.search.sources import IndexSource
from aadml.search.store import Entry, columns_of, write_items
from aadml.search.vector_maps import map_index

_PART = 1024  # items embedded and written at a time


@dataclass(frozen=True)
class Changes:
    """Result of building or updating an index.

    Attributes:
        items: number of clips in the index.
        new: number of clips that were added.
        changed: number of clips whose content, columns or captions changed.
        removed: number of clips that were removed.
        failures: files that could not be read.
        vectors: modality -> number of items that have a vector.
    """

    items: int
    new: int
    changed: int
    removed: int
    failures: tuple[Failure, ...]
    vectors: Mapping[Modality, int]


def write(
    begin: Callable[[], sqlite3.Connection],
    facts: IndexFacts,
    source: IndexSource,
    encoder: IndexEncoder,
    before: Known | None,
) -> tuple[IndexFacts, Changes]:
    """Update or create an index with the clips of a source; return the new facts and the counts of changes.

    Args:
        begin: called before the first change; returns the index in an open transaction.
        facts: facts of the index. A change increases the generation and marks the calibration as outdated.
        source: clips of the source.
        encoder: encoder of the index.
        before: items of the index; None for a new index.

    Raises:
        InputError: an impossible column name, an embedding that is not finite, or an index that cannot be written.
        sqlite3.DatabaseError: the index is damaged.
    """
    columns = columns_of(source.columns())
    digests = _digests(source, json.dumps(columns))
    names = [item.id for item in source.items]
    known = {} if before is None else before.digests
    wanted = [n for n, name in enumerate(names) if known.get(name) != digests[n]]
    removed = sorted(set(known) - set(names))
    if before is not None and (wanted or removed):
        outdated = CalibrationRecord(data=facts.calibration.data, precision=facts.calibration.precision)
        facts = replace(facts, state=facts.state.next(), calibration=outdated)
    if before is None or wanted or removed:
        database = begin()
        write_items(database, facts, columns, removed, _entries(source, encoder, digests, wanted))
        map_index(database)
    clips = [n for n in wanted if source.items[n].caption is None]
    new = sum(names[n] not in known for n in clips)
    gone = len(removed) if before is None else len({*removed} - before.captions)
    counts = {m: len(some.rows) for m, some in source.present.items()}
    items = sum(item.caption is None for item in source.items)
    return facts, Changes(items, new, len(clips) - new, gone, source.failures, counts)


def _digests(source: IndexSource, columns: str) -> list[bytes]:
    """Return a SHA-256 digest of the attributes and features of each item, and of the SQL types of all columns.

    The digest of a clip includes the features of its captions. Features over time are recorded only as present.
    """
    digests = [hashlib.sha256(columns.encode()) for _ in source.items]
    for digest, item in zip(digests, source.items, strict=True):
        content = [item.id, item.split, item.label, sorted(item.media.items()), sorted(item.columns.items())]
        digest.update(json.dumps(content).encode())
    clips = source.clips()
    for modality, some in source.present.items():
        values = some.features.numpy()
        for row, place in enumerate(some.rows):
            if source.items[place].caption is not None:
                digests[clips[place]].update(values[row].tobytes())
            if some.timeline is not None:
                digests[place].update(b"moments")
            digests[place].update(modality.encode() + values[row].tobytes())
    return [digest.digest() for digest in digests]


def _entries(
    source: IndexSource, encoder: IndexEncoder, digests: Sequence[bytes], wanted: Sequence[int]
) -> Iterator[Entry]:
    """Yield the items at the positions `wanted` with their vectors, which are computed in parts."""
    places = {m: np.full(len(source.items), -1, dtype=np.int64) for m in source.present}
    for modality, some in source.present.items():
        places[modality][some.rows] = np.arange(len(some.rows))
    for begin in range(0, len(wanted), _PART):
        part = np.asarray(wanted[begin : begin + _PART])
        vectors: list[dict[Modality, NDArray[np.float32]]] = [{} for _ in part]
        for modality, some in source.present.items():
            rows = places[modality][part]
            has = np.flatnonzero(rows >= 0)
            if len(has):
                features = some.features[torch.from_numpy(rows[has])]
                embedded = features if source.embedded else encoder.embed(features, modality)
                names = [source.items[n].id for n in part[has]]
                finite = require_finite_embeddings(embedded, modality, names).numpy()
                for place, vector in zip(has, finite, strict=True):
                    vectors[place][modality] = vector
        for n, by_modality in zip(part, vectors, strict=True):
            moments = _moments(source, encoder, source.items[n].id, {m: places[m][n] for m in by_modality})
            yield Entry(source.items[n], digests[n], by_modality, moments)


def _moments(
    source: IndexSource, encoder: IndexEncoder, name: str, rows: Mapping[Modality, int]
) -> dict[Modality, MomentVectors]:
    """Embed the features over time of an item, each interval like a clip."""
    moments = {}
    for modality, row in rows.items():
        timeline = source.present[modality].timeline
        if timeline is not None and timeline.times is not None:
            stretch = slice(int(timeline.offsets[row]), int(timeline.offsets[row + 1]))
            vectors = encoder.embed(torch.from_numpy(timeline.values[stretch]), modality)
            times = timeline.times[stretch]
            names = [f"{name} at {time:g} s" for time in times]
            moments[modality] = MomentVectors(times, require_finite_embeddings(vectors, modality, names).numpy())
    return moments
