"""Exact search and calibration compared with NumPy: ratios of processor time, alternating in one process.

Usage: scripts/bench/index.py [--items 100000 1000000] [--build 8000 64000] [--rounds 9]

Items have 128 dimensions and cosine as similarity. The NumPy versions are a product and `argpartition` of unit vectors,
a gather of the rows that meet a filter, the same product and partition on a cached copy of these rows, and for 1,000
queries products and partitions in blocks of 64 queries. Set OMP_NUM_THREADS=1.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.retrieval.exact_search import Gallery
from aadml.search.build_index import build

DIMENSION, K, QUERIES, SHARE = 128, 10, 1000, 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--build", type=int, nargs="*", default=[8000, 64_000])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(
        "| work | ours, ms: least, median | NumPy, ms: least, median | ratio of least, of medians |\n|---|---|---|---|"
    )
    for count in options.items:
        searches(count, options.rounds)
    begin = time.process_time()
    import sklearn.linear_model  # noqa: F401

    print(f"| importing scikit-learn, once | {1000 * (time.process_time() - begin):.0f} | | |")
    for count in options.build:
        building(count)


def searches(count, rounds):
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((count, DIMENSION), dtype=np.float32)
    queries = generator.standard_normal((QUERIES, DIMENSION), dtype=np.float32)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = np.flatnonzero(generator.random(count) < SHARE)
    gallery, copy = Gallery(torch.from_numpy(vectors), "cosine"), unit[kept]
    gallery.best(torch.ones(1, DIMENSION), K)  # computes lengths
    warm = gallery.only(kept)
    one, each = torch.from_numpy(queries[:1]), torch.from_numpy(queries[:, None])
    works = {
        "one query": (lambda: gallery.best(one, K), lambda: plain(unit, queries[:1])),
        "filter, first": (lambda: gallery.only(kept).best(one, K), lambda: vectors[kept]),
        "filter, warm": (lambda: warm.best(one, K), lambda: plain(copy, queries[:1])),
        "1,000 queries": (lambda: list(gallery.best_of_each(each, K)), lambda: blocked(unit, queries)),
    }
    for name, (ours, peer) in works.items():
        few = max(2, rounds // 4) if name == "1,000 queries" else rounds
        pairs = [(milliseconds(ours), milliseconds(peer)) for _ in range(few)]
        a, b = zip(*pairs, strict=True)
        least, median = (min(a), min(b)), (statistics.median(a), statistics.median(b))
        print(
            f"| {name}, {count:,} | {least[0]:.2f}, {median[0]:.2f} | {least[1]:.2f}, {median[1]:.2f} | "
            f"{least[0] / least[1]:.2f}, {median[0] / median[1]:.2f} |",
            flush=True,
        )


def building(count):
    """Build an index of audio and visual clips of ten classes, 1,000 of them for validation."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 10, count)
    means = generator.standard_normal((10, DIMENSION))
    features = {
        m: (means[labels] + 2 * generator.standard_normal((count, DIMENSION))).astype(np.float32)
        for m in ("audio", "visual")
    }
    content = FeatureFile(
        features=features, labels=labels, ids=tuple(f"clip {n}" for n in range(count)),
        splits=tuple("valid" if n % (count // 1000) == 0 else "train" for n in range(count)),
        class_names=tuple(f"class {n}" for n in range(10)), provenance={m: {"extractor": "random"} for m in features},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "features.h5"
        write_features(source, content)
        whole = milliseconds(lambda: build(source, Path(folder) / "calibrated"))
        with patch("aadml.search.build_index.calibrate_index"):
            bare = milliseconds(lambda: build(source, Path(folder) / "bare"))
        print(f"| building, {count:,} | {whole:.0f}, of which calibration {whole - bare:.0f} | | |", flush=True)


def plain(vectors, queries):
    scores = queries @ vectors.T
    best = np.argpartition(scores, -K, axis=1)[:, -K:]
    return np.take_along_axis(best, np.argsort(-np.take_along_axis(scores, best, 1), axis=1), 1)


def blocked(vectors, queries):
    return [plain(vectors, queries[start : start + 64]) for start in range(0, len(queries), 64)]


def milliseconds(work):
    begin = time.process_time()
    work()
    return 1000 * (time.process_time() - begin)


if __name__ == "__main__":
    main()
