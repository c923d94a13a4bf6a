"""Log of a sampling: a line of JSON for each tried mutant, so that a killed sampling can be continued."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from mutants import Mutant

Key = tuple[int, str, str]


@dataclass(frozen=True)
class Trial:
    """Result of a mutant.

    Attributes:
        room: sampled room.
        seed: seed of the sample.
        path: changed file.
        line: first changed line.
        operator: name of the kind of change.
        diff: the change.
        word: "killed", "timeout", "survives", "equivalent", or "gone": the mutant survived, and its line was removed
            since.
        seconds: duration of its tests.
        by: test that failed, or reason why the mutant is equivalent.
        commit: commit of the tree; the working tree may contain further changes.
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
        """Return the trial of a mutant."""
        return cls(
            room, seed, str(mutant.path), mutant.line, mutant.operator, mutant.diff(), word, round(seconds, 1), by,
            commit,
        )  # fmt: skip

    @property
    def key(self) -> Key:
        """Identity of the mutant: its seed, file and changed lines, independent of line numbers."""
        return self.seed, self.path, _changed(self.diff)

    def mutant(self, root: Path) -> Mutant | None:
        """Apply the same change to the current tree; None if its lines were removed."""
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
    """Trials in a file; the last trial of a mutant counts.

    Args:
        path: path of the file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._trials: dict[Key, Trial] = {}
        self._fresh: dict[Key, Trial] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._note(Trial(**json.loads(line)))

    def trials(self) -> list[Trial]:
        """Return the last trial of each mutant."""
        return list(self._trials.values())

    def fresh(self) -> list[Trial]:
        """Return the first trial of each mutant, before any test was written for it."""
        return list(self._fresh.values())

    def find(self, seed: int, mutant: Mutant) -> Trial | None:
        """Return the trial of a mutant; None if there is none."""
        return self._trials.get((seed, str(mutant.path), _changed(mutant.diff())))

    def keep(self, trial: Trial) -> None:
        """Append a trial, unless the file contains it."""
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
    """Return the changed lines of a diff, which identify a mutant independent of line numbers."""
    return "\n".join(line for line in diff.splitlines()[3:] if line[:1] in "+-")
