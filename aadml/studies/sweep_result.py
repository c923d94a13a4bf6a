"""What an ablation or a comparison came to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aadml.reports.tables import Table
from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome, sweep

RunJobs = Callable[[Sequence[Job], int | None], list[SweepOutcome]]
"""(jobs, worker processes) -> one outcome per job; a command line puts a progress bar around it."""


@dataclass(frozen=True)
class SweepResult:
    """What an ablation or a comparison came to.

    Attributes:
        tables: of the results.
        outcomes: one per run.
        folder: that holds runs, tables and figures.
        page: the HTML page; None without matplotlib.
    """

    tables: tuple[Table, ...]
    outcomes: tuple[SweepOutcome, ...]
    folder: Path
    page: Path | None

    @property
    def failed(self) -> int:
        """Count the runs that failed; running the same call again retries them."""
        return sum(bool(outcome.reason) for outcome in self.outcomes)


def run_jobs(jobs: Sequence[Job], workers: int | None) -> list[SweepOutcome]:
    """Run all jobs without reporting progress."""
    return sweep(jobs, workers=workers)
