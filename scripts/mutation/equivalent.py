"""Mutants that no test can detect, because they change no observable behavior: `equivalent.toml`, with reasons."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutants import Mutant

LISTED = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True)
class Equivalent:
    """Listed changes of one line, or of several lines: the file, the code before, all codes after, and the reason."""

    path: str
    before: str
    after: Sequence[str]
    reason: str

    def stands(self, root: Path) -> bool:
        """Return whether the line, or lines, are still in the file."""
        path = root / self.path
        lines = {line.strip() for line in path.read_text(encoding="utf-8").splitlines()} if path.is_file() else set()
        return path.is_file() and set(filter(None, self.before.splitlines())) <= lines


def read(listed: Path = LISTED) -> list[Equivalent]:
    """Read the list."""
    if not listed.is_file():
        return []
    return [Equivalent(**entry) for entry in tomllib.loads(listed.read_text(encoding="utf-8")).get("mutant", [])]


def reason_of(mutant: Mutant, known: Sequence[Equivalent]) -> str | None:
    """Return why a mutant is equivalent, None if it is not listed."""
    before, after = mutant.change()
    fits = (e for e in known if (e.path, e.before) == (str(mutant.path), before) and after in e.after)
    return next((e.reason for e in fits), None)
