"""Zero every block of 512 bytes of a 64 kB feature file in turn, and read the file: each reading must end in time.

python scripts/soak/hdf5.py > docs/lab/soak/hdf5.md
"""

import argparse
import os
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError

BLOCK = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64_000, help="bytes of the file, roughly")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.h5"
        write_features(whole, content(options.size))
        healthy = read_features(whole)
        answers: Counter[str] = Counter()
        seconds: list[float] = []
        for offset in range(0, whole.stat().st_size, BLOCK):
            begin = time.monotonic()
            answers[answer(whole, offset, healthy)] += 1
            seconds.append(time.monotonic() - begin)
        report(whole.stat().st_size, answers, seconds)


def content(size: int) -> FeatureFile:
    """Return a feature file of about `size` bytes, most of which are features."""
    generator, width = np.random.default_rng(0), 96
    n = max(3, (size - 12_000) // (8 * width) // 3 * 3)
    values = {name: generator.normal(size=(n, width)).astype(np.float32) for name in ("audio", "visual")}
    return FeatureFile(
        features=values,
        labels=np.arange(n) % 3,
        ids=tuple(f"clip {number}" for number in range(n)),
        splits=("train", "valid", "test") * (n // 3),
        class_names=("a", "b", "c"),
        provenance={name: {"extractor": "none"} for name in values},
        columns={"speaker": tuple("xyz" * (n // 3))},
    )


def answer(whole: Path, offset: int, healthy: FeatureFile) -> str:
    """Zero a block, read the file, and return the outcome."""
    damaged = bytearray(whole.read_bytes())
    damaged[offset : offset + BLOCK] = bytes(len(damaged[offset : offset + BLOCK]))
    path = whole.with_name(f"{offset}.h5")
    path.write_bytes(damaged)
    try:
        found = read_features(path)
    except InputError as error:
        line = str(error)
        assert "\n" not in line, line
        return "refused: kept the reader busy" if "processor time" in line else "refused: damaged or contradicting"
    finally:
        path.unlink()
    same = all(np.array_equal(found.features[name], values) for name, values in healthy.features.items())
    if same and found.ids == healthy.ids and np.array_equal(found.labels, healthy.labels):
        return "read, unchanged"
    return "read, with zeros among its numbers or texts"


def report(size: int, answers: Counter[str], seconds: list[float]) -> None:
    looked = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    read = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print("# A zeroed block at every 512-byte offset of a feature file\n")
    print(f"A file of {size:,} bytes, {len(seconds)} blocks, each read once with that block zeroed.\n")
    print("| answer | files |\n| --- | --- |")
    for name, count in answers.most_common():
        print(f"| {name} | {count} |")
    print(f"\nSlowest answer {max(seconds):.1f} s, median {sorted(seconds)[len(seconds) // 2]:.2f} s (wall clock).")
    print(f"{len(os.sched_getaffinity(0))} processors; the load was {os.getloadavg()[0]:.0f} at the end.")
    print(f"Highest memory: {looked:.0f} MiB in the process that looks first, {read:.0f} MiB in the one that reads.")


if __name__ == "__main__":
    main()
