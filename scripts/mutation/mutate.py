"""Mutation testing by samples: `scripts/mutate aadml/losses --count 20 --seed 0`."""

import argparse
import sys
import tempfile
from pathlib import Path

import equivalent
from mutants import Mutant, sample
from trial import copy_tree, room_of, run_tests, try_mutant

ROOT = Path(__file__).parents[2]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/mutate",
        description="Change code in small ways, one at a time, in a scratch copy; show what its tests do not notice.",
    )
    parser.add_argument("room", type=Path, help="a folder or file, such as aadml/losses")
    parser.add_argument("--count", type=int, default=20, help="mutants to try (20)")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn (0)")
    parser.add_argument(
        "--most", type=float, default=0.1, help="share that may survive before the exit code is 1 (0.1)"
    )
    parser.add_argument("--tests", type=Path, help="the tests to run; by default those of the room")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree that is copied; by default this one")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    root = given.root.resolve()
    files = sorted(path.relative_to(root) for path in python_files(root / given.room))
    if not files:
        say(f"{given.room}: no Python file there; name a folder or file of the tree, such as aadml/losses")
        return 2
    tests = given.tests or room_of(root, given.room)
    known = equivalent.read()
    for entry in known:
        if not entry.stands(root):
            say(f"equivalent.toml: {entry.path} has no line '{entry.before}' any more")
    mutants = sample(root, files, given.count, given.seed)
    with tempfile.TemporaryDirectory(prefix="aadml-mutants-") as folder:
        scratch = Path(folder).resolve()
        copy_tree(root, scratch)
        plain = run_tests(scratch, [tests], None)
        if plain.word != "passed":
            say(f"{tests} {plain.word} without any change:\n{plain.output}")
            return 2
        say(f"{len(mutants)} mutants of {given.room}; {tests} takes {plain.seconds:.0f} s")
        survivors = try_all(scratch, mutants, tests, known, limit=60 + 3 * plain.seconds)
    for mutant in survivors:
        print(f"\n{mutant.path}:{mutant.line} {mutant.operator}\n{mutant.diff()}")
    print(f"\n{given.room}: {len(survivors)} of {len(mutants)} mutants survive (seed {given.seed})")
    return int(len(survivors) > given.most * len(mutants))


def try_all(
    scratch: Path, mutants: list[Mutant], tests: Path, known: list[equivalent.Equivalent], limit: float
) -> list[Mutant]:
    """Try every mutant; return those that survive and are not known to be equivalent."""
    survivors = []
    for number, mutant in enumerate(mutants, 1):
        if equivalent.reason_of(mutant, known):
            word, seconds = "equivalent", 0.0
        else:
            outcome = try_mutant(scratch, mutant, tests, limit)
            word, seconds = "SURVIVES" if outcome.word == "passed" else "killed", outcome.seconds
            if outcome.word == "passed":
                survivors.append(mutant)
        before, after = (side.splitlines()[:1] or [""] for side in mutant.change())
        say(f"{number:3} {word:10} {seconds:4.0f} s  {mutant.path}:{mutant.line}  {before[0]}  ->  {after[0]}")
    return survivors


def python_files(place: Path) -> list[Path]:
    return [place] if place.suffix == ".py" and place.is_file() else list(place.rglob("*.py"))


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
