"""How far an extraction job is, from what it notes in its ledger; the job may run, or have been killed."""

import os
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.shard_names import named_shards
from aadml.feature_extraction.ledger import RECORDS, Beginning, Progress, is_in_use, notes_of

State = Literal["running", "stopped", "finished"]

WINDOW = 300.0
"""Seconds over which the latest rate is taken."""


@dataclass(frozen=True)
class Status:
    """How far a job is; what it notes about once a second, so a killed one may have done a little more.

    Attributes:
        path: its feature file.
        state: `running`; `stopped` (killed or interrupted); `finished` (the file is written).
        clips: that the job has.
        done: clips done, those that failed and those that were known among them.
        failed: reason -> clips.
        reused: clips that the latest process did not have to do.
        rate: clips a second over the last five minutes, without those that were known; None where nothing was done.
        rate_overall: the same over all the time that processes worked on the job.
        seconds_left: until all clips are done, at the latest rate; None where that is unknown.
        command: with which a job that stopped goes on; empty if it was begun in Python or is one of several shards.
        folder: in which the command was given.
        shards: the shards of the job, where `path` itself was never written.
    """

    path: str
    state: State
    clips: int
    done: int
    failed: Mapping[str, int]
    reused: int = 0
    rate: float | None = None
    rate_overall: float | None = None
    seconds_left: float | None = None
    command: str = ""
    folder: str = ""
    shards: tuple["Status", ...] = ()


def status(output: str | os.PathLike[str]) -> Status:
    """Tell how far an extraction job is.

    Args:
        output: the feature file that `extract` was told to make, of the whole job or of a shard; or the name that was
            given to all shards, which are summed up.

    Returns:
        The status.

    Raises:
        InputError: no job was begun there, or by another version.
    """
    place = Path(output)
    if place.is_dir():
        raise InputError(f"{place}: is a folder; give the name of the feature file that `extract` was told to make")
    if _work(place).is_dir():
        return _of_job(place)
    shards = tuple(_of_job(path.with_suffix("")) for path in named_shards(place, ".work"))
    if not shards:
        raise InputError(f"{place}: no extraction was begun: there is no {_work(place).name} beside it")
    return _summed(place, shards)


@dataclass
class _Notes:
    """What a ledger's notes come to."""

    beginning: Beginning | None = None
    progress: Progress | None = None
    seconds: float = 0.0
    worked: int = 0
    recent: deque[tuple[float, int]] = field(default_factory=deque)

    def take(self, note: Beginning | Progress) -> None:
        """Take the next note."""
        if isinstance(note, Beginning):
            self.beginning, self.progress = note, None
            self.recent = deque([(note.at, 0)])
            return
        last, before = self.recent[-1] if self.recent else (note.at, 0)
        worked = note.done - note.reused
        self.seconds += max(0.0, note.at - last)
        self.worked += max(0, worked - before)
        self.recent.append((note.at, worked))
        while len(self.recent) > 2 and self.recent[1][0] < note.at - WINDOW:
            self.recent.popleft()
        self.progress = note

    def rate(self, now: float) -> float | None:
        """Give the clips a second of the last minutes before a moment."""
        if not self.recent:
            return None
        (begin, before), (_, worked) = self.recent[0], self.recent[-1]
        return (worked - before) / max(now - begin, 1e-3) if worked > before else None


def _of_job(place: Path) -> Status:
    records = _work(place) / RECORDS
    if not records.is_file():
        raise InputError(f"{place}: {_work(place)} holds no ledger that this version can read")
    running = is_in_use(records)
    notes = _Notes()
    for note in notes_of(records):
        notes.take(note)
    beginning, last = notes.beginning, notes.progress
    if beginning is None:
        raise InputError(f"{place}: {records} does not say what job it is of; run its command again")
    last = last or Progress(beginning.at, 0)
    finished = last.finished and (place.is_file() or sum(last.failed.values()) == last.done)
    rate = notes.rate(time.time() if running else last.at)
    overall = notes.worked / notes.seconds if notes.worked and notes.seconds else None
    left, speed = beginning.clips - last.done, rate or overall
    return Status(
        path=str(place),
        state="running" if running else "finished" if finished else "stopped",
        clips=beginning.clips,
        done=last.done,
        failed=last.failed,
        reused=last.reused,
        rate=rate,
        rate_overall=overall,
        seconds_left=0.0 if left <= 0 else left / speed if speed else None,
        command=beginning.command,
        folder=beginning.folder,
    )


def _summed(place: Path, shards: Sequence[Status]) -> Status:
    failed: Counter[str] = Counter()
    for one in shards:
        failed.update(one.failed)
    states = [one.state for one in shards]
    rates = [one.rate for one in shards if one.rate is not None and one.state == "running"]
    left = [one.seconds_left for one in shards]
    known = [seconds for seconds in left if seconds is not None]
    return Status(
        path=str(place),
        state="running" if "running" in states else "stopped" if "stopped" in states else "finished",
        clips=sum(one.clips for one in shards),
        done=sum(one.done for one in shards),
        failed=dict(failed),
        reused=sum(one.reused for one in shards),
        rate=sum(rates) if rates else None,
        seconds_left=max(known) if len(known) == len(left) else None,
        shards=tuple(shards),
    )


def _work(place: Path) -> Path:
    return place.with_name(f"{place.name}.work")
