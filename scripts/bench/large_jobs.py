"""Large extraction jobs: seconds and peak memory of reading a manifest, filling the ledger, resuming and assembling.

python scripts/bench/large_jobs.py --clips 200000 --rows 10 --dimensions 128 256 --sequence
python scripts/bench/large_jobs.py --clips 1000000 --rows 1 --dimensions 32

No media are decoded: a loop that generates the features of each clip replaces the decoding processes, so that all other
costs are measured. Each stage is a separate process; its peak is VmHWM.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.engines import decoding_workers
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, DecodingSettings
from aadml.feature_extraction.jobs.extract import execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan, fingerprint
from aadml.feature_extraction.manifest import read_manifest
from aadml.feature_extraction.media import Sound

MODALITIES = ("audio", "visual")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clips", type=int, default=200_000)
    parser.add_argument("--rows", type=int, default=10, help="of the description of a clip over time")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[128], help="of audio, and of visual if given")
    parser.add_argument("--sequence", action="store_true", help="keep the descriptions over time")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="where the files are made; by default a temporary folder")
    options = parser.parse_args()
    if options.stage:
        STAGES[options.stage](options)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        write_manifest(Path(name), options.clips)
        for stage in STAGES:
            run(stage, Path(name))
        sizes = {path.name: path.stat().st_size for path in sorted(Path(name).rglob("*")) if path.is_file()}
        print(", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in sizes.items()))


def run(stage: str, folder: Path) -> None:
    command = [sys.executable, __file__, *sys.argv[1:], "--folder", str(folder), "--stage", stage]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{stage}: {done.stderr[-2000:]}")
    print(f"{stage:<8} {time.monotonic() - begin:>7.1f} s on the clock: {done.stdout.strip()}", flush=True)


def write_manifest(folder: Path, clips: int) -> None:
    (folder / "clip.mp4").write_bytes(b"made up")
    with (folder / "manifest.csv").open("w") as table:
        table.write("id,media,label,split,caption\n")
        for number in range(clips):
            split = ("train", "train", "valid", "test")[number % 4]
            table.write(f"clip_{number:07d},clip.mp4,{number % 309},{split},a sound of {number}\n")


def parse(options: argparse.Namespace) -> None:
    """Read the manifest."""
    begin = time.process_time()
    rows = read_manifest(options.folder / "manifest.csv").rows
    say(rows=len(rows), processor_seconds=time.process_time() - begin)


def plan(options: argparse.Namespace) -> None:
    """Plan a shard, with all its notes."""
    manifest, begin = read_manifest(options.folder / "manifest.csv"), time.process_time()
    planned = ExtractionPlan(
        manifest, options.folder / "f.h5", extractors(options), shard=(0, 2), sequence=options.sequence
    )
    say(rows=len(planned.rows), settings=len(planned.settings), processor_seconds=time.process_time() - begin)
    begin = time.process_time()
    say(fingerprint=fingerprint(manifest)[:8], processor_seconds=time.process_time() - begin)


def extract(options: argparse.Namespace) -> None:
    """Run the job, from an empty or from a full ledger."""
    decoding_workers.decode_all = made_up(options)  # type: ignore[assignment]
    begin = time.process_time()
    manifest = read_manifest(options.folder / "manifest.csv")
    output, sequence = options.folder / "f.h5", options.sequence
    outcome = execute(ExtractionPlan(manifest, output, extractors(options), workers=1, sequence=sequence))
    say(
        clips=outcome.clips,
        reused=outcome.reused,
        failures=len(outcome.failures),
        processor_seconds=time.process_time() - begin,
    )


STAGES = {"parse": parse, "plan": plan, "extract": extract, "resume": extract}


def extractors(options: argparse.Namespace) -> tuple[Extractor, ...]:
    return tuple(
        Extractor(f"made up {modality}", modality, dimension, Sound(8000), {}, np.asarray)  # type: ignore[arg-type]
        for modality, dimension in zip(MODALITIES, options.dimensions, strict=False)
    )


def made_up(options: argparse.Namespace) -> object:
    """Return a replacement of the decoding processes: features whose values depend on the clip."""
    generator = np.random.default_rng(0)
    base = {
        modality: generator.normal(size=(options.rows, dimension)).astype(np.float32)
        for modality, dimension in zip(MODALITIES, options.dimensions, strict=False)
    }

    def decode_all(tasks: Iterator, settings: DecodingSettings, **_: object) -> Iterator:
        for task in tasks:
            parts = []
            for modality in task.media:
                values = base[modality] + np.float32(task.number % 1000)
                pool = settings.wanted[modality].pool
                parts.append(DecodedPart(modality, prepared=values if pool is None else pool(values), seconds=10.0))
            yield task, parts

    return decode_all


def say(**found: object) -> None:
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    found = {name: round(value, 2) if isinstance(value, float) else value for name, value in found.items()}
    print(json.dumps({**found, "peak_mib": round(peak)}), end=" ")


if __name__ == "__main__":
    main()
