"""Truncate, flip and blank media at random, a thousand times, and extract them: every clip is a row or has a reason.

    python scripts/soak/media.py --media FOLDER > docs/lab/soak/media.md

Each damaged file is extracted by a complete job, once for sound and once for pictures. Rows and failures must account
for every clip, another process must decode equal rows, and no process may remain.
"""

import argparse
import csv
import multiprocessing
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aadml.feature_extraction.backbones import Extractor, extractor
from aadml.feature_extraction.engines.decoding_workers import DecodingSettings, Task, Wanted, decode_all
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.jobs.extract import ExtractionOutcome, execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.media.inputs import Limits

DAMAGES = ("whole", "cut", "flipped", "blanked", "cut and flipped")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--media", required=True, type=Path, help="a folder of media, searched to its depth")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        damages = damaged(options.media, folder, options.count, options.seed)
        print(f"# {options.count} damaged media\n")
        print(f"Seed {options.seed}; every file is one of {sources(options.media)} real ones, damaged.")
        for modality, kind in (("audio", "log-mel"), ("visual", "hog-color")):
            one, begin = extractor(kind, modality), time.monotonic()
            output = folder / f"{modality}.h5"
            manifest = read_manifest(folder / "manifest.csv")
            outcome = execute(ExtractionPlan(manifest, output, [one], workers=2, time_limit=options.time_limit))
            seconds = time.monotonic() - begin
            report(modality, one, outcome, read_features(output), damages, folder, seconds)
        print(f"\nProcesses left at the end: {len(multiprocessing.active_children())}.")


def sources(folder: Path) -> int:
    return sum(1 for _ in media(folder))


def media(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*")) if file.is_file() and file.suffix not in (".md", ".csv", ".txt"))


def damaged(source: Path, folder: Path, count: int, seed: int) -> dict[str, str]:
    """Write the damaged files and their manifest; return the damage of each."""
    chance, files = random.Random(seed), [file for file in media(source) if file.stat().st_size < 2_000_000]
    damages = {}
    with (folder / "manifest.csv").open("w", newline="") as table:
        writer = csv.writer(table)
        writer.writerow(["id", "media", "label", "split"])
        for number in range(count):
            kind, file = DAMAGES[number % len(DAMAGES)], chance.choice(files)
            name = f"{number:04d}{file.suffix}"
            (folder / name).write_bytes(hurt(bytearray(file.read_bytes()), kind, chance))
            writer.writerow([name, name, kind, "train"])
            damages[name] = kind
    return damages


def hurt(content: bytearray, kind: str, chance: random.Random) -> bytes:
    if "cut" in kind:
        content = content[: chance.randrange(len(content) + 1)]
    for _ in range(chance.randint(1, 40) if "flipped" in kind and content else 0):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    if kind == "blanked" and content:
        start, length = chance.randrange(len(content)), chance.randint(1, 4096)
        content[start : start + length] = bytes(len(content[start : start + length]))
    return bytes(content)


def report(
    modality: str,
    one: Extractor,
    outcome: ExtractionOutcome,
    found: FeatureFile,
    damages: dict[str, str],
    folder: Path,
    seconds: float,
) -> None:
    """Check that every clip is accounted for and decoded alike again; print the counts by damage."""
    failed = {failure.id: failure for failure in outcome.failures}
    assert set(found.ids) | set(failed) == set(damages), "a clip is unaccounted for"
    assert not set(found.ids) & set(failed), "a clip is both a row and a failure"
    alike = again(one, modality, found, folder)
    remarked = len({name for name, _ in outcome.warnings})
    crashes = [failure for failure in outcome.failures if failure.reason == "crashed"]
    print(f"\n## {modality} ({one.name}), {seconds:.0f} s\n")
    counts = Counter((kind, failed[name].reason if name in failed else "ok") for name, kind in damages.items())
    reasons = sorted({reason for _, reason in counts}, key=lambda reason: (reason != "ok", reason))
    print(f"| damage | {' | '.join(reasons)} |\n| --- |{' --- |' * len(reasons)}")
    for kind in DAMAGES:
        print(f"| {kind} | {' | '.join(str(counts[kind, reason]) for reason in reasons)} |")
    print(f"\n{len(found.ids)} rows, {alike} of them equal to the last bit when decoded again by another process;")
    hangs = sum(failure.reason == "timeout" for failure in outcome.failures)
    print(f"{remarked} with a remark; {len(crashes)} crashes, {hangs} hangs.")
    for failure in crashes[:5]:
        print(f"- {failure.id} ({damages[failure.id]}): {failure.detail}")


def again(one: Extractor, modality: str, found: FeatureFile, folder: Path) -> int:
    """Decode every row again, in another order and another process; return the number of equal rows."""
    wanted = {modality: Wanted(one.inputs, one.prepare, one.minimum_seconds, one.pool)}
    settings = DecodingSettings(wanted, 600, Limits())
    tasks = (Task(number, {modality: str(folder / found.ids[number])}) for number in reversed(range(len(found.ids))))
    alike = 0
    for task, (part,) in decode_all(tasks, settings, clips=len(found.ids), workers=1):
        alike += part.prepared is not None and np.array_equal(part.prepared, found.features[modality][task.number])
    return alike


if __name__ == "__main__":
    main()
