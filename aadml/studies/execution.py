"""How the runs of a study are carried out: over processes and machines, models that others need first, and merges."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json
from aadml.feature_extraction.ground.strings import Note
from aadml.feature_extraction.jobs.shard_names import read_shard
from aadml.reports.tables import Table, as_json, markdown
from aadml.studies.job import Job, is_done
from aadml.studies.sweep import SweepOutcome, sweep

_SHOWN = 5
log = logging.getLogger("aadml").info
"""Default of `on_note`."""
RunJobs = Callable[[Sequence[Job], int | None], list[SweepOutcome]]
"""(jobs, worker processes) -> one outcome per job; a command line puts a progress bar around it."""


@dataclass(frozen=True, repr=False)
class SweepResult:
    """Result of a study.

    Attributes:
        outcomes: one per run.
        folder: of runs, tables and figures.
        tables: of the results; none from a shard.
        page: the HTML page; None from a shard, or without matplotlib.
    """

    outcomes: tuple[SweepOutcome, ...]
    folder: Path
    tables: tuple[Table, ...]
    page: Path | None

    @property
    def failed(self) -> int:
        """Number of failed runs; the same call again retries them."""
        return sum(bool(outcome.reason) for outcome in self.outcomes)

    def __repr__(self) -> str:
        return "\n".join([*map(markdown, self.tables), str(self.page or self.folder)])

    def to_dict(self) -> Json:
        """Return the tables as `--json` prints them: one, or a list of several."""
        tables = [as_json(table) for table in self.tables]
        return tables[0] if len(tables) == 1 else tables


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How the runs of a study are carried out.

    Attributes:
        folder: of the study.
        workers: processes; 0 runs in this process, None takes one per core.
        shard: (i, n) trains every n-th run from the i-th on, so that each shard has its part of the long ones.
        merge: train nothing, and require that all runs are finished.
        work: runs jobs.
        note: called with notes for the user.
        command: that repeats the study, for its page.
    """

    folder: Path
    workers: int | None = None
    shard: tuple[int, int] | None = None
    merge: bool = False
    work: RunJobs = sweep
    note: Note = log
    command: str = ""

    @property
    def locked(self) -> Path:
        """Folder that no other process may use meanwhile: each shard has one of its own."""
        return self.folder / f"shard-{self.shard[0]}-of-{self.shard[1]}" if self.shard else self.folder

    def result(
        self, outcomes: Sequence[SweepOutcome], tables: Sequence[Table] = (), page: Path | None = None
    ) -> SweepResult:
        """Return the result of the study; without tables and page from a shard."""
        return SweepResult(tuple(outcomes), self.folder, tuple(tables), page)

    def part(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the runs of this shard, or all."""
        return list(jobs[self.shard[0] :: self.shard[1]]) if self.shard else list(jobs)

    def train(self, jobs: Sequence[Job], order: Callable[[list[Job]], list[Job]] = list) -> list[SweepOutcome]:
        """Train the runs of this shard, or all; a merge trains nothing.

        Args:
            jobs: all runs of the study.
            order: puts the runs that are trained here in order.

        Raises:
            InputError: a merge lacks runs.
        """
        if self.merge:
            complete = with_needed(jobs)
            check_complete(complete)
            return [SweepOutcome(job, kept=True) for job in complete]
        outcomes = work_off_needed(order(self.part(jobs)), self.workers, self.work)
        if self.shard:
            done = sum(not outcome.reason for outcome in outcomes)
            self.note(
                f"shard {self.shard[0]}/{self.shard[1]}: {done} of its {len(outcomes)} runs are finished; once all "
                "shards are, copy their folders into one and run the same command with --merge instead of --shard"
            )
        return outcomes


def shard_of(shard: str | None, *, merge: bool) -> tuple[int, int] | None:
    """Parse "i/n" of `--shard`.

    Raises:
        InputError: another notation, no such shard, or a shard together with a merge.
    """
    if shard and merge:
        raise InputError("--shard and --merge: a shard trains its runs, merge trains none; give one of them")
    return read_shard(shard) if shard else None


def check_complete(jobs: Sequence[Job]) -> None:
    """Raise InputError if runs are not finished, with their number and the first names."""
    missing = [job.folder for job in jobs if not is_done(job)]
    if missing:
        some = ", ".join(f"{folder.parent.parent.name}/{folder.name}" for folder in missing[:_SHOWN])
        more = " ..." if len(missing) > _SHOWN else ""
        raise InputError(
            f"--merge: {len(missing)} of {len(jobs)} runs are not finished ({some}{more}); copy the folders of the "
            "other shards into this one, or leave --merge out to train what is missing"
        )


def with_needed(jobs: Sequence[Job]) -> list[Job]:
    """Return jobs and the jobs that they need, each once."""
    return list({str(job.folder): job for wanted in jobs for job in (wanted, wanted.needs) if job}.values())


def work_off_needed(jobs: Sequence[Job], workers: int | None, work: RunJobs) -> list[SweepOutcome]:
    """Run the jobs that others need, then the others, each once; a job whose needed job failed is not tried.

    Args:
        jobs: with or without needs.
        workers: processes.
        work: runs jobs.

    Returns:
        One outcome per job, needed ones included.
    """
    first = {str(job.needs.folder): job.needs for job in jobs if job.needs}
    outcomes = work(list(first.values()), workers) if first else []
    failed = {str(outcome.job.folder): outcome.reason for outcome in outcomes if outcome.reason}
    rest, lost = [], []
    for folder, job in {str(job.folder): job for job in jobs}.items():
        if folder in first:
            continue
        reason = failed.get(str(job.needs.folder)) if job.needs else None
        if job.needs and reason:
            lost.append(SweepOutcome(job, f"{job.needs.folder.name}, which it needs, failed: {reason}"))
        else:
            rest.append(job)
    return [*outcomes, *work(rest, workers), *lost]
