"""Cost of verifying checksums when feature files and indexes are read from the file cache.

Usage: scripts/bench/checksums.py [--rounds 9] [--sizes 2 22 210 1000] [--items 20000] prints a table. Each row is
timed alternately with and without verification in one process. Times are processor time of all threads together. The
ratio is that of the minimum times, followed by that of the medians. Without verification, HDF5 opens the file itself.
"""

import argparse
import os
import statistics
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import numpy as np

import aadml
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.foreign import hdf5
from aadml.search import checksums as index_checksums

WIDTHS = {"audio": 128, "visual": 1024}
CLASSES = 10


def write(path, megabytes, seed=0):
    """Write random features of about `megabytes` MB."""
    n = round(megabytes * 1e6 / (4 * sum(WIDTHS.values())))
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % CLASSES
    centers = {m: generator.standard_normal((CLASSES, width), dtype=np.float32) for m, width in WIDTHS.items()}
    features = {m: 3 * c[labels] + generator.standard_normal((n, WIDTHS[m]), np.float32) for m, c in centers.items()}
    splits = tuple(("train", "valid", "test")[min(i * 10 // n // 3, 2)] for i in range(n))
    ids, names = tuple(f"{i:07d}" for i in range(n)), tuple(map(str, range(CLASSES)))
    write_features(path, FeatureFile(features, labels, ids, splits, names))


def unverified():
    """Return a context in which no checksum is verified."""
    return mock.patch.multiple(hdf5, has_checksums=lambda _: False, CHECKSUMS="none")


def unverified_index():
    """Return a context in which no index is verified."""
    return mock.patch.object(index_checksums, "has_checksums", return_value=False)


def compare(name, work, without, rounds):
    """Print a row: processor milliseconds of `work` with and without verification, timed alternately."""
    times = {"with": [], "without": []}
    for number in range(rounds + 1):  # the first round fills caches
        for kind in times:
            with without() if kind == "without" else nullcontext():
                begin = time.process_time()
                work()
                times[kind] += [1000 * (time.process_time() - begin)] if number else []
    least, median = ({k: f(v) for k, v in times.items()} for f in (min, statistics.median))
    share = [100 * (figures["with"] / figures["without"] - 1) for figures in (least, median)]
    print(
        f"| {name} | {least['without']:.1f}, {median['without']:.1f} | {least['with']:.1f}, {median['with']:.1f} "
        f"| {share[0]:+.0f} % | {share[1]:+.0f} % |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", type=float, nargs="*", default=[2, 22, 210, 1000])
    parser.add_argument("--items", type=int, default=20_000)
    options = parser.parse_args()
    print(f"{options.rounds} rounds, load {os.getloadavg()[0]:.0f}; processor milliseconds: least, median\n")
    print("| work | without | with | least | median |\n| --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "features.h5"
        for size in options.sizes:
            write(path, size)
            compare(f"read, {size:g} MB", lambda: read_features(path), unverified, options.rounds)
        write(path, 22)
        model = aadml.fit(path, method="cca", runs=Path(folder) / "runs")
        compare("evaluate, 22 MB", lambda: aadml.evaluate(model, data=path), unverified, options.rounds)
        embedded = Path(folder) / "embeddings.h5"
        aadml.embed(model, path, embedded)
        compare("evaluate embeddings", lambda: aadml.evaluate(embeddings=embedded), unverified, options.rounds)
        if options.items:
            write(path, options.items * 4 * sum(WIDTHS.values()) / 1e6)
            aadml.index(path, Path(folder) / "index")
            work = lambda: aadml.Index(Path(folder) / "index").close()  # noqa: E731
            compare(f"open an index of {options.items:,} items", work, unverified_index, options.rounds)


if __name__ == "__main__":
    main()
