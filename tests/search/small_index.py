"""A small index of three clips, and readers of indexes."""

from contextlib import closing

import numpy as np

from aadml.search.filters import matching
from aadml.search.items import items_of, vectors_of
from aadml.search.store import Entry, Item, connect, reading

COLUMNS = {"speaker": "TEXT", "year": "NUMERIC"}


def entry(name, value=0.0, *, label="dog", speaker="ann", year="1999", media=None):
    vector = np.full(3, value, dtype=np.float32)
    item = Item(name, media or {"audio": f"{name}.wav"}, "test", label, {"speaker": speaker, "year": year})
    return Entry(item, f"{name}{value}".encode(), {"audio": vector})


def read(path):
    with closing(connect(path)) as database, reading(database, path):
        found = vectors_of(database, "audio")
        items = [] if found is None else list(items_of(database, found[0].tolist()))
        return [item.id for item in items], None if found is None else found[1][:, 0].tolist()


def matching_ids(path, where, parameters=(), **seconds):
    with closing(connect(path)) as database, reading(database, path):
        return [item.id for item in items_of(database, matching(database, where, parameters, **seconds).tolist())]
