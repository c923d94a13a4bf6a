"""How a reproduction is carried out, whatever paper it is of: forecast, shards, merges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.reports.sweep_result import RunJobs
from aadml.sweeps.job import Job
from aadml.sweeps.needed import with_needed, work_off_needed
from aadml.sweeps.reproduce.cost import Forecast, forecast
from aadml.sweeps.reproduce.shards import check_complete, of_shard
from aadml.sweeps.sweep import Outcome, worker_count

Note = Callable[[str], None]
Confirm = Callable[[Forecast], None]
"""Called with the forecast before anything is trained; it may refuse by an InputError."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a reproduction is carried out; see `aadml.reports.reproduction.reproduce`."""

    seeds: range
    folder: Path
    work: RunJobs
    confirm: Confirm
    note: Note
    quick: bool = False
    config: str | None = None
    settings: Sequence[str] = ()
    max_epochs: int | None = None
    device: str | None = None
    workers: int | None = None
    shard: tuple[int, int] | None = None
    merge: bool = False
    command: str = ""

    @property
    def owned(self) -> Path:
        """Give the folder that no other process may work in meanwhile: each shard has one of its own."""
        return self.folder / f"shard-{self.shard[0]}-of-{self.shard[1]}" if self.shard else self.folder


def worked_off(jobs: Sequence[Job], plan: Plan) -> list[Outcome]:
    """Train what is missing of the runs, or of a shard of them; with `merge` nothing, and nothing may be missing."""
    if plan.merge:
        whole = with_needed(jobs)
        check_complete(whole)
        return [Outcome(job, kept=True) for job in whole]
    own = of_shard(jobs, plan.shard) if plan.shard else list(jobs)
    expected = forecast(with_needed(own), worker_count(plan.workers, own), plan.note)
    if expected.seconds:
        plan.note(f"forecast: {expected.sentence()}")
        plan.confirm(expected)
    outcomes = work_off_needed(expected.longest_first(own), plan.workers, plan.work)
    if plan.shard:
        plan.note(_after_shard(plan.shard, outcomes))
    return outcomes


def _after_shard(shard: tuple[int, int], outcomes: Sequence[Outcome]) -> str:
    done = sum(not outcome.reason for outcome in outcomes)
    return (
        f"shard {shard[0]}/{shard[1]}: {done} of its {len(outcomes)} runs are finished; once all shards are, copy "
        "their folders into one and run the same command with --merge instead of --shard"
    )
