"""Inspect, train and score many clips by commands, each in a separate process: private memory and processor seconds.

python scripts/bench/million.py FOLDER [--clips 1000000]     needs 4.7 GB in FOLDER for a million clips
python scripts/bench/million.py FOLDER --clips 200000 --index   also builds, updates, kills and searches an index

Features and runs of an earlier call are reused. Private memory is the largest observed RssAnon of the process and its
children together. Pages mapped from the file, which the system can reclaim, are in a separate column.
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from aadml import Index
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.rows import FeatureRows, ModalityRows
from aadml.feature_extraction.feature_file.writing import write_rows

CLASSES, LATENT, STEP = 100, 24, 4096
DIMENSIONS = {"audio": 128, "visual": 1024}
TRAINING = ("--loss", "proxy-nca", "--epochs", "1", "--set", "network.hidden=[64]", "--set", "training.batch=4000")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=500, help="of the training clips, which are the gallery")
    parser.add_argument("--index", action="store_true")
    options = parser.parse_args()
    features, runs = options.folder / "features.h5", options.folder / "runs"
    if not features.is_file():
        write(features, options.clips)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    print(f"{options.clips} clips, {features.stat().st_size / 1e9:.1f} GB, seed 0, commit {commit.strip()}\n")
    print("| work | own memory, GiB | mapped, GiB | processor seconds | a clip, us | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    if not any(runs.glob("*/manifest.json")):
        measure("inspect", ["inspect", str(features)], options.clips)
        train = ["train", "--data", str(features), "--runs", str(runs), *TRAINING]
        run = measure("train an epoch, score 5,000 clips", train, options.clips).splitlines()[-1]
        sample = ["evaluate", run, "--split", "train", "--queries", str(options.queries)]
        measure(f"evaluate {options.queries} queries against the training clips", sample, options.clips)
    if options.index:
        index(options.folder, str(next(runs.glob("*/manifest.json")).parent), options.clips)


def index(folder: Path, run: str, n: int) -> None:
    """Build an index, update it after a change of 1 % of the clips, search it, and build another index after a kill."""
    source, changed, place = folder / "source.h5", folder / "changed.h5", folder / "clips.index"
    shutil.copy(folder / "features.h5", source)
    place.unlink(missing_ok=True)
    began = time.monotonic()
    words = ["index", str(source), "-o", str(place), "--model", run]
    measure("build an index", words, n)
    took = time.monotonic() - began
    write(changed, n, changed=n // 100)
    changed.replace(source)
    measure(f"update {n // 100} changed clips", words, n)
    measure("update nothing", words, n)
    searches(place, n // 2)
    words[3] = str(folder / "killed.index")
    process = subprocess.Popen([sys.executable, "-m", "aadml", *words], stderr=subprocess.DEVNULL)
    time.sleep(took / 2)
    process.kill()
    process.wait()
    measure("build an index again after a kill halfway", words, n)


def timed(words: list[str]) -> None:
    """Run `aadml index`, and print the processor seconds of its steps."""
    from aadml.cli import main as call
    from aadml.search import build_index

    def wrapped(step: Callable[..., Any], *positional: Any, **named: Any) -> Any:
        begin = time.process_time()
        try:
            return step(*positional, **named)
        finally:
            print(f"STEP {step.__name__.strip('_')} {time.process_time() - begin:.1f}", flush=True)

    with ExitStack() as stack:
        for name in ("_written", "_encoder", "_of_features", "write", "calibrate_index"):
            step = partial(wrapped, getattr(build_index, name))
            stack.enter_context(patch.object(build_index, name, step))
        sys.argv = ["aadml", *words]
        call()


def searches(place: Path, begin_at: int) -> None:
    """Print the processor time of searches by consecutive clips: the first search, then the median of ten others."""
    with Index(place) as opened:
        for name, where in {
            "all clips": None,
            "half of the clips, by a condition": "split = 'train' AND number % 2 = 0",
        }.items():
            seconds = []
            for number in range(11):
                begin = time.process_time()
                opened.like(begin_at + number, "audio", to="visual", where=where)
                seconds.append(time.process_time() - begin)
            print(
                f"| search among {name}: first, then median | | | {seconds[0]:.3f}, "
                f"{statistics.median(seconds[1:]):.3f} | | |",
                flush=True,
            )


def write(path: Path, n: int, changed: int = 0) -> None:
    """Generate clips of a hundred classes block by block; 5,000 are validation clips and 5,000 are test clips.

    Args:
        path: feature file to write.
        n: number of clips.
        changed: number of first clips whose features are scaled by 1.01.
    """
    generator = np.random.default_rng(0)
    splits = np.array(["train"] * (n - 10_000) + ["valid"] * 5000 + ["test"] * 5000)[generator.permutation(n)]
    labels = generator.integers(0, CLASSES, n)
    shape = {name: (n, width) for name, width in DIMENSIONS.items()}
    rows = {
        name: ModalityRows(FeatureRows(shape[name], np.dtype(np.float32), partial(drawn, labels, name, changed)))
        for name in shape
    }
    content = FeatureFile(
        features={},
        labels=labels,
        ids=tuple(f"clip-{number:07d}" for number in range(n)),
        splits=tuple(splits.tolist()),
        class_names=tuple(f"class {number}" for number in range(CLASSES)),
        provenance={name: {"extractor": "synthetic"} for name in rows},
    )
    write_rows(path, content, rows)


def drawn(labels: NDArray[np.int64], name: str, changed: int) -> Iterator[NDArray[np.float32]]:
    """Yield the features of one modality in blocks; repeated calls yield equal features."""
    width = DIMENSIONS[name]
    generator = np.random.default_rng(width)
    means = generator.standard_normal((CLASSES, LATENT), dtype=np.float32)
    mixing = generator.standard_normal((LATENT, width), dtype=np.float32) / np.float32(np.sqrt(LATENT))
    for start in range(0, len(labels), STEP):
        own = labels[start : start + STEP]
        points = means[own] + np.float32(1.3) * generator.standard_normal((len(own), LATENT), dtype=np.float32)
        noise = np.float32(0.2) * generator.standard_normal((len(own), width), dtype=np.float32)
        scale = np.where(np.arange(start, start + len(own)) < changed, np.float32(1.01), np.float32(1))
        yield (np.tanh(points / 2) @ mixing + noise) * scale[:, None]


def measure(what: str, words: list[str], clips: int) -> str:
    """Run a command and print a row of its costs and of the steps of `index`; return the output."""
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    program = [__file__, "timed"] if words[0] == "index" else ["-m", "aadml"]
    command = [sys.executable, *program, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    own, mapped = 0, 0
    while process.poll() is None:
        found = [memory(one) for one in family(process.pid)]
        own, mapped = max(own, sum(a for a, _ in found)), max(mapped, sum(b for _, b in found))
        time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"| {what} | {own / 2**20:.2f} | {mapped / 2**20:.2f} | {seconds:.1f} | {1e6 * seconds / clips:.0f} "
        f"| {time.monotonic() - began:.0f} |",
        flush=True,
    )
    assert process.stdout is not None
    printed = process.stdout.read()
    for line in printed.splitlines():
        if line.startswith("STEP "):
            _, step, took = line.split()
            print(f"| - {step} | | | {took} | {1e6 * float(took) / clips:.0f} | |", flush=True)
    return printed


def family(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    yield pid
    try:
        children = [
            child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()
        ]
    except OSError:
        return
    for child in children:
        yield from family(int(child))


def memory(pid: int) -> tuple[int, int]:
    """Return the KiB that are private to a process, and those that are mapped from files."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    found = dict(line.split(":", 1) for line in lines)
    own, mapped = (int(found.get(key, "0 kB").split()[0]) for key in ("RssAnon", "RssFile"))
    return own, mapped


if __name__ == "__main__":
    timed(sys.argv[2:]) if sys.argv[1:2] == ["timed"] else main()
