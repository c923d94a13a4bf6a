"""The page of a sampling: how many mutants of each room survived when they were fresh, and today."""

from collections import defaultdict

from log import Log, Trial

HEAD = """# Mutants

Made by `scripts/mutate ROOM --count N --seed S --page docs/lab/soak/mutants.md`. One place of a room is
changed in a small way in a scratch copy: a sign, a number, a comparison, a call left out. The tests that reach the
changed statement are
run until one fails; a mutant survives if none does. "Fresh" is what became of it before anybody had looked at it; the
other columns are what becomes of it today: killed, out of time (noticed too), equivalent, for nothing follows from it
(`scripts/mutation/equivalent.toml` says why), gone with its line, or still alive. Only the fresh share says what the
tests would notice of the next mistake.

Commit {commit}."""
TABLE = """
## Seed {seed}

| room | mutants | survive fresh | share | killed | out of time | equivalent | gone | survive |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |"""
WORDS = ("killed", "timeout", "equivalent", "gone", "survives")


def markdown(log: Log, commit: str) -> str:
    """Write the trials of a log as Markdown: a table for each seed, then every mutant that is alive today."""
    rooms: dict[int, dict[str, tuple[list[Trial], list[Trial]]]] = defaultdict(lambda: defaultdict(lambda: ([], [])))
    for side, trials in enumerate((log.fresh(), log.trials())):
        for trial in trials:
            for room in (f"`{trial.room}`", "all"):
                rooms[trial.seed][room][side].append(trial)
    parts = [HEAD.format(commit=commit)]
    for seed, found in sorted(rooms.items(), reverse=True):
        rows = [_row(room, *found[room]) for room in sorted(found, key=lambda room: (room == "all", room))]
        parts += [TABLE.format(seed=seed), *rows]
    alive = [trial for trial in log.trials() if trial.word == "survives"]
    listed = [f"`{one.path}:{one.line}` (seed {one.seed})\n\n```diff\n{_change(one.diff)}\n```" for one in alive]
    return "\n".join([*parts, *(["\n## Alive today\n", "\n\n".join(listed)] if listed else []), ""])


def _row(room: str, fresh: list[Trial], now: list[Trial]) -> str:
    survived = sum(trial.word == "survives" for trial in fresh)
    counts = [sum(trial.word == word for trial in now) for word in WORDS]
    cells = [room, len(fresh), survived, f"{100 * survived / max(len(fresh), 1):.1f} %", *counts]
    return f"| {' | '.join(map(str, cells))} |"


def _change(diff: str) -> str:
    return "\n".join(line for line in diff.splitlines()[3:] if line[:1] in "+-")
