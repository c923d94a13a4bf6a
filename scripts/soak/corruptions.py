"""Damage files of runs and models at random; no result may differ silently: `scripts/soak/corruptions`."""

import argparse
import datetime
import hashlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import torch
from faults import KILLED, in_child
from trainings import config, write_data

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks
from aadml.reports.run_page import write_report
from aadml.runs import environment
from aadml.runs.fit import resume_run
from aadml.runs.manifest import NUMBERED
from aadml.runs.train import train_into
from aadml.runs.verify import verify_folder as verify

KINDS = ("truncate", "flip", "zero", "junk", "append", "empty", "delete")
FOLDERS = ("finished run", "interrupted run", "model")
FOREIGN = "thesis.tex"
Outcome = tuple[str, object]
"""("refused", the line), ("raised", the error) or ("result", the value that must be equal)."""


@dataclass
class Tally:
    """Outcomes of the corruptions.

    Attributes:
        outcomes: (folder, command, word) -> count. The words are "refused", "equal", "different", "raised"; for
            `verify` "named", and "unseen" for damage that changes no result.
        corruptions: folder -> number of corruptions.
        failures: a sentence for each forbidden outcome.
    """

    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    corruptions: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class Corrupter:
    """Writes the three folders once, and damages copies of them.

    Args:
        root: an empty folder.
    """

    def __init__(self, root: Path) -> None:
        torch.set_num_threads(1)
        for name_of in ("git_commit", "installed_version"):  # both are slow, and equal every time
            setattr(environment, name_of, cache(getattr(environment, name_of)))
        self.tally, self._root = Tally(), root
        self._data = write_data(root / "data")
        complete = config("aadml", self._data)
        model = train_into(complete, root / "finished run")
        model.save(root / "model")
        in_child(lambda: train_into(complete, root / "interrupted run", callbacks=Callbacks(on_epoch=_after_two())))
        assert (root / "interrupted run" / "metrics.jsonl").is_file()
        for folder in FOLDERS:
            (root / folder / FOREIGN).write_text("Once upon a time")
        self._whole = {folder: self._outcomes(self._copy(folder), folder) for folder in FOLDERS}
        refused = {f: [c for c, (word, _) in self._whole[f].items() if word != "result"] for f in FOLDERS}
        assert refused == {"finished run": [], "interrupted run": ["embed", "evaluate", "report"], "model": []}, refused

    def corrupt(self, folder: str, random: Random) -> None:
        """Damage one file of a copy, and run every command on the copy."""
        copy = self._copy(folder)
        path = random.choice(sorted(path for path in copy.iterdir() if path.name != FOREIGN))
        kind = random.choice(KINDS)
        where = f"{folder}, {path.name}, {kind}"
        damage(path, kind, random)
        self.tally.corruptions[folder] += 1
        named = self._verify(copy, folder, path.name, where)
        for command, outcome in self._outcomes(copy, folder, where).items():
            whole = self._whole[folder][command]
            word = outcome[0] if outcome[0] != "result" else "equal" if outcome == whole else "different"
            self.tally.outcomes[folder, command, word] += 1
            if word in ("different", "raised") or not (named or outcome[0] == whole[0]):
                self.tally.failures.append(f"{where}: {command}: {word}: {str(outcome[1])[-400:]}")

    def _verify(self, copy: Path, folder: str, name: str, where: str) -> bool:
        word, found = outcome_of(lambda: "\n".join(verify(copy)))
        named = name in str(found)
        self.tally.outcomes[folder, "verify", "named" if named else "unseen"] += 1
        if word == "raised" or (found and not named):
            self.tally.failures.append(f"{where}: verify: {str(found)[-400:]}")
        return named

    def _outcomes(self, copy: Path, folder: str, where: str = "") -> dict[str, Outcome]:
        """Run every command in turn, and check that no file was removed."""
        found = {}
        for command, work in self._commands(copy, folder).items():
            before = {path.name for path in copy.rglob("*")}
            found[command] = outcome_of(work)
            gone = before - {path.name for path in copy.rglob("*")}
            # a continued run replaces its state and best weights by newer files
            lost = [name for name in gone if found[command][0] != "result" or not NUMBERED.fullmatch(name)]
            if lost:
                self.tally.failures.append(f"{where}: {command} removed {', '.join(lost)}")
        return found

    def _commands(self, copy: Path, folder: str) -> dict[str, Callable[[], object]]:
        features = np.linspace(-2, 2, 4 * 6, dtype=np.float32).reshape(4, 6)
        data = self._data.features if folder == "model" else None

        def embed() -> object:
            return aadml.load(copy).embed(audio=features).tobytes()

        def evaluate() -> object:
            return str(aadml.evaluate(copy, data=data).to_json())

        def report() -> object:
            return hashlib.sha256(write_report(copy).read_bytes()).hexdigest()

        def resume() -> object:
            resumed = resume_run(copy)
            weights = [(copy / name).read_bytes() for name in ("model.safetensors", "model.json")]
            return resumed.embed(audio=features).tobytes(), weights, resumed.evaluation["map_mean"]

        if folder == "model":
            return {"embed": embed, "evaluate": evaluate}
        return {"embed": embed, "evaluate": evaluate, "report": report, "resume": resume}

    def _copy(self, folder: str) -> Path:
        copy = self._root / "damaged"
        if copy.exists():
            shutil.rmtree(copy)
        shutil.copytree(self._root / folder, copy)
        return copy


def damage(path: Path, kind: str, random: Random) -> None:
    """Damage a file so that its bytes differ."""
    data = path.read_bytes()
    changed = data
    while changed == data:
        changed = _damaged(data, kind, random)
    path.write_bytes(changed)
    if kind == "delete":
        path.unlink()


def _damaged(data: bytes, kind: str, random: Random) -> bytes:
    start = random.randrange(len(data))
    end = random.randrange(start, len(data)) + 1
    if kind == "truncate":
        return data[:start]
    if kind == "append":
        return data + random.randbytes(end)
    if kind in ("empty", "delete"):
        return b""
    if kind == "flip":
        return data[:start] + bytes([data[start] ^ 1 << random.randrange(8)]) + data[start + 1 :]
    return data[:start] + (bytes(end - start) if kind == "zero" else random.randbytes(end - start)) + data[end:]


def outcome_of(work: Callable[[], object]) -> Outcome:
    """Run `work` as the command line would."""
    try:
        return "result", work()
    except InputError as error:
        return "refused" if len(str(error).splitlines()) == 1 else "raised", str(error)
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"


def corruptions(root: Path, count: int, *, seed: int = 0) -> Tally:
    """Damage `count` files, of each of the three folders in turn."""
    corrupter, random = Corrupter(root), Random(seed)
    for number in range(count):
        corrupter.corrupt(FOLDERS[number % len(FOLDERS)], random)
    return corrupter.tally


def page(tally: Tally, seconds: float) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Random corruptions of runs and models", "",
        "Made by `scripts/soak/corruptions`. One file of a finished run, of an interrupted run or of a saved model is",
        "truncated, emptied or deleted, grows by junk, or a bit, a range of zeros or of junk is written over it. Every",
        "command must then refuse in one line or give the result of the undamaged folder, and remove nothing.",
        "`verify` must name the file, but for damage that is none: what lies beyond the counted part of the log, a",
        "card that was edited, JSON of the same content.", "",
        f"{datetime.date.today()}, {platform.platform()}, Python {platform.python_version()}, torch "
        f"{torch.__version__}, commit {environment.git_commit()}; {seconds:.0f} s.", "",
        "| folder | command | refused | equal | different | raised |", "| --- | --- | --: | --: | --: | --: |",
    ]  # fmt: skip
    for folder, command in sorted({key[:2] for key in tally.outcomes if key[1] != "verify"}):
        counts = [tally.outcomes[folder, command, word] for word in ("refused", "equal", "different", "raised")]
        lines.append(f"| {folder} | {command} | {' | '.join(map(str, counts))} |")
    lines += ["", "| folder | corruptions | named by verify | without effect |", "| --- | --: | --: | --: |"]
    for folder in FOLDERS:
        counts = [tally.corruptions[folder], *(tally.outcomes[folder, "verify", word] for word in ("named", "unseen"))]
        lines.append(f"| {folder} | {' | '.join(map(str, counts))} |")
    lines += ["", f"{sum(tally.corruptions.values())} corruptions, {len(tally.failures)} failures."]
    return "\n".join([*lines, *(f"- {one}" for one in tally.failures)]) + "\n"


def _after_two() -> Callable[[object], None]:
    """Return a callback that ends the process once two epochs are logged and the first of them is saved."""
    seen = iter((False, True))

    def reach(record: object) -> None:
        if next(seen):
            os._exit(KILLED)

    return reach


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak/corruptions", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="corruptions (1000)")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn (0)")
    parser.add_argument("--folder", type=Path, help="where the runs lie; a file system in memory makes it faster")
    parser.add_argument("-o", "--output", type=Path, help="where the table goes, as Markdown")
    given = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="aadml-corruptions-", dir=given.folder) as root:
        tally = corruptions(Path(root).resolve(), given.count, seed=given.seed)
    text = page(tally, time.perf_counter() - began)
    if given.output:
        given.output.write_text(text, encoding="utf-8")
    print(text)
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main())
