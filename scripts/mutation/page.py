"""Page of samplings: for each seed, how many mutants of each room survived when they were first tried, and today."""

import re
from collections import defaultdict

from log import Log, Trial

HEAD = """# Mutants

Made by `scripts/mutate ROOM --count N --seed S --page docs/lab/soak/mutants.md`. One place of a room is changed in a
small way in a scratch copy: a sign, a number, a comparison, a call left out. The tests that reach the changed statement
are run until one fails; a mutant survives if none does. "Survive fresh" is the result before anybody had looked at the
mutant. The other columns are the result today: killed, out of time (noticed too), equivalent
(`scripts/mutation/equivalent.toml`), gone with its line, or alive.
"""
TABLE = """
| room | mutants | survive fresh | share | killed | out of time | equivalent | gone | alive |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |"""
WORDS = ("killed", "timeout", "equivalent", "gone", "survives")
SECTION = re.compile(r"^## Seed (\d+)$", re.MULTILINE)


def markdown(log: Log, before: str = HEAD) -> str:
    """Return the page with a section for each seed of a log; the head and the sections of other seeds are unchanged.

    Args:
        log: trials.
        before: text of the page.
    """
    head, *parts = SECTION.split(before)
    sections = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    for seed in {trial.seed for trial in log.trials()}:
        fresh, now = ([trial for trial in trials if trial.seed == seed] for trials in (log.fresh(), log.trials()))
        sections[seed] = _section(fresh, now)
    written = [f"## Seed {seed}\n\n{sections[seed].strip()}\n" for seed in sorted(sections, reverse=True)]
    return "\n".join([head.rstrip() + "\n", *written])


def _section(fresh: list[Trial], now: list[Trial]) -> str:
    rooms: dict[str, tuple[list[Trial], list[Trial]]] = defaultdict(lambda: ([], []))
    for side, trials in enumerate((fresh, now)):
        for trial in trials:
            for room in (f"`{trial.room}`", "all"):
                rooms[room][side].append(trial)
    commits = [", ".join(sorted({trial.commit[:8] for trial in trials})) for trials in (fresh, now)]
    lines = [f"Commit when fresh {commits[0]}, of the results today {commits[1]}.", TABLE]
    lines += [_row(room, *rooms[room]) for room in sorted(rooms, key=lambda room: (room == "all", room))]
    survived = {trial.key for trial in fresh if trial.word == "survives"}
    killed = [trial for trial in now if trial.word in ("killed", "timeout") and trial.key in survived]
    for title, listed in (
        ("Equivalent", [trial for trial in now if trial.word == "equivalent"]),
        ("Alive", [trial for trial in now if trial.word == "survives"]),
        ("Survived fresh, killed today", killed),
    ):
        if listed:
            lines += [f"\n### {title}\n", *map(_entry, listed)]
    return "\n".join(lines)


def _row(room: str, fresh: list[Trial], now: list[Trial]) -> str:
    survived = sum(trial.word == "survives" for trial in fresh)
    counts = [sum(trial.word == word for trial in now) for word in WORDS]
    cells = [room, len(fresh), survived, f"{100 * survived / max(len(fresh), 1):.1f} %", *counts]
    return f"| {' | '.join(map(str, cells))} |"


def _entry(trial: Trial) -> str:
    """Return a mutant as a list item: its position, the change, and the reason or the test that kills it."""
    changed = [f"  {line}\n" for line in trial.diff.splitlines()[3:] if line[:1] in "+-"]
    note = f"; {trial.by}" if trial.by else ""
    return f"- `{trial.path}:{trial.line}`{note}\n\n  ```diff\n{''.join(changed)}  ```\n"
