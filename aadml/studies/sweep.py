"""Execution of many runs in several processes. A failed run does not stop the others.

Each process trains several runs in turn, because starting a process is expensive. The only state of a run is its
folder. The next call keeps finished runs, continues interrupted runs and retries failed runs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.worker_pool import Finished, Lost, WorkerPool, processors
from aadml.feature_extraction.ground.worker_process import Conditions, Work
from aadml.runs.manifest import is_run, read_manifest
from aadml.runs.train import continued_config
from aadml.studies.job import Job, is_done, work_off

T = TypeVar("T")


NOT_POSSIBLE = "not possible: "
"""First words of the reason of a run that cannot be trained on its data."""
LOST = "the process ended with "
"""First words of the reason of a run whose process ended early."""


@dataclass(frozen=True)
class SweepOutcome:
    """Outcome of a run.

    Attributes:
        job: the run.
        reason: reason of a failure; empty if the run is finished.
        was_finished: whether the run was already finished.
    """

    job: Job
    reason: str = ""
    was_finished: bool = False

    @property
    def failed(self) -> bool:
        """Whether the run failed; False for a run that cannot be trained on its data."""
        return bool(self.reason) and not self.reason.startswith(NOT_POSSIBLE)


def sweep(
    jobs: Sequence[Job],
    workers: int | None = None,
    *,
    on_outcome: Callable[[SweepOutcome], None] = lambda outcome: None,
    on_epoch: Callable[[Job, int, int], None] = lambda job, done, epochs: None,
) -> list[SweepOutcome]:
    """Run all jobs.

    Args:
        jobs: the runs, each in a separate folder.
        workers: number of processes; 0 is this process. Several processes use one thread each. None starts one process
            per core, or a single process on a GPU.
        on_outcome: called with the outcome of each run: finished now or earlier, or failed.
        on_epoch: called with (job, epochs done, epochs) after every epoch.

    Returns:
        One outcome per job, in the order of the jobs.

    Raises:
        InputError: a folder contains a run of a different config, or a damaged run.
    """
    outcomes: dict[Path, SweepOutcome] = {}

    def settle(outcome: SweepOutcome) -> None:
        outcomes[outcome.job.folder] = outcome
        on_outcome(outcome)

    def report(job: Job, epochs: tuple[int, int]) -> None:
        on_epoch(job, *epochs)

    for job in jobs:
        if is_run(job.folder):
            continued_config(read_manifest(job.folder), job.config)
    waiting = []
    for job in jobs:
        if is_done(job):
            settle(SweepOutcome(job, was_finished=True))
        else:
            waiting.append(job)
    for job, reason in in_processes(work_off, waiting, worker_count(workers, waiting), report):
        settle(SweepOutcome(job, reason))
    return [outcomes[job.folder] for job in jobs]


def in_processes(
    work: Work[T], tasks: Iterable[T], workers: int, report: Callable[[T, Any], None] = lambda task, value: None
) -> Iterator[tuple[T, Any]]:
    """Run tasks in processes; several processes use one thread each.

    Args:
        work: (task, report) -> result.
        tasks: tasks that can be pickled.
        workers: number of processes; 0 is this process.
        report: called with a task and a value that `work` reports.

    Yields:
        Each task with its result, as soon as the task is finished. If the process died, the result is a sentence with
        the reason.
    """
    if not workers:
        yield from ((task, work(task, partial(report, task))) for task in tasks)
        return
    with WorkerPool(work, workers, Conditions(one_thread=workers > 1)) as pool:
        for event in pool.work_off(tasks):
            if isinstance(event, Finished):
                yield event.task, event.value
            elif isinstance(event, Lost):
                memory = " (out of memory?)" if event.ending == "SIGKILL" else ""
                yield event.task, f"{LOST}{event.ending}{memory}"
            else:
                report(event.task, event.value)


def worker_count(workers: int | None, jobs: Sequence[Job]) -> int:
    """Return the number of processes for jobs; see `sweep`."""
    if workers is None:
        on_gpu = any(chosen_device(job.config.common.device, "config").type != "cpu" for job in jobs[:1])
        workers = 1 if on_gpu else processors()
    return min(workers, len(jobs))
