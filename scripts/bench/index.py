"""How long exact search takes, beside a plain NumPy product and argpartition of the same vectors in the same run.

Usage: scripts/bench/index.py [ITEMS...] prints, for each number of items of 128 dimensions, the median over the same
questions: of the best ten of all items, and of those that meet a filter; the filter's first time beside.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from aadml.search.facts import IndexFacts, PlainRecord, SourceRecord, StateRecord, near
from aadml.search.index import Index
from aadml.search.store import Entry, Item, create

QUESTIONS, DIMENSION, K = 30, 128, 10


def timed(work):
    begin = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - begin)


def written(path, count):
    """Write an index of random vectors, a tenth of them of each class."""
    generator = np.random.default_rng(0)
    features = {m: {"extractor": "random", "parameters": {}} for m in ("audio",)}
    scaling = {"shift.audio": [0.0] * DIMENSION, "scale.audio": [1.0] * DIMENSION}
    facts = IndexFacts(
        SourceRecord(near("none", path.parent)),
        PlainRecord(features=features, dimensions={"audio": DIMENSION}, scaling=scaling),
        StateRecord(1, "cosine"),
    )
    entries = (
        Entry(Item(f"clip {n:08}", {}, "", f"class {n % 10}"), b"", {"audio": generator.normal(size=DIMENSION)})
        for n in range(count)
    )
    create(path, facts, {}, entries)


def plain(vectors, query):
    scores = vectors @ query
    best = np.argpartition(scores, -K)[-K:]
    return best[np.argsort(-scores[best])]


def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e6 for line in lines if line.startswith("VmRSS:"))


def measure(count):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        making = timed(lambda: written(path, count)) / 1000
        before = resident()
        begin = time.perf_counter()
        index = Index(path)
        opening = time.perf_counter() - begin
        own = index._state.galleries["audio"][1].vectors.numpy()
        index.nearest({"audio": torch.ones(1, DIMENSION)}, "audio")  # prepares lengths
        memory = resident() - before
        unit = own / np.linalg.norm(own, axis=1, keepdims=True)
        queries = np.random.default_rng(1).normal(size=(QUESTIONS, DIMENSION)).astype(np.float32)
        where = "label = 'class 3'"
        first = timed(lambda: index.nearest({"audio": torch.ones(1, DIMENSION)}, "audio", where=where))
        times = {"plain": [], "search": [], "filtered": []}
        for query in queries:
            asked = {"audio": torch.from_numpy(query[None])}
            times["plain"].append(timed(lambda: plain(unit, query)))  # noqa: B023
            times["search"].append(timed(lambda: index.nearest(asked, "audio", k=K)))  # noqa: B023
            times["filtered"].append(timed(lambda: index.nearest(asked, "audio", k=K, where=where)))  # noqa: B023
        median = {name: statistics.median(values) for name, values in times.items()}
        print(
            f"| {count:,} | {median['plain']:.1f} | {median['search']:.1f} | {median['filtered']:.1f} | {first:.0f} "
            f"| {opening:.1f} | {memory:.2f} | {making:.0f} | {path.stat().st_size / 1e9:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    print(
        "| items | NumPy, ms | search, ms | filtered, ms | a filter's first time, ms | opening, s | memory, GB "
        "| writing, s | file, GB |\n|---|---|---|---|---|---|---|---|---|"
    )
    for number in map(int, sys.argv[1:] or (100_000, 1_000_000)):
        measure(number)
