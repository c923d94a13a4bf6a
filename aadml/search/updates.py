"""The difference between a source and an index: found by digests, embedded part by part, written in one transaction."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.json_values import JsonObject, typed
from aadml.feature_extraction.jobs.failures import Failure
from aadml.search.best_moment import MomentVectors
from aadml.search.encoders import IndexEncoder
from aadml.search.fit_calibration import CALIBRATION, outdated
from aadml.search.sources import IndexSource
from aadml.search.store import Entry, change, columns_of, create

_PART = 1024  # items embedded and written at a time


@dataclass(frozen=True)
class Changes:
    """What a build or an update did.

    Attributes:
        items: in the index now.
        new: clips that were not there.
        changed: clips that are others now.
        removed: clips that are gone.
        failures: files that could not be read.
        vectors: modality -> items that have a vector of it.
    """

    items: int
    new: int
    changed: int
    removed: int
    failures: tuple[Failure, ...]
    vectors: Mapping[Modality, int]


def write(
    path: Path,
    origin: JsonObject,
    source: IndexSource,
    encoder: IndexEncoder,
    before: Mapping[str, bytes],
    meta: Mapping[str, JsonObject] | None,
) -> Changes:
    """Compare a source with what is there, embed what is other, and write the difference.

    Args:
        path: of the index.
        origin: what is written down of the source.
        source: the clips that shall be there.
        encoder: that embeds them.
        before: id -> digest of what is there.
        meta: facts of the index; None where there is none yet.
    """
    columns = columns_of(source.columns())
    digests = _digests(source, json.dumps(columns))
    names = [item.id for item in source.items]
    wanted = [n for n, name in enumerate(names) if before.get(name) != digests[n]]
    removed = sorted(set(before) - set(names))
    entries = _entries(source, encoder, digests, wanted)
    if meta is None:
        facts: dict[str, JsonObject] = {
            "source": origin,
            "encoder": encoder.to_json(path.parent),
            "state": {"generation": 1, "similarity": encoder.similarity},
        }
        create(path, facts, columns, entries)
    elif wanted or removed:
        state = {**meta["state"], "generation": typed(meta["state"], "generation", int) + 1}
        change(path, {"source": origin, "state": state, CALIBRATION: outdated(meta)}, columns, removed, entries)
    new = sum(names[n] not in before for n in wanted)
    counts = {m: len(one.rows) for m, one in source.present.items()}
    return Changes(len(names), new, len(wanted) - new, len(removed), source.failures, counts)


def _digests(source: IndexSource, columns: str) -> list[bytes]:
    """Name what each item is made from."""
    found = [hashlib.sha256(columns.encode()) for _ in source.items]
    for digest, item in zip(found, source.items, strict=True):
        said = [item.id, item.split, item.label, sorted(item.media.items()), sorted(item.columns.items())]
        digest.update(json.dumps(said).encode())
    for modality, one in source.present.items():
        values = one.features.numpy()
        if one.timeline is not None:
            for place in one.rows:
                found[place].update(b"moments")
        for row, place in enumerate(one.rows):
            found[place].update(modality.encode())
            found[place].update(values[row].tobytes())
    return [digest.digest() for digest in found]


def _entries(
    source: IndexSource, encoder: IndexEncoder, digests: Sequence[bytes], wanted: Sequence[int]
) -> Iterator[Entry]:
    """Embed items part by part."""
    places = {m: np.full(len(source.items), -1, dtype=np.int64) for m in source.present}
    for modality, one in source.present.items():
        places[modality][one.rows] = np.arange(len(one.rows))
    for begin in range(0, len(wanted), _PART):
        part = np.asarray(wanted[begin : begin + _PART])
        vectors: list[dict[Modality, NDArray[np.float32]]] = [{} for _ in part]
        for modality, one in source.present.items():
            rows = places[modality][part]
            has = np.flatnonzero(rows >= 0)
            if len(has):
                features = one.features[torch.from_numpy(rows[has])]
                embedded = (features if source.embedded else encoder.embed(features, modality)).numpy()
                for place, vector in zip(has, embedded, strict=True):
                    vectors[place][modality] = vector
        for n, own in zip(part, vectors, strict=True):
            yield Entry(source.items[n], digests[n], own, _moments(source, encoder, {m: places[m][n] for m in own}))


def _moments(source: IndexSource, encoder: IndexEncoder, rows: Mapping[Modality, int]) -> dict[Modality, MomentVectors]:
    """Embed what was kept over time of an item, each description as a clip."""
    found = {}
    for modality, row in rows.items():
        timeline = source.present[modality].timeline
        if timeline is not None:
            own = slice(int(timeline.offsets[row]), int(timeline.offsets[row + 1]))
            assert timeline.times is not None
            vectors = encoder.embed(torch.from_numpy(timeline.values[own]), modality).numpy()
            found[modality] = MomentVectors(timeline.times[own], vectors)
    return found
