"""Sound files for a model that listens to sound itself: embedded batch by batch, every batch kept at once."""

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

from aadml.data.waveforms import Waveforms
from aadml.search.encoders import Encoder
from aadml.search.sources import Present, Source, Work, listed, may_have
from feature_extraction.failures import Failure
from feature_extraction.file_content import content_of, stamp_of
from feature_extraction.ground.errors import InputError
from feature_extraction.manifest import Row

_BATCH = 16


@dataclass(frozen=True)
class _Sound:
    place: int
    id: str
    path: str
    key: str


def of_sounds(place: str | Path, index: Path, encoder: Encoder, work: Work) -> Source:
    """Embed the sounds of a manifest or a folder; what was embedded before is known again by its content.

    Raises:
        InputError: no sound that can be read.
    """
    manifest, items = listed(place, index)
    name = json.dumps(encoder.to_json(index.parent), sort_keys=True)
    sounds, failures = _found(manifest.rows, name)
    with closing(sqlite3.connect(work.folder / "sounds.sqlite", isolation_level=None)) as kept:
        kept.execute("PRAGMA journal_mode = WAL")
        kept.execute("CREATE TABLE IF NOT EXISTS sound (key TEXT PRIMARY KEY, content BLOB NOT NULL)")
        known = {row[0] for row in kept.execute("SELECT key FROM sound")}
        missing = list({sound.key: sound for sound in sounds if sound.key not in known}.values())
        for begin in range(0, len(missing), _BATCH):
            failures += _embed(missing[begin : begin + _BATCH], encoder, kept)
            if work.progress is not None:
                done = len(sounds) - len(missing) + min(begin + _BATCH, len(missing))
                work.progress(f"audio of {len(sounds)}", done, len(failures))
        values = dict(kept.execute("SELECT key, content FROM sound"))
    there = [sound for sound in sounds if sound.key in values]
    if not there:
        raise InputError(f"{place}: none of {len(manifest.rows)} clips has sound that can be read")
    vectors = torch.from_numpy(np.stack([np.frombuffer(values[sound.key], dtype="<f4") for sound in there]))
    rows = np.arange(len(there), dtype=np.int64)
    kept_items = tuple(items[sound.place] for sound in there)
    return Source(kept_items, {"audio": Present(rows, vectors)}, failures=tuple(failures), embedded=True)


def _found(rows: Sequence[Row], encoder: str) -> tuple[list[_Sound], list[Failure]]:
    """Name each sound file by its content and by what embeds it."""
    sounds, failures = [], []
    for place, row in enumerate(rows):
        path = row.media["audio"]
        if not may_have(path, "audio"):
            continue
        stamp = stamp_of(path)
        if stamp is None:
            failures.append(Failure(row.id, path, "audio", "missing", "no such file"))
            continue
        key = hashlib.sha256(f"{encoder} {content_of(path, stamp)}".encode()).hexdigest()
        sounds.append(_Sound(place, row.id, path, key))
    return sounds, failures


def _embed(sounds: Sequence[_Sound], encoder: Encoder, kept: sqlite3.Connection) -> list[Failure]:
    """Embed sounds and keep their vectors; those that cannot be decoded are left out beforehand."""
    source = Waveforms(tuple(sound.path for sound in sounds), torch.arange(len(sounds)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be decoded is told as a failure
        decoded = source.sounds(range(len(sounds)))
    good = [n for n, sound in enumerate(decoded) if sound is not None]
    if good:
        vectors = encoder.embed(source.select(torch.tensor(good)), "audio").numpy().astype("<f4")
        rows = [(sounds[n].key, vector.tobytes()) for n, vector in zip(good, vectors, strict=True)]
        kept.executemany("INSERT OR REPLACE INTO sound VALUES (?, ?)", rows)
    return [_failure(sounds[n], source.failures[sounds[n].path]) for n, sound in enumerate(decoded) if sound is None]


def _failure(sound: _Sound, said: str) -> Failure:
    reason, _, detail = said.partition(": ")
    return Failure(sound.id, sound.path, "audio", reason, detail)
