"""The trial of a mutant: the tests of its room, run on a scratch copy of the tree, never on the working tree."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mutants import Mutant

MEMORY = 16 * 1024**3  # bytes of address space: a mutant may ask for everything there is


@dataclass(frozen=True)
class Outcome:
    """How a run of tests ended: "passed", "failed", or "timeout"; after how many seconds."""

    word: str
    seconds: float
    output: str = ""


def copy_tree(root: Path, scratch: Path) -> None:
    """Copy what git tracks, or would track, into a scratch folder."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        if (root / name).is_file():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, scratch / name)


def room_of(root: Path, path: Path) -> Path:
    """Return the tests of a file or folder of a tree: the folder of that name, or of the nearest above.

    The tests of `aadml/losses/triplet.py` are `tests/losses`, those of `feature_extraction/media.py`
    `tests/feature_extraction`.
    """
    inside = path.parts[1:] if path.parts[0] == "aadml" else path.parts
    folder = Path("tests", *inside)
    while not (root / folder).is_dir():
        folder = folder.parent
    return folder


def try_mutant(scratch: Path, mutant: Mutant, room: Path, limit: float) -> Outcome:
    """Run the tests of the mutant's file, and if they pass those of the room, on the changed copy."""
    (scratch / mutant.path).write_text(mutant.after, encoding="utf-8")
    try:
        named = sorted(path.relative_to(scratch) for path in (scratch / "tests").rglob(f"test_{mutant.path.stem}.py"))
        near = [path for path in named if room in path.parents]
        first = run_tests(scratch, near, limit) if near else Outcome("passed", 0.0)
        if first.word != "passed":
            return first
        rest = run_tests(scratch, [room], limit)
        return Outcome(rest.word, first.seconds + rest.seconds, rest.output)
    finally:
        (scratch / mutant.path).write_text(mutant.before, encoding="utf-8")


def run_tests(scratch: Path, tests: list[Path], limit: float | None) -> Outcome:
    """Run some tests until the first failure, in a process group that dies as one."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=short"]
    command = [sys.executable, "-m", "pytest", *options, *map(str, tests)]
    environment = os.environ | {"PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.setdefault("OMP_NUM_THREADS", "1")
    begun = time.monotonic()
    with subprocess.Popen(
        command,
        cwd=scratch,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
            word = "passed" if process.returncode == 0 else "failed"
        except subprocess.TimeoutExpired:
            output, word = "", "timeout"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if word == "timeout":
            os.killpg(process.pid, signal.SIGKILL)
    return Outcome(word, time.monotonic() - begun, output)
