"""Speed and memory of the exact neighbor graph, compared with `mm + topk` and faiss (IndexFlatIP), in one run.

Usage: python scripts/bench/graph.py [--rounds 3] [--k 3] [--threads 0] [--small] [--json FILE]

Every case runs in a separate child process, whose peak memory is printed. All implementations alternate on the same
vectors: ours, faiss if it is installed, and in labeled cases `mm + topk` of unit vectors class by class. "plain" is our
processor time over that of `mm + topk` (minimum over the rounds), and "same" is the share of common neighbors. The
ratio to faiss is that of the medians. "cpu" is processor time and its ratio, which a busy machine changes less (with
several threads, it includes their waiting). faiss does not restrict neighbors by class; its same-class result is a loop
over one index per class. "agree" is the share of neighbors that are the same rows. "off" is the largest amount by which
the similarity of one of our neighbors is below that of faiss at the same rank (0 up to rounding if our search is
exact).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from memory import peak_bytes

from aadml.proxies.graph import neighbors, random_neighbors

Search = Callable[[], np.ndarray]

# name: items, dimensions, classes (0: label-free), cluster spread (None: no clusters), whether faiss is timed too
CASES: dict[str, tuple[int, int, int, float | None, bool]] = {
    "VEGAS, label space, same class": (22_482, 10, 10, 0.3, True),
    "VEGAS, 16-d, same class": (22_482, 16, 10, None, True),
    "VEGAS, audio features, same class": (22_482, 128, 10, None, True),
    "VEGAS, visual features, same class": (22_482, 1024, 10, None, True),
    "VEGAS, collapsed to one vector, same class": (22_482, 10, 10, 0.0, False),
    "100,000 x 16, label-free": (100_000, 16, 0, None, True),
    "100,000 x 16 in clusters, label-free": (100_000, 16, 0, 0.3, True),
    "1,000,000 x 16, 100 classes": (1_000_000, 16, 100, None, False),
}


def data(count: int, dimension: int, classes: int, spread: float | None) -> tuple[torch.Tensor, torch.Tensor | None]:
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(count, dimension, generator=generator)
    labels = torch.randint(max(classes, 10), (count,), generator=generator)
    if spread is not None:
        vectors = torch.eye(max(classes, 10), dimension)[labels] + spread * vectors
    return vectors, labels if classes else None


def faiss_search(vectors: torch.Tensor, labels: torch.Tensor | None, k: int) -> Search | None:
    """Return a search for k other items of the same class by one flat index per class; the item itself is removed."""
    try:
        import faiss
    except ImportError:
        return None
    unit = torch.nn.functional.normalize(vectors, dim=1).numpy()

    def search() -> np.ndarray:
        found = np.full((len(unit), k), -1, np.int64)
        parts = [np.arange(len(unit))] if labels is None else [np.flatnonzero(labels == c) for c in labels.unique()]
        for rows in parts:
            index = faiss.IndexFlatIP(unit.shape[1])
            index.add(unit[rows])
            nearest = index.search(unit[rows], k + 1)[1]
            keep = nearest != np.arange(len(rows))[:, None]
            keep[keep.all(1), -1] = False  # a duplicate was ranked before the item itself
            found[rows] = rows[nearest[keep].reshape(-1, k)]
        return found

    return search


def plain_search(vectors: torch.Tensor, labels: torch.Tensor, k: int) -> Search:
    """Return a search for k other items of the same class in plain torch: products of unit vectors, then `topk`."""

    def search() -> np.ndarray:
        unit = torch.nn.functional.normalize(vectors, dim=1)
        found = torch.full((len(unit), k), -1)
        for label in labels.unique():
            rows = (labels == label).nonzero()[:, 0]
            found[rows] = rows[(unit[rows] @ unit[rows].T).fill_diagonal_(-2).topk(k, 1).indices]
        return found.numpy()

    return search


def timed(call: Callable[[], object]) -> tuple[Any, float, float]:
    """Return the result of a call, its wall seconds and its processor seconds."""
    clock, processor = time.perf_counter(), time.process_time()
    given = call()
    return given, time.perf_counter() - clock, time.process_time() - processor


def shortfall(vectors: torch.Tensor, ours: np.ndarray, theirs: np.ndarray) -> float:
    unit = torch.nn.functional.normalize(vectors.double(), dim=1).numpy()
    worst = 0.0
    for rows in np.array_split(np.arange(len(unit)), max(1, len(unit) // 2000)):
        own, peer = ((unit[rows, None] * unit[found[rows]]).sum(2) for found in (ours, theirs))
        worst = max(worst, float((np.sort(peer, 1) - np.sort(own, 1)).max()))
    return worst


def measured(name: str, k: int, rounds: int) -> dict[str, object]:
    count, dimension, classes, spread, peer = CASES[name]
    vectors, labels = data(count, dimension, classes, spread)
    before = memory()
    search = faiss_search(vectors, labels, k) if peer else None
    ours = [timed(lambda: neighbors(vectors, k=k, labels=labels))]
    peak = memory()
    theirs = [timed(search)] if search else []
    plain = plain_search(vectors, labels, k) if labels is not None and count < 1_000_000 else None
    bare = [timed(plain)] if plain else []
    for _ in range(rounds - 1 if count < 1_000_000 else 0):
        ours.append(timed(lambda: neighbors(vectors, k=k, labels=labels)))
        theirs += [timed(search)] if search else []
        bare += [timed(plain)] if plain else []
    lists, clock, processor = ours[-1][0], *medians(ours)
    generator = torch.Generator().manual_seed(0)
    result: dict[str, object] = {
        "case": name,
        "seconds": clock,
        "cpu_seconds": processor,
        "peak_gib": peak,
        "before_gib": before,
        "random_seconds": timed(lambda: random_neighbors(count, k=k, labels=labels, generator=generator))[1],
    }
    if bare:
        result["plain_ratio"] = min(one[2] for one in ours) / min(one[2] for one in bare)
        result["same_lists"] = float((bare[-1][0] == lists.index.numpy()).mean())
    if theirs:
        found, peer_clock, peer_processor = theirs[-1][0], *medians(theirs)
        result |= {"faiss_seconds": peer_clock, "ratio": clock / peer_clock, "cpu_ratio": processor / peer_processor}
        result["agree"] = float((found == lists.index.numpy()).mean())
        result["off"] = shortfall(vectors, lists.index.numpy(), found)
    return result


def medians(times: list[tuple[Any, float, float]]) -> tuple[float, float]:
    return statistics.median(t[1] for t in times), statistics.median(t[2] for t in times)


def memory() -> float:
    """Return the peak memory of this process in GiB."""
    return peak_bytes() / 2**30


def in_child(name: str, arguments: argparse.Namespace) -> dict[str, object]:
    command = [sys.executable, __file__, "--case", name, "--k", str(arguments.k), "--rounds", str(arguments.rounds)]
    threads = {"OMP_NUM_THREADS": str(arguments.threads)} if arguments.threads else {}
    done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"case": name, "failed": done.stderr.strip().splitlines()[-1:]}
    result: dict[str, object] = json.loads(done.stdout)
    return result


def line(result: dict[str, object]) -> str:
    if "failed" in result:
        return f"{result['case']:<44} failed: {result['failed']}"
    shown = f"{result['case']:<44} {result['seconds']:>9.3f} {result['cpu_seconds']:>9.3f} {result['peak_gib']:>6.2f}"
    shown += f" {result['plain_ratio']:>7.2f} {result['same_lists']:>9.5f}" if "plain_ratio" in result else " " * 18
    if "ratio" in result:
        shown += f" {result['faiss_seconds']:>9.3f} {result['ratio']:>7.2f} {result['cpu_ratio']:>7.2f}"
        shown += f" {result['agree']:>9.5f} {result['off']:>9.1e}"
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0, help="0: as the machine has it")
    parser.add_argument("--small", action="store_true", help="leave out the cases above 100,000 items")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(measured(arguments.case, arguments.k, arguments.rounds)))
        return
    names = [name for name, case in CASES.items() if case[0] <= 100_000 or not arguments.small]
    print(f"k = {arguments.k}; {torch.get_num_threads()} threads; load {os.getloadavg()[0]:.1f}; seconds, GiB")
    columns = f"{'ours':>9} {'cpu':>9} {'peak':>6} {'plain':>7} {'same':>9} {'faiss':>9} {'ratio':>7} {'cpu':>7}"
    print(f"{'case':<44} {columns} {'agree':>9} {'off':>9}")
    results = []
    for name in names:
        results.append(in_child(name, arguments))
        print(line(results[-1]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
