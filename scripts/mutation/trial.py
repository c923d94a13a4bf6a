"""Trial of a mutant: the tests that reach it, run on a scratch copy of the tree, never on the working tree."""

import importlib
import itertools
import json
import multiprocessing
import os
import re
import resource
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import reach
from mutants import Mutant

MEMORY = 16 * 1024**3  # bytes of address space: a mutant may allocate without limit
PATIENCE = 60.0  # limit on the measured seconds of all tests of a mutant
AT_LEAST, TIMES = 30.0, 6.0  # minimum limit of a test in seconds, and limit relative to its measured time
START = 120.0  # seconds to import and collect
ENDINGS = {0: "passed", 5: "passed", -signal.SIGALRM: "timeout", -signal.SIGPROF: "timeout"}  # 5: no test to run
READERS = (
    "tests/configuration/test_option_laws.py", "tests/losses/test_page.py", "tests/methods/test_published_values.py",
    "tests/test_architecture.py",
)  # fmt: skip
"""Test files that read defaults, bounds or the source of every entry; their measured lines do not show this."""
AGES = itertools.count(1)
PRELOADED = (
    "torch._dynamo", "torch.fx.experimental.symbolic_shapes", "scipy.stats", "sklearn.metrics", "hypothesis.strategies",
    "h5py", "pydantic", "pytest", "_pytest.logging", "_pytest.junitxml", "_pytest.unraisableexception", "coverage",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Result of a run of tests: "passed", "failed" or "timeout", the duration in seconds, and the last test."""

    word: str
    seconds: float
    test: str = ""


def copy_tree(root: Path, scratch: Path) -> None:
    """Copy all files that git tracks, or would track, into a scratch folder."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, listed):
        if (root / name).is_file() or (root / name).is_symlink():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, scratch / name, follow_symlinks=False)


def test_files(root: Path, folders: Iterable[Path]) -> list[Path]:
    """Return the test files of folders or files of a tree, relative to the tree."""
    found = [[root / one] if one.suffix else (root / one).rglob("test_*.py") for one in map(Path, folders)]
    return sorted({path.relative_to(root) for paths in found for path in paths})


def room_of(path: Path) -> Path:
    """Return the test folder of a file: `tests/losses` for `aadml/losses/triplet.py`."""
    inside = path.parts[1:] if path.parts[0] == "aadml" else path.parts
    return Path("tests", inside[0])


def measure(scratch: Path, folder: Path, tests: list[Path]) -> None:
    """Run test files completely and store their reach."""
    _pytest(scratch, tests, ["-p", "recording"], {"AADML_REACH": str(folder)}, limit=None)


def try_mutant(
    scratch: Path, mutant: Mutant, found: Mapping[str, reach.Reach], patience: float = PATIENCE, *, alone: bool = False
) -> Outcome:
    """Run the tests that reach a mutant, those of its room first, until one fails."""
    file, spent = scratch / mutant.path, 0.0
    _replace(file, mutant.after)
    try:
        for tests in chosen(mutant, found, patience, alone=alone):
            outcome = run_tests(scratch, tests)
            spent += outcome.seconds
            if outcome.word != "passed":
                return Outcome(outcome.word, spent, outcome.test)
        return Outcome("passed", spent)
    finally:
        _replace(file, mutant.before)


def _replace(file: Path, text: str) -> None:
    """Write a file with a unique modification time, so that no bytecode of the previous text is reused."""
    file.write_text(text, encoding="utf-8")
    age = next(AGES)
    os.utime(file, (age, age))


def chosen(
    mutant: Mutant, found: Mapping[str, reach.Reach], patience: float = PATIENCE, *, alone: bool = False
) -> list[dict[str, float]]:
    """Choose the tests of a mutant in steps: the test file with the same name, the rest of its room, other rooms.

    A change of a signature is followed by the tests that read signatures, after those of its room. At the end, complete
    test files of the room are run, because a test may use results of another test of its file; with `alone`, only the
    tests that reach the mutant are run. Quick tests come first.

    Returns:
        For each step, test -> seconds.
    """
    steps: list[list[tuple[float, str]]] = [[], [], [], []]
    for test_file, tests in reach.tests_reaching(str(mutant.path), mutant.before, mutant.line, found).items():
        path, kept = Path(test_file), found[test_file]
        near = room_of(mutant.path) in path.parents
        place = 2 if not near else 0 if path.stem == f"test_{mutant.path.stem}" else 1
        for test, seconds in kept.seconds.items():
            if test not in kept.failed and (test in tests or (near and not alone)):
                steps[place if test in tests else 3].append((seconds, test))
    if reach.is_signature(mutant.before, mutant.line):
        readers = [found[test_file].seconds for test_file in READERS if test_file in found]
        steps.insert(2, [(seconds, test) for tests in readers for test, seconds in tests.items()])
    left, taken = patience, []
    for step in steps:
        taken.append({})
        for seconds, test in sorted(step):
            if seconds <= left:
                taken[-1][test] = seconds
                left -= seconds
    return [tests for tests in taken if tests]


def run_tests(scratch: Path, tests: Mapping[str, float]) -> Outcome:
    """Run chosen tests (test -> its seconds) in their order until the first failure."""
    order = scratch / "chosen.json"
    limits = {test: AT_LEAST + TIMES * seconds for test, seconds in tests.items()}
    order.write_text(json.dumps(limits), encoding="utf-8")
    files = sorted({Path(test.partition("::")[0]) for test in tests})
    options = ["-x", "-p", "ordering", "--tb=no", "-rfE"]
    limit = START + TIMES * sum(tests.values())
    return _pytest(scratch, files, options, {"AADML_CHOSEN": str(order)}, limit)


def _pytest(
    scratch: Path, tests: Sequence[Path], options: Sequence[str], more: Mapping[str, str], limit: float | None
) -> Outcome:
    """Run pytest in a process group that is killed as a whole, in a fork with slow imports already loaded."""
    for name in PRELOADED:
        importlib.import_module(name)
    ignored = ("Module already imported", "No data was collected")
    warned = [word for text in ignored for word in ("-W", f"ignore:{text}")]
    always = ["pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *warned]
    output = scratch / "output.txt"
    command = [*always, *options, *map(str, tests)]
    process = multiprocessing.get_context("fork").Process(target=_run, args=(scratch, command, more, output))
    begun = time.monotonic()
    process.start()
    process.join(limit)
    if late := process.is_alive():
        os.killpg(process.pid, signal.SIGKILL)
        process.join()
    word = "timeout" if late else ENDINGS.get(process.exitcode, "failed")
    first = re.search(r"^(?:FAILED|ERROR) (\S+)", output.read_text(errors="replace"), re.MULTILINE)
    return Outcome(word, time.monotonic() - begun, first[1] if first else "")


def _run(scratch: Path, command: list[str], more: Mapping[str, str], output: Path) -> None:
    """Run `python -m pytest` in the scratch copy, which keeps the bytecode of all unchanged files."""
    os.setsid()
    sys.dont_write_bytecode = False
    os.chdir(scratch)
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    places = [str(scratch), str(Path(__file__).parent)]
    sys.path[:0], sys.argv = places, command
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update(more | {"PYTHONPATH": os.pathsep.join(places)})
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)
