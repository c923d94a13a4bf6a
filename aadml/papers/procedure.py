"""How a reproduction is carried out, whatever paper it is of: forecast, shards, merges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.papers.cost import Forecast, forecast
from aadml.studies.dependencies import with_needed, work_off_needed
from aadml.studies.job import Job
from aadml.studies.shards import WHOLE, Division
from aadml.studies.sweep import SweepOutcome, worker_count
from aadml.studies.sweep_result import RunJobs

Note = Callable[[str], None]
Confirm = Callable[[Forecast], None]
"""Called with the forecast before anything is trained; it may refuse by an InputError."""


@dataclass(frozen=True, kw_only=True)
class ReproductionPlan:
    """How a reproduction is carried out; see `aadml.papers.reproduction`."""

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
    division: Division = WHOLE
    command: str = ""

    @property
    def owned(self) -> Path:
        """Give the folder that no other process may work in meanwhile."""
        return self.division.owned(self.folder)


def worked_off(jobs: Sequence[Job], plan: ReproductionPlan) -> list[SweepOutcome]:
    """Train what is missing of the runs, or of a shard of them; with a merge nothing, and nothing may be missing."""
    return plan.division.worked_off(jobs, lambda own: _trained(own, plan), plan.note, with_needed)


def _trained(own: Sequence[Job], plan: ReproductionPlan) -> list[SweepOutcome]:
    expected = forecast(with_needed(own), worker_count(plan.workers, own), plan.note)
    if expected.seconds:
        plan.note(f"forecast: {expected.sentence()}")
        plan.confirm(expected)
    return work_off_needed(expected.longest_first(own), plan.workers, plan.work)
