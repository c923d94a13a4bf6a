"""Kill small training runs at every point at which they change the disk: `scripts/soak/kill_points`."""

import argparse
import datetime
import json
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from random import Random

import torch
from faults import KILLED, REFUSED, Ending, in_child, killing, points
from trainings import NAMES, config, contents, differences, write_data

from aadml.configuration.config import Config
from aadml.runs import environment
from aadml.runs.fit import resume_run
from aadml.runs.train import train_into
from aadml.runs.verify import verify_folder as verify

FOREIGN = {"thesis.tex": b"Once upon a time", "figures/one.svg": b"<svg/>", ".hidden.partial.json": b"{}"}
"""Files in every folder next to the run; no training run may change them."""


@dataclass
class Tally:
    """Results of killing one training run.

    Attributes:
        name: name of the training run.
        points: number of points at which it can be killed.
        kills: number of tried kills.
        twice: number of kills of the resume of a killed run.
        failures: a sentence for each failure.
    """

    name: str
    points: int = 0
    kills: int = 0
    twice: int = 0
    failures: list[str] = field(default_factory=list)


class Killer:
    """Kills the training run of a config repeatedly, each time in a separate folder.

    Args:
        name: name of the training run.
        complete: its config.
        root: an empty folder for the runs.
    """

    def __init__(self, name: str, complete: Config, root: Path) -> None:
        self.tally = Tally(name)
        self._config, self._root = complete, root
        self._begin(root / "warm")  # imports late modules before the first fork
        whole = self._planted("whole")
        self.points = points(whole, lambda: self._begin(whole))
        self.tally.points = len(self.points)
        self._whole = contents(whole)

    def kill(self, number: int) -> None:
        """Kill at a point and recover."""
        folder = self._planted(f"killed-{number}")
        where = f"point {number} ({' '.join(self.points[number])})"
        ending = in_child(lambda: self._begin(folder), killing(number), folder)
        self.tally.kills += 1
        self._expect(ending, KILLED, where)
        self._compare(folder, where)

    def kill_twice(self, first: int, second: int) -> None:
        """Kill at a point, kill the resume at another point, and recover."""
        folder = self._planted(f"killed-{first}-{second}")
        where = f"points {first} and {second} of the resume"
        self._expect(in_child(lambda: self._begin(folder), killing(first), folder), KILLED, where)
        ending = in_child(lambda: self._recover(folder), killing(second), folder)
        self.tally.twice += ending.code == KILLED
        self._expect(ending, KILLED if ending.code == KILLED else 0, where)
        self._compare(folder, where)

    def _compare(self, folder: Path, where: str) -> None:
        ending = in_child(lambda: self._recover(folder))
        self._expect(ending, 0, f"{where}: recovery")
        found = [*differences(self._whole, contents(folder)), *verify(folder)] if ending.code == 0 else []
        if found:
            self.tally.failures.append(f"{self.tally.name}, {where}: differs in {', '.join(found)}")
        shutil.rmtree(folder)

    def _begin(self, folder: Path) -> None:
        train_into(self._config, folder)

    def _recover(self, folder: Path) -> None:
        """Resume the run; if training had not begun, train again in the same folder, as a sweep does."""
        from aadml.feature_extraction.ground.errors import InputError

        try:
            resume_run(folder)
        except InputError as error:
            if "not a run folder" not in str(error) and "stopped before training began" not in str(error):
                raise
            train_into(self._config, folder)

    def _planted(self, name: str) -> Path:
        folder = self._root / name
        for path, data in FOREIGN.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder

    def _expect(self, ending: Ending, code: int, where: str) -> None:
        if ending.code != code:
            word = "refused" if ending.code == REFUSED else f"ended with {ending.code}"
            self.tally.failures.append(f"{self.tally.name}, {where}: {word}: {ending.text.strip()[-600:]}")


def kill_points(name: str, root: Path, *, every: int = 1, twice: int = 20, seed: int = 0) -> Tally:
    """Kill one training run at its points.

    Args:
        name: a key of `trainings.NAMES`.
        root: an empty folder.
        every: distance of the points; the first point is drawn.
        twice: number of kills that are followed by a kill of the resume, at drawn points.
        seed: seed of the draws.
    """
    torch.set_num_threads(1)
    for name_of in ("git_commit", "installed_version"):  # both are slow, and equal for every training run
        setattr(environment, name_of, cache(getattr(environment, name_of)))
    killer = Killer(name, config(name, write_data(root / "data")), root)
    random = Random(f"{name} {seed}")
    for number in range(random.randrange(every), len(killer.points), every):
        killer.kill(number)
    for _ in range(twice):
        killer.kill_twice(random.randrange(len(killer.points)), random.randrange(len(killer.points)))
    return killer.tally


def page(tallies: Sequence[Tally]) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Kills at every point of a training", "",
        "Made by `scripts/soak/kill_points`. A training in a forked child ends by `os._exit` at each point at which it",
        "changes the disk: before every `mkdir`, `open`, `write`, `truncate`, `fchmod`, `fsync`, `rename` and `unlink`",
        "(which is also after the one before), in the middle of every `write`, and after the last call. Then it is",
        "resumed, or trained anew where it had not begun, and its folder must hold the files and bytes of the",
        "uninterrupted training (but for seconds and the run's id); files that are not the run's are untouched.", "",
        f"{datetime.date.today()}, {platform.platform()}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, commit {environment.git_commit()}.", "",
        "| training | points | kills | kills of a resume | failures |", "| --- | --: | --: | --: | --: |",
    ]  # fmt: skip
    total = Tally("**all**")
    for one in tallies:
        for key in ("points", "kills", "twice"):
            setattr(total, key, getattr(total, key) + getattr(one, key))
        total.failures += one.failures
    for one in [*tallies, total]:
        counts = (one.name, one.points, one.kills, one.twice, len(one.failures))
        lines.append(f"| {' | '.join(map(str, counts))} |")
    if total.failures:
        lines += ["", "## Failures", "", *(f"- {one}" for one in total.failures)]
    return "\n".join(lines) + "\n"


def known_results(path: Path | None) -> dict[str, Tally]:
    """Read the tallies of an earlier call."""
    lines = path.read_text().splitlines() if path is not None and path.is_file() else []
    return {tally.name: tally for line in lines for tally in [Tally(**json.loads(line))]}


def _in_folder(name: str, *, folder: Path | None, **options: int) -> Tally:
    with tempfile.TemporaryDirectory(prefix="aadml-kills-", dir=folder) as root:
        return kill_points(name, Path(root).resolve(), **options)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak/kill_points", description=__doc__)
    parser.add_argument("names", nargs="*", help="trainings; all by default")
    parser.add_argument("--every", type=int, default=1, help="points apart (1)")
    parser.add_argument("--twice", type=int, default=20, help="kills of a resume, each training (20)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (0)")
    parser.add_argument("--jobs", type=int, default=1, help="trainings side by side (1)")
    parser.add_argument("--folder", type=Path, help="where the runs lie; a file system in memory makes it faster")
    parser.add_argument("--results", type=Path, help="JSON lines, a training each; those that are there are not killed")
    parser.add_argument("-o", "--output", type=Path, help="where the table goes, as Markdown")
    given = parser.parse_args()
    names = given.names or NAMES
    known = known_results(given.results)
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        work = partial(_in_folder, folder=given.folder, every=given.every, twice=given.twice, seed=given.seed)
        asked = [pool.submit(work, name) for name in names if name not in known]
        for done in as_completed(asked):
            tally = done.result()
            known[tally.name] = tally
            print(f"{tally.name}: {tally.kills} kills, {tally.twice} twice, {len(tally.failures)} failures", flush=True)
            for failure in tally.failures:
                print(f"  {failure}", file=sys.stderr, flush=True)
            if given.results:
                with given.results.open("a") as file:
                    file.write(json.dumps(vars(tally)) + "\n")
    tallies = [known[name] for name in names]
    text = page(tallies)
    if given.output:
        given.output.write_text(text, encoding="utf-8")
    print(next(line for line in text.splitlines() if "**all**" in line))
    return int(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
