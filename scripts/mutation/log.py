"""The log of a sampling: a line of JSON for each mutant that was tried, so that a killed sampling goes on."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants import Mutant

Key = tuple[int, str, str]


@dataclass(frozen=True)
class Trial:
    """What became of a mutant.

    Attributes:
        room: that was sampled.
        seed: of the sample.
        path: of the changed file.
        line: where the change begins.
        operator: what was changed, by name.
        diff: the change.
        word: "killed", "timeout", "survives", "equivalent", or "gone": it survived, and its line is gone since.
        seconds: how long its tests took.
        by: the test that noticed it, or why it is equivalent.
        commit: of the tree when the mutant was tried; the working tree may hold more.
    """

    room: str
    seed: int
    path: str
    line: int
    operator: str
    diff: str
    word: str
    seconds: float
    by: str
    commit: str = ""

    @classmethod
    def of(cls, mutant: Mutant, room: str, seed: int, word: str, seconds: float, by: str, commit: str = "") -> "Trial":
        """Note what became of a mutant."""
        return cls(
            room, seed, str(mutant.path), mutant.line, mutant.operator, mutant.diff(), word, round(seconds, 1), by,
            commit,
        )  # fmt: skip

    @property
    def key(self) -> Key:
        """Identity of the mutant: its seed, file and changed lines, wherever the lines stand."""
        return self.seed, self.path, _changed(self.diff)

    def mutant(self, root: Path) -> Mutant | None:
        """Make the same change in the tree as it is today; None if its lines are not there any more."""
        lines = self.diff.splitlines()[3:]
        old, new = ("".join(f"{line[1:]}\n" for line in lines if line[:1] in kept) for kept in (" -", " +"))
        path = Path(self.path)
        text = (root / path).read_text(encoding="utf-8") if (root / path).is_file() else ""
        place = f"\n{text}".find(f"\n{old}")
        if place < 0:
            return None
        line = text[:place].count("\n") + 1 + next(i for i, one in enumerate(lines) if one[:1] in "-+")
        return Mutant(path, line, self.operator, text, text[:place] + new + text[place + len(old) :])


class Log:
    """The trials in a file; of a mutant that was tried again the last one counts.

    Args:
        path: of the file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._trials: dict[Key, Trial] = {}
        self._fresh: dict[Key, Trial] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._note(Trial(**json.loads(line)))

    def trials(self) -> list[Trial]:
        """List the trials, each mutant once."""
        return list(self._trials.values())

    def fresh(self) -> list[Trial]:
        """List what became of each mutant when it was tried first, before any test was written for it."""
        return list(self._fresh.values())

    def find(self, seed: int, mutant: Mutant) -> Trial | None:
        """Find the trial of a mutant."""
        return self._trials.get((seed, str(mutant.path), _changed(mutant.diff())))

    def keep(self, trial: Trial) -> None:
        """Add a trial at the end, unless it is there."""
        if self._trials.get(trial.key) == trial:
            return
        self._note(trial)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(trial)) + "\n")

    def _note(self, trial: Trial) -> None:
        self._trials[trial.key] = trial
        self._fresh.setdefault(trial.key, trial)


def _changed(diff: str) -> str:
    """Give the changed lines of a diff: what a mutant is, wherever its lines stand."""
    return "\n".join(line for line in diff.splitlines()[3:] if line[:1] in "+-")
