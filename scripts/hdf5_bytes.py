"""Write every kind of HDF5 file twice under each of several versions of h5py, and compare the bytes.

python scripts/hdf5_bytes.py [VERSION ...]

Each version is installed into a throw-away folder in front of the packages of this environment. The exit code is 1 if a
file differs between two versions or between two writes, which are at least a second apart.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.14.0", "3.16.0")
INPUTS = (
    "sample-data clips --clips 40 --seconds 1",
    "extract clips/manifest.csv -o source.h5",
    "train --data source.h5 --method cca",
)
KINDS = {
    "extracted.h5": "extract clips/manifest.csv -o {out}/extracted.h5 --sequence",
    "merged.0-of-2.h5": "extract clips/manifest.csv -o {out}/merged.h5 --shard 0/2",
    "merged.1-of-2.h5": "extract clips/manifest.csv -o {out}/merged.h5 --shard 1/2",
    "merged.h5": "merge -o {out}/merged.h5",
    "divided.h5": "convert source.h5 {out}/divided.h5 --split random:0.5/0.2/0.3",
    "split_keys.h5": "convert synthetic:vegas {out}/split_keys.h5 --layout split-keys",
    "embeddings.h5": "embed runs/{run} source.h5 -o {out}/embeddings.h5",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION", help=f"default: {VERSIONS}")
    versions = parser.parse_args().versions
    hashes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for command in INPUTS:
            run("-m", "aadml", *command.split(), folder=folder)
        for version in versions:
            packages = install(version, folder / f"h5py-{version}")
            library = run("-c", "import h5py; print(h5py.version.hdf5_version)", folder=folder, packages=packages)
            print(f"h5py {version}, HDF5 {library}")
            for turn in (1, 2):
                for kind, content in written(folder, f"{version}-{turn}", packages).items():
                    hashes[kind][hashlib.sha256(content).hexdigest()] += 1
                time.sleep(1.1)  # times in HDF5 files are whole seconds
    for kind, counts in hashes.items():
        print(*(f"{kind:18} sha256 {value} in {count} writes" for value, count in counts.items()), sep="\n")
    different = [kind for kind, counts in hashes.items() if len(counts) > 1]
    print(f"{len(KINDS)} files, {2 * len(versions)} writes of each: {len(different)} differ", *different)
    return 1 if different else 0


def install(version: str, target: Path) -> Path:
    uv = Path(sys.executable).with_name("uv")
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--target", target, f"h5py=={version}"]
    subprocess.run(command, check=True)
    return target


def written(folder: Path, name: str, packages: Path) -> dict[str, bytes]:
    (model,) = (folder / "runs").iterdir()
    for command in KINDS.values():
        run("-m", "aadml", *command.format(out=name, run=model.name).split(), folder=folder, packages=packages)
    return {kind: (folder / name / kind).read_bytes() for kind in KINDS}


def run(*arguments: str, folder: Path, packages: Path | None = None) -> str:
    path = os.pathsep.join(str(entry) for entry in (packages, ROOT) if entry)
    command = [sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
