"""Extract real media on an idle machine, and again while twenty processes run: the bytes must be equal.

    python scripts/soak/load.py --media FOLDER > docs/lab/soak/load.md

Limits on decoding count processor time, so that waiting may not lose a clip.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from media import media

from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.jobs.extract import ExtractionOutcome, execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.manifest import Manifest, read_manifest

BUSY = "while True: pass"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--media", required=True, type=Path, help="a folder of media, searched to its depth")
    parser.add_argument("--count", type=int, default=20, help="of files, the smallest of the folder")
    parser.add_argument("--load", type=int, default=20, help="of busy processes")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds of processor time to decode a clip")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest = listed(options.media, folder, options.count)
        alone = run(manifest, folder / "alone", options.time_limit)
        with busy(options.load):
            loaded = run(manifest, folder / "loaded", options.time_limit)
        report(options, alone, loaded)
        for made in sorted(folder.glob("alone *")):
            other = made.with_name(made.name.replace("alone", "loaded"))
            if made.is_file():
                assert made.read_bytes() == other.read_bytes(), f"{made.name} differs"
        print("\nFeature files and lists of failures are equal to the byte.")


def listed(source: Path, folder: Path, count: int) -> Manifest:
    files = sorted(media(source), key=lambda file: (file.stat().st_size, file.name))[:count]
    with (folder / "manifest.csv").open("w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["id", "media", "label", "split"])
        writer.writerows([file.name, file.resolve(), file.parent.name, "train"] for file in files)
    return read_manifest(folder / "manifest.csv")


def run(manifest: Manifest, output: Path, limit: float) -> tuple[list[ExtractionOutcome], float, float]:
    """Extract sound and pictures; return the outcomes, the wall seconds, and the load at the end."""
    begin = time.monotonic()
    extractors = [extractor("log-mel", "audio"), extractor("hog-color", "visual")]
    plans = [
        ExtractionPlan(manifest, Path(f"{output} {one.modality}.h5"), [one], workers=2, time_limit=limit)
        for one in extractors
    ]
    done = [execute(plan) for plan in plans]
    return done, time.monotonic() - begin, os.getloadavg()[0]


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep the machine busy with `count` processes at the priority of this process."""
    processes = [subprocess.Popen([sys.executable, "-S", "-c", BUSY]) for _ in range(count)]
    try:
        time.sleep(2.0)
        assert all(process.poll() is None for process in processes)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def report(options: argparse.Namespace, alone: tuple, loaded: tuple) -> None:
    cores = len(os.sched_getaffinity(0))
    print(f"# {options.count} media under a load of {options.load} processes\n")
    print(f"{cores} processors; decoding a clip may take {options.time_limit:g} s of processor time.\n")
    print("| job | seconds | load at its end | audio | visual |\n| --- | --- | --- | --- | --- |")
    for name, (outcomes, seconds, load) in (("without the load", alone), ("with it", loaded)):
        print(f"| {name} | {seconds:.0f} | {load:.1f} | {' | '.join(map(counts, outcomes))} |")


def counts(outcome: ExtractionOutcome) -> str:
    reasons = Counter(failure.reason for failure in outcome.failures)
    ok = outcome.clips - len(outcome.failures)
    return ", ".join([f"{ok} ok", *(f"{count} {reason}" for reason, count in sorted(reasons.items()))])


if __name__ == "__main__":
    main()
