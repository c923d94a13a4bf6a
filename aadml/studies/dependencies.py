"""Runs that need the model of another run first: that one is trained once, before those that need it."""

from collections.abc import Callable, Sequence

from aadml.studies.job import Job
from aadml.studies.sweep import SweepOutcome

Work = Callable[[Sequence[Job], int | None], list[SweepOutcome]]
"""(jobs, worker processes) -> one outcome a job."""


def with_needed(jobs: Sequence[Job]) -> list[Job]:
    """List jobs and those that they need, each once."""
    return list({str(job.folder): job for one in jobs for job in (one, one.needs) if job}.values())


def work_off_needed(jobs: Sequence[Job], workers: int | None, work: Work) -> list[SweepOutcome]:
    """Run the models that others need, then the others, each once; what needs a failed one is not tried.

    Args:
        jobs: what is asked for.
        workers: processes.
        work: runs jobs.

    Returns:
        One outcome a job, of those that were needed too.
    """
    first = {str(job.needs.folder): job.needs for job in jobs if job.needs}
    outcomes = work(list(first.values()), workers) if first else []
    failed = {str(one.job.folder): one.reason for one in outcomes if one.reason}
    rest, lost = [], []
    for job in (job for place, job in {str(job.folder): job for job in jobs}.items() if place not in first):
        reason = failed.get(str(job.needs.folder)) if job.needs else None
        if job.needs and reason:
            lost.append(SweepOutcome(job, f"{job.needs.folder.name}, which it needs, failed: {reason}"))
        else:
            rest.append(job)
    return [*outcomes, *work(rest, workers), *lost]
