"""A small index of three clips, and readers of indexes."""

import itertools
from contextlib import closing
from dataclasses import replace

import numpy as np

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import Timeline
from aadml.search.facts import IndexFacts, PlainRecord, SourceRecord, StateRecord
from aadml.search.filters import matching
from aadml.search.items import items_of, vectors_of
from aadml.search.store import Entry, Item, connect, reading, write_items, writing

COLUMNS = {"speaker": "TEXT", "year": "NUMERIC"}
FACTS = IndexFacts(
    SourceRecord("x"), PlainRecord(features={}, dimensions={}, scaling={}), StateRecord(1, "cosine")
)  # fmt: skip


def entry(name, value=0.0, *, label="dog", speaker="ann", year="1999", media=None):
    vector = np.full(3, value, dtype=np.float32)
    item = Item(name, media or {"audio": f"{name}.wav"}, "test", label, {"speaker": speaker, "year": year})
    return Entry(item, f"{name}{value}".encode(), {"audio": vector})


def create(path, facts, columns, entries):
    with writing(path, is_new=True) as database:
        write_items(database, facts, columns, (), entries)


def change(path, facts, columns, removed, entries):
    with writing(path) as database:
        write_items(database, facts, columns, removed, entries)


def read(path):
    with closing(connect(path)) as database, reading(database, path):
        found = vectors_of(database, "audio")
        items = [] if found is None else list(items_of(database, found[0].tolist()))
        return [item.id for item in items], None if found is None else found[1][:, 0].tolist()


def matching_ids(path, where, parameters=(), **seconds):
    with closing(connect(path)) as database, reading(database, path):
        return [item.id for item in items_of(database, matching(database, where, parameters, **seconds).tolist())]


def with_timeline(seed=0):
    """Clips whose features are the means of one to six stretches of sound."""
    made = synthetic(classes=3, train=40, valid=20, test=30, dimensions=(6, 8), difficulty=0.3)
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 7, len(made.ids))
    lengths[0] = 1
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.repeat(made.features["audio"], lengths, axis=0) + generator.normal(size=(offsets[-1], 6))
    means = np.stack([values[a:b].mean(0) for a, b in itertools.pairwise(offsets)])
    times = np.concatenate([0.96 * np.arange(length) for length in lengths])
    timeline = Timeline(values.astype(np.float32), offsets.astype(np.int64), times)
    features = {**made.features, "audio": means.astype(np.float32)}
    return replace(made, features=features, sequences={"audio": timeline})
