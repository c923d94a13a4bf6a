"""Status of a running, killed or finished extraction job, from the notes in its ledger."""

import os
import shlex
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.shard_names import absent_shards, named_shards
from aadml.feature_extraction.ledger.ledger import RECORDS, is_in_use
from aadml.feature_extraction.ledger.notes import Beginning, Progress, notes_of

State = Literal["running", "stopped", "finished"]

WINDOW = 300.0
"""Seconds over which the current rate is computed."""
_LISTED = 100  # shards that were not started


@dataclass(frozen=True)
class Status:
    """Status of a job, from the notes in its ledger. A killed job may have done slightly more than noted.

    Attributes:
        path: feature file of the job.
        state: `running`, `stopped` (killed or interrupted, or several shards of which some were not started) or
            `finished` (the file is written, or every clip failed).
        clips: number of clips of the job or shard. For several shards, the sum over the shards; if some of them were
            not started, `total` instead, unless `total` is 0.
        done: number of clips done, including failed and reused clips.
        failed: reason -> number of clips.
        reused: number of clips that the latest process took from the ledger.
        rate: clips per second over the last five minutes, without reused clips; None if no clip was done in that
            time. For several shards, the sum over the running shards.
        rate_overall: clips per second over the total time of all processes of the job; None if no clip was done,
            and for several shards.
        seconds_left: remaining seconds at `rate`, or at `rate_overall` if `rate` is None; 0 if all clips are done, and
            None if there is no rate. For several shards, the longest time of a shard; None if the time of a shard is
            None or a shard was not started.
        command: command of aadml that continues a stopped job, quoted for a shell; "" for a job started from Python,
            and for several shards.
        folder: working directory of the command; "" for several shards.
        shards: status of each shard, if `path` is the common name of several shards.
        not_started: shards without a work folder and a file beside the others, such as "1/4"; at most 100.
        total: number of clips of all shards of the job; 0 in older ledgers.
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
    not_started: tuple[str, ...] = ()
    total: int = 0


def status(output: str | os.PathLike[str]) -> Status:
    """Return the status of an extraction job.

    Args:
        output: feature file of a job or of a shard. For the common name of several shards, their counts are summed.

    Raises:
        InputError: there is no job with that output, or its ledger is empty or of another version.
    """
    place = Path(output)
    if place.is_dir():
        raise InputError(f"{place} is a folder; pass the output of `aadml extract`")
    if _work(place).is_dir():
        return _of_job(place)
    shards = tuple(_of_job(path.with_suffix("")) for path in named_shards(place, ".work"))
    if not shards:
        raise InputError(
            f"{place}: no extraction was started (there is no {_work(place).name} beside it); "
            "pass the output of `aadml extract`"
        )
    return _summed(place, shards, tuple(islice(absent_shards(place, ("", ".work")), _LISTED)))


def _of_job(place: Path) -> Status:
    records = _work(place) / RECORDS
    if not records.is_file():
        raise InputError(
            f"{place}: {_work(place)} contains no ledger of this version; use the version of aadml that started the job"
        )
    running = is_in_use(records)
    processes: list[tuple[Beginning, list[Progress]]] = []
    for note in notes_of(records):
        if isinstance(note, Beginning):
            processes.append((note, []))
        elif processes:
            processes[-1][1].append(note)
    if not processes:
        raise InputError(f"{place}: {records} does not describe a job; run the command of the extraction again")
    seconds = sum(max(0.0, notes[-1].at - beginning.at) for beginning, notes in processes if notes)
    overall = sum(notes[-1].worked for _, notes in processes if notes) / seconds if seconds else None
    beginning, notes = processes[-1]
    last = notes[-1] if notes else Progress(beginning.at, 0)
    finished = last.finished and (place.is_file() or sum(last.failed.values()) == last.done)
    rate = _rate([Progress(beginning.at, 0), *notes], time.time() if running else last.at)
    left, speed = beginning.clips - last.done, rate or overall
    return Status(
        path=str(place),
        state="running" if running else "finished" if finished else "stopped",
        clips=beginning.clips,
        done=last.done,
        failed=last.failed,
        reused=last.reused,
        rate=rate,
        rate_overall=overall or None,
        seconds_left=0.0 if left <= 0 else left / speed if speed else None,
        command=_command(beginning.command),
        folder=beginning.folder,
        total=beginning.total,
    )


def _command(line: str) -> str:
    """Return a command of aadml, quoted for a shell; "" for any other text, since a ledger may be from a stranger."""
    try:
        words = shlex.split(line)
    except ValueError:
        return ""
    return shlex.join(words) if words[:1] == ["aadml"] else ""


def _rate(notes: Sequence[Progress], now: float) -> float | None:
    """Return the clips per second, without reused clips; None if no clip was done.

    The measured time begins at the latest note that is more than `WINDOW` seconds older than the last note, or at
    the first note. The time ends at `now`.
    """
    last = notes[-1]
    start = notes[max(0, bisect_left(notes, last.at - WINDOW, key=lambda note: note.at) - 1)]
    worked = last.worked - start.worked
    return worked / max(now - start.at, 1e-3) if worked > 0 else None


def _summed(place: Path, shards: Sequence[Status], not_started: tuple[str, ...] = ()) -> Status:
    states = [*(shard.state for shard in shards), *("stopped" for _ in not_started)]
    rates = [shard.rate for shard in shards if shard.rate is not None and shard.state == "running"]
    left = [*(shard.seconds_left for shard in shards), *(None for _ in not_started)]
    known = [seconds for seconds in left if seconds is not None]
    total = max(shard.total for shard in shards)
    return Status(
        path=str(place),
        state="running" if "running" in states else "stopped" if "stopped" in states else "finished",
        clips=(not_started and total) or sum(shard.clips for shard in shards),
        done=sum(shard.done for shard in shards),
        failed=dict(sum((Counter(shard.failed) for shard in shards), Counter[str]())),
        reused=sum(shard.reused for shard in shards),
        rate=sum(rates) if rates else None,
        seconds_left=max(known) if len(known) == len(left) else None,
        shards=tuple(shards),
        not_started=not_started,
        total=total,
    )


def _work(place: Path) -> Path:
    return place.with_name(f"{place.name}.work")
