"""Extract pictures with ICC profiles in many runs, then pictures together with files that kill their decoder.

    python scripts/soak/pictures.py > docs/lab/soak/pictures.md

The first part must lose no picture and write the same bytes in every run. The second part causes crashes by an external
extractor (`planted:planted`), whose `prepare` kills its process with SIGSEGV: at once for red pictures, and at the next
clip after blue pictures. Only the red pictures may be reported as failures.
"""

import argparse
import csv
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from PIL import Image

import aadml
from aadml.feature_extraction.feature_file.reading import read_features

GOOD, RED, BLUE = "good", "that kill their process", "that kill it at the next clip"
PLANTED = '''
import os
import signal

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.media import Frames

damages = []


def prepare(frames):
    """Return the mean color of frames (t, height, width, 3), unless a planted crash comes first."""
    color = tuple(frames[0, 0, 0])
    if damages or color == (255, 0, 0):
        os.kill(os.getpid(), signal.SIGSEGV)
    if color == (0, 0, 255):
        damages.append(color)
    return frames.mean(axis=(1, 2), dtype="float32")


def planted() -> Extractor:
    """Describe pictures by their mean color, and crash at marked ones."""
    return Extractor(
        name="planted:planted", modality="visual", dimension=3, inputs=Frames(), parameters={}, prepare=prepare
    )
'''


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="pictures with ICC profiles")
    parser.add_argument("--runs", type=int, default=10, help="jobs over these pictures")
    parser.add_argument("--good", type=int, default=300, help="pictures beside those that crash")
    parser.add_argument("--crashes", type=int, default=100, help="pictures that kill their process")
    parser.add_argument("--damages", type=int, default=20, help="pictures after which the next clip kills the process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"# Pictures\n\nSeed {options.seed}, commit {commit.stdout.strip() or 'unknown'}.\n")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(profiles(folder / "profiles", options.count, options.runs, options.seed, options.workers))
        counts = {GOOD: options.good, RED: options.crashes, BLUE: options.damages}
        print(crashes(folder / "crashes", counts, options.seed, options.workers))


def profiles(folder: Path, count: int, runs: int, seed: int, workers: int) -> str:
    """Extract pictures with ICC profiles several times; return the numbers of lost pictures and of different files."""
    write(folder, dict.fromkeys(map(str, range(count)), GOOD), seed)
    begin, lost, contents = time.monotonic(), 0, set()
    for number in range(runs):
        outcome = aadml.extract(folder / "manifest.csv", folder / f"{number}.h5", visual="hog-color", workers=workers)
        lost += len(outcome.failures)
        contents.add((folder / f"{number}.h5").read_bytes())
    assert not lost, "pictures were lost"
    assert len(contents) == 1, "runs differ"
    seconds = time.monotonic() - begin
    return f"{count:,} pictures with ICC profiles, {runs} runs, {lost} lost, {len(contents)} content; {seconds:.0f} s."


def crashes(folder: Path, counts: Mapping[str, int], seed: int, workers: int) -> str:
    """Extract pictures together with those that crash; return the failures of each kind."""
    kinds = [kind for kind, count in counts.items() for _ in range(count)]
    named = {str(number): kind for number, kind in enumerate(np.random.default_rng(seed).permutation(kinds).tolist())}
    write(folder, named, seed)
    (folder / "planted.py").write_text(PLANTED)
    begin = time.monotonic()
    outcome = aadml.extract(folder / "manifest.csv", folder / "f.h5", visual="planted:planted", workers=workers)
    seconds = time.monotonic() - begin
    charged = {failure.id: f"{failure.reason}: {failure.detail}" for failure in outcome.failures}
    content = read_features(folder / "f.h5")
    for number, values in zip(content.ids, content.features["visual"], strict=True):
        with Image.open(folder / f"{number}.png") as picture:
            expected = np.asarray(picture).mean(axis=(0, 1), dtype=np.float32)
        assert np.array_equal(values, expected), f"{number} is described as another picture"
    for number, kind in named.items():
        assert (number in charged) == (kind == RED), f"{number} ({kind}): {charged.get(number, 'not charged')}"
    lines = ["| pictures | described | charged |", "| --- | --- | --- |"]
    for kind, count in counts.items():
        reasons = Counter(charged[number] for number in charged if named[number] == kind)
        text = ", ".join(f"{times} {reason}" for reason, times in reasons.items()) or "0"
        lines.append(f"| {count} {kind} | {count - reasons.total()} | {text} |")
    return "\n".join(["", *lines, "", f"{seconds:.0f} s, {workers} workers."])


def write(folder: Path, kinds: Mapping[str, str], seed: int) -> None:
    """Write a picture with an ICC profile for each name, and their manifest."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(seed)
    with (folder / "manifest.csv").open("w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["id", "media", "label", "split"])
        for number, (name, kind) in enumerate(kinds.items()):
            pixels = chance.integers(0, 255, (*chance.integers(8, 96, 2), 3), dtype=np.uint8)  # no channel is full
            if kind != GOOD:
                pixels[0, 0] = (255, 0, 0) if kind == RED else (0, 0, 255)
            profile = chance.bytes(int(chance.integers(200, 20_000)))
            Image.fromarray(pixels).save(folder / f"{name}.png", icc_profile=profile)
            writer.writerow([name, f"{name}.png", number % 5, "train"])


if __name__ == "__main__":
    main()
