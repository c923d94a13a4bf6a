"""Mutation testing by samples: `scripts/mutate aadml/losses --count 20 --seed 0`."""

import argparse
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import equivalent
import page
import reach
from log import Log, Trial
from mutants import Mutant, sample
from trial import PATIENCE, copy_tree, measure, run_tests, test_files, try_mutant

ROOT = Path(__file__).parents[2]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/mutate",
        description="Change code in small ways, one at a time, in a scratch copy; show what the tests do not notice. "
        "The first call measures which tests reach which function; a later call with the same log goes on where "
        "the last one ended.",
    )
    parser.add_argument("room", type=Path, help="a folder or file, such as aadml/losses")
    parser.add_argument("--count", type=int, default=20, help="mutants to try (20)")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn (0)")
    parser.add_argument(
        "--most", type=float, default=0.1, help="share that may survive before the exit code is 1 (0.1)"
    )
    parser.add_argument(
        "--tests", type=Path, nargs="+", default=[Path("tests")], help="folders or files of tests to run (tests)"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree that is copied; by default this one")
    parser.add_argument("--log", type=Path, help="JSON lines of what was tried (.mutation/SEED.jsonl of the tree)")
    parser.add_argument(
        "--patience", type=float, default=PATIENCE, help="seconds that the tests of a mutant may take in all (60)"
    )
    parser.add_argument(
        "--alone", action="store_true", help="run the tests that reach a mutant, not the rest of their files"
    )
    parser.add_argument("--again", action="store_true", help="try those again that survived, and no others")
    parser.add_argument("--page", type=Path, help="Markdown page whose section of each seed of the log is written anew")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    root = given.root.resolve()
    files = sorted(path.relative_to(root) for path in python_files(root / given.room))
    if not files:
        say(f"{given.room}: no Python file there; name a folder or file of the tree, such as aadml/losses")
        return 2
    known = equivalent.read()
    for entry in known:
        if not entry.stands(root):
            say(f"equivalent.toml: {entry.path} has no line '{entry.before}' any more")
    log = Log(given.log or root / reach.MEASURED / f"{given.seed}.jsonl")
    mutants = survivors_of(log, root, given) if given.again else sample(root, files, given.count, given.seed)
    with tempfile.TemporaryDirectory(prefix="aadml-mutants-") as folder:
        scratch = Path(folder).resolve()
        copy_tree(root, scratch)
        found = reached(scratch, given.tests, root / reach.MEASURED)
        if not runs_as_it_is(scratch, found):
            say("the quickest tests fail without any change; see why with scripts/test")
            return 2
        say(f"{len(mutants)} mutants of {given.room}, seed {given.seed}")
        commit = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True)
        trials = [tried(scratch, mutant, known, found, log, given, commit.stdout.strip()) for mutant in mutants]
    survivors = [trial for trial in trials if trial.word == "survives"]
    for trial in survivors:
        print(f"\n{trial.path}:{trial.line} {trial.operator}\n{trial.diff}")
    print(f"\n{given.room}: {len(survivors)} of {len(trials)} mutants survive (seed {given.seed})")
    if given.page:
        before = given.page.read_text(encoding="utf-8") if given.page.is_file() else page.HEAD
        given.page.write_text(page.markdown(log, before), encoding="utf-8")
    return int(len(survivors) > given.most * len(trials))


def survivors_of(log: Log, root: Path, given: argparse.Namespace) -> list[Mutant]:
    """Return the survivors of a log in the current tree, and record those whose lines were removed."""
    mutants = []
    for trial in log.trials():
        if (trial.room, trial.seed, trial.word) == (str(given.room), given.seed, "survives"):
            mutant = trial.mutant(root)
            if mutant is None:
                log.keep(replace(trial, word="gone"))
            else:
                mutants.append(mutant)
    return mutants


def reached(scratch: Path, tests: list[Path], folder: Path) -> dict[str, reach.Reach]:
    """Measure the reach of the tests of the copy, if it is unknown; print the tests that fail without a change."""

    def run(tests: list[Path]) -> None:
        say(f"measuring {len(tests)} test files of {tests[0].parent}")
        measure(scratch, folder, tests)

    found = reach.measured(scratch, folder, test_files(scratch, tests), run)
    for one in found.values():
        for test in one.failed:
            say(f"{test} fails without any change and is left out")
    return found


def runs_as_it_is(scratch: Path, found: dict[str, reach.Reach]) -> bool:
    """Return whether a few tests that passed when they were measured pass now, chosen like those of a mutant."""
    passed = {test: s for one in found.values() for test, s in one.seconds.items() if test not in one.failed}
    quickest = sorted(passed, key=lambda test: passed[test])[:3]
    return run_tests(scratch, {test: passed[test] for test in quickest}).word == "passed"


def tried(
    scratch: Path,
    mutant: Mutant,
    known: list[equivalent.Equivalent],
    found: dict[str, reach.Reach],
    log: Log,
    given: argparse.Namespace,
    commit: str,
) -> Trial:
    """Try a mutant, unless it is in the log; return its trial."""
    trial = log.find(given.seed, mutant)
    reason = equivalent.reason_of(mutant, known)
    if reason is not None:
        trial = Trial.of(mutant, str(given.room), given.seed, "equivalent", 0.0, reason, commit)
    elif trial is None or given.again:
        outcome = try_mutant(scratch, mutant, found, given.patience, alone=given.alone)
        word = {"passed": "survives", "failed": "killed"}.get(outcome.word, outcome.word)
        trial = Trial.of(mutant, str(given.room), given.seed, word, outcome.seconds, outcome.test, commit)
    log.keep(trial)
    change = "  ->  ".join(side.partition("\n")[0] for side in mutant.change())
    say(f"{trial.word:10} {trial.seconds:4.0f} s  {mutant.path}:{mutant.line}  {change}  {trial.by}")
    return trial


def python_files(place: Path) -> list[Path]:
    return [place] if place.suffix == ".py" and place.is_file() else list(place.rglob("*.py"))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
