"""Many runs, over processes: resumable after a kill, and one that fails does not stop the rest.

Each process works off one run after the other, because starting one is expensive. What a run is lies in its folder
alone: finished runs are kept, interrupted ones are continued, failed ones are tried again by the next call.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from aadml.configuration.config import Config
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.worker_pool import Finished, Lost, WorkerPool, processors
from aadml.feature_extraction.ground.worker_process import Conditions
from aadml.runs.loading import read_config
from aadml.runs.manifest import CONFIG, is_run, read_manifest
from aadml.studies.job import Job, is_done, work_off


@dataclass(frozen=True)
class SweepOutcome:
    """What became of a run.

    Attributes:
        job: the run.
        reason: why it failed; empty where it is finished.
        kept: whether it was finished before.
    """

    job: Job
    reason: str = ""
    kept: bool = False


def sweep(
    jobs: Sequence[Job],
    *,
    workers: int | None = None,
    on_outcome: Callable[[SweepOutcome], None] | None = None,
    on_epoch: Callable[[Job, int, int], None] | None = None,
) -> list[SweepOutcome]:
    """Work off all jobs.

    Args:
        jobs: their folders are theirs alone.
        workers: how many processes, each with one thread where there are several; 0 works in this process; None takes
            one a processor, or one where the device is a GPU.
        on_outcome: called as soon as a run is finished, failed, or found to be finished.
        on_epoch: called with (job, epochs done, epochs) after every epoch.

    Returns:
        One outcome a job, in the order of the jobs.

    Raises:
        InputError: a folder holds a run of another config.
    """
    outcomes: dict[str, SweepOutcome] = {}

    def settle(outcome: SweepOutcome) -> None:
        outcomes[str(outcome.job.folder)] = outcome
        if on_outcome:
            on_outcome(outcome)

    for job in jobs:
        _check_same_config(job)
    waiting = [job for job in jobs if not is_done(job)]
    for job in jobs:
        if is_done(job):
            settle(SweepOutcome(job, kept=True))
    for job, reason in _worked_off(waiting, worker_count(workers, waiting), on_epoch):
        settle(SweepOutcome(job, reason))
    return [outcomes[str(job.folder)] for job in jobs]


def _worked_off(
    jobs: Sequence[Job], workers: int, on_epoch: Callable[[Job, int, int], None] | None
) -> Iterator[tuple[Job, str]]:
    if not workers:
        for job in jobs:
            yield job, work_off(job, partial(on_epoch, job) if on_epoch else None)
        return
    with WorkerPool(_in_process, workers, conditions(workers)) as pool:
        for event in pool.work_off(jobs):
            if isinstance(event, Finished):
                yield event.task, str(event.value)
            elif isinstance(event, Lost):
                memory = " (out of memory?)" if event.ending == "SIGKILL" else ""
                yield event.task, f"its process ended with {event.ending}{memory}"
            elif on_epoch:
                on_epoch(event.task, *event.value)


def _in_process(job: Job, report: Callable[[tuple[int, int]], None]) -> str:
    return work_off(job, lambda done, total: report((done, total)))


def conditions(workers: int) -> Conditions:
    """Give each of several processes one thread."""
    return Conditions(one_thread=workers > 1, setup=_use_one_thread if workers > 1 else None)


def _use_one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def worker_count(workers: int | None, jobs: Sequence[Job]) -> int:
    """Say how many processes work off jobs; see `sweep`."""
    if workers is None:
        on_gpu = any(chosen_device(job.config.common.device, "config").type != "cpu" for job in jobs[:1])
        workers = 1 if on_gpu else processors()
    return min(workers, len(jobs)) if jobs else 0


def _check_same_config(job: Job) -> None:
    if not is_run(job.folder) or CONFIG not in read_manifest(job.folder).files:
        return
    there = read_config(job.folder)
    wanted = job.config.trained_in(there.training.precision)
    if there.yaml() != wanted.yaml():
        changed = _first_difference(there, wanted)
        raise InputError(f"{job.folder}: holds a run of another config ({changed}); choose another --output")


def _first_difference(there: Config, wanted: Config) -> str:
    for key in {**there.values, **wanted.values}:
        if there.values.get(key) != wanted.values.get(key):
            return f"{key}: {there.values.get(key)} there, {wanted.values.get(key)} wanted"
    return "written otherwise"
