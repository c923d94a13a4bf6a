"""Speed and memory of exact MAP, compared with common implementations, in one run.

Usage: python scripts/bench/evaluation.py [--rounds 3] [--peer-queries 500] [--large-queries 2048]
          [--large-dimensions 10 1024] [--json FILE]

Every implementation receives the same vectors, computes its scores and ranks the whole gallery. On a busy machine, CPU
seconds (of all threads together) are more reliable than seconds. Peers that loop over queries are timed on the first
--peer-queries queries of each direction, and the time is scaled up (0: all queries). NumPy's argsort gets the number of
rows of a block that is fastest for it. The large case runs in a child process, so that its peak memory is measured
separately; with --large-queries 0 all queries are scored.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from memory import peak_bytes

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.relevance import Grouped
from aadml.retrieval.directions import score_direction
from aadml.retrieval.evaluation import evaluate, mean_average_precision
from aadml.retrieval.scores import score_source

NUMPY, NUMPY_ROWS = "NumPy argsort, no ties", (1, 32, 128, 512)
DIRECTIONS = (("audio", "visual"), ("visual", "audio"))


def data(count, classes, dimension, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (count,), generator=generator)
    centers = torch.randn(classes, dimension, generator=generator)
    vectors = {m: centers[labels] + torch.randn(count, dimension, generator=generator) for m in ("audio", "visual")}
    return Embeddings(vectors, labels, tuple(map(str, range(count))))


def ours(given, queries):
    return [mean_average_precision(given, direction) for direction in DIRECTIONS]


def ours_everything(given, queries):
    return [result.map for result in evaluate(given).directions]


def ours_codes(given, queries):
    return ours(replace(given, similarity="hamming"), queries)


def unit(given, direction):
    q, g = (torch.nn.functional.normalize(given.vectors[m]) for m in direction)
    return q, g, given.labels


def scikit_learn(given, queries):
    from sklearn.metrics import average_precision_score

    result = []
    for direction in DIRECTIONS:
        q, g, labels = unit(given, direction)
        scores, same = (q[:queries] @ g.T).numpy(), (labels[:queries, None] == labels).numpy()
        result.append(np.mean([average_precision_score(r, s) for r, s in zip(same, scores, strict=True)]))
    return result


def trec_eval(given, queries):
    import pytrec_eval

    result = []
    for direction in DIRECTIONS:
        q, g, labels = unit(given, direction)
        scores, same = (q[:queries] @ g.T).tolist(), (labels[:queries, None] == labels).int().tolist()
        names = [str(i) for i in range(len(g))]
        total = 0.0
        for row, own in zip(scores, same, strict=True):
            judge = pytrec_eval.RelevanceEvaluator({"q": dict(zip(names, own, strict=True))}, {"map"})
            total += judge.evaluate({"q": dict(zip(names, row, strict=True))})["q"]["map"]
        result.append(total / len(scores))
    return result


def torch_argsort(given, queries):
    result = []
    for direction in DIRECTIONS:
        q, g, labels = unit(given, direction)
        place, found = torch.arange(1, len(g) + 1), []
        for start in range(0, queries, 512):
            part = slice(start, min(start + 512, queries))
            order = (q[part] @ g.T).argsort(dim=1, descending=True)
            same = labels[order] == labels[part, None]
            precision = same.cumsum(1) / place
            found.append((precision * same).sum(1) / same.sum(1))
        result.append(float(torch.cat(found).mean()))
    return result


def numpy_argsort(given, queries, rows):
    """Compute both MAPs by argsort of blocks of `rows` queries."""
    result = []
    for direction in DIRECTIONS:
        q, g, labels = (one.numpy() for one in unit(given, direction))
        place, found = np.arange(1, len(g) + 1), []
        for start in range(0, queries, rows):
            part = slice(start, min(start + rows, queries))
            order = np.argsort(-(q[part] @ g.T), axis=1)
            same = labels[order] == labels[part, None]
            precision = same.cumsum(1) / place
            found.append((precision * same).sum(1) / same.sum(1))
        result.append(float(np.concatenate(found).mean()))
    return result


def best_rows(given):
    """Return the number of queries of a block with which NumPy's argsort takes the least processor time."""
    times = dict.fromkeys(NUMPY_ROWS, math.inf)
    for _ in range(2):
        for rows in times:
            begun = time.process_time()
            numpy_argsort(given, len(given), rows)
            times[rows] = min(times[rows], time.process_time() - begun)
    return min(times, key=times.get)


WAYS = {
    "aadml, MAP": (ours, False),
    "aadml, every metric with bounds and curves": (ours_everything, False),
    "aadml, MAP of 10-bit codes, all tied": (ours_codes, False),
    "torch argsort, no ties": (torch_argsort, False),
    NUMPY: (numpy_argsort, False),
    "scikit-learn, query by query": (scikit_learn, True),
    "pytrec_eval, query by query": (trec_eval, True),
}


def speed(count, classes, rounds, peer_queries):
    given = data(count, classes, 10)
    block = best_rows(given)
    ways = WAYS | {NUMPY: (partial(numpy_argsort, rows=block), False)}
    seconds, work, values = {name: [] for name in ways}, {name: [] for name in ways}, {}
    for way, _ in ways.values():
        way(given if way is not trec_eval and way is not scikit_learn else data(50, classes, 10), 50)  # warm up
    for _ in range(rounds):
        for name, (way, looped) in ways.items():
            queries = min(peer_queries or count, count) if looped else count
            start, begun = time.perf_counter(), time.process_time()
            values[name] = way(given, queries)
            seconds[name].append((time.perf_counter() - start) * count / queries)
            work[name].append((time.process_time() - begun) * count / queries)
    best, least = (statistics.median(times["aadml, MAP"]) for times in (seconds, work))
    print(
        f"\n{count} x {count}, {classes} classes, both directions, median of {rounds} rounds; argsort of {block} rows"
    )
    print(f"{'way':45} {'seconds':>9} {'times ours':>11} {'CPU seconds':>12} {'times ours':>11}  MAP")
    rows = []
    for name, (_, looped) in ways.items():
        own, spent = (statistics.median(times[name]) for times in (seconds, work))
        scaled = " (scaled up)" if looped and 0 < peer_queries < count else ""
        figures = ", ".join(f"{value:.6f}" for value in values[name])
        print(f"{name:45} {own:9.3f} {own / best:11.1f} {spent:12.3f} {spent / least:11.1f}  {figures}{scaled}")
        rows.append(
            {
                "way": name,
                "seconds": own,
                "ratio": own / best,
                "cpu_seconds": spent,
                "cpu_ratio": spent / least,
                "scaled": bool(scaled),
            }
        )
    return rows


def large_child(count, queries, dimension):
    """Score one direction with the first `queries` queries; print seconds and the peak memory of this process."""
    bare = peak_bytes()
    given = data(count, 100, dimension)
    source = score_source(given.vectors["audio"][:queries], given.vectors["visual"])
    labels = given.labels.numpy()
    start = time.perf_counter()
    result = score_direction(source, Grouped(labels[:queries], labels))
    seconds = time.perf_counter() - start
    peak = peak_bytes()
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, "bare_bytes": bare, "map": result.map}))


def large(count, queries, dimension):
    queries = queries or count
    arguments = [sys.executable, __file__, "--child", str(count), str(queries), str(dimension)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    whole = found["seconds"] * count / queries
    said = "measured whole" if queries == count else f"scaled up from {queries} queries"
    print(
        f"\n{count} x {count}, d = {dimension}, one direction, every metric: {whole:.0f} s ({said}); "
        f"peak memory {found['peak_bytes'] / 2**30:.2f} GiB, {found['bare_bytes'] / 2**30:.2f} GiB before the data"
    )
    return found | {"count": count, "queries": queries, "dimension": dimension, "seconds_whole": whole}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-queries", type=int, default=500)
    parser.add_argument("--large-queries", type=int, default=2048)
    parser.add_argument("--large-dimensions", nargs="*", type=int, default=[10, 1024])
    parser.add_argument("--json", help="write the figures there")
    parser.add_argument("--child", nargs=3, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        large_child(*arguments.child)
        return
    load = os.getloadavg()[0]
    print(f"{torch.get_num_threads()} threads, {os.cpu_count()} cores, load average {load:.1f} at the start")
    figures = {"load": load, "speed": speed(5621, 10, arguments.rounds, arguments.peer_queries)}
    figures["large"] = [large(100_000, arguments.large_queries, dimension) for dimension in arguments.large_dimensions]
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(figures, file, indent=2)


if __name__ == "__main__":
    main()
