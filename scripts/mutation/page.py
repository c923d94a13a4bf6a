"""The page of a sampling: how many mutants of each room survived, and which."""

from collections import defaultdict
from collections.abc import Iterable

from log import Trial

HEAD = """# Mutants

Made by `scripts/mutate ROOM --count N --seed S --page docs/soak/mutants.md`. One place of a room is changed in a small
way in a scratch copy: a sign, a number, a comparison, a call left out. The tests that reach the changed function are
run until one fails; a mutant survives if none does. A change from which nothing follows is equivalent
(`scripts/mutation/equivalent.toml` says why) and counts as one that does not survive. A mutant that survived, and whose
line is gone since, stands apart and counts for nothing.

Commit {commit}.

| room | seed | mutants | killed | out of time | equivalent | gone | survive | share |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |"""


def markdown(trials: Iterable[Trial], commit: str) -> str:
    """Write the trials of a log as Markdown: a line for each room, then every survivor."""
    rooms: dict[tuple[str, int], list[Trial]] = defaultdict(list)
    for trial in trials:
        rooms[trial.room, trial.seed].append(trial)
    rows = [_row(f"`{room}`", str(seed), rooms[room, seed]) for room, seed in sorted(rooms)]
    every = [trial for room in rooms.values() for trial in room]
    survivors = [trial for trial in every if trial.word == "survives"]
    listed = [f"`{one.path}:{one.line}`\n\n```diff\n{_change(one.diff)}\n```" for one in survivors]
    parts = [HEAD.format(commit=commit), *rows, _row("all", "", every)]
    return "\n".join([*parts, *(["\nThe survivors:\n", "\n\n".join(listed)] if listed else []), ""])


def _row(room: str, seed: str, trials: list[Trial]) -> str:
    count = {word: sum(trial.word == word for trial in trials) for word in ("killed", "timeout", "equivalent", "gone")}
    survive = sum(trial.word == "survives" for trial in trials)
    share = f"{100 * survive / max(len(trials) - count['gone'], 1):.1f} %"
    return f"| {' | '.join([room, seed, str(len(trials)), *map(str, count.values()), str(survive), share])} |"


def _change(diff: str) -> str:
    return "\n".join(line for line in diff.splitlines()[3:] if line[:1] in "+-")
