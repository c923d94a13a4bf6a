"""One run of many: worked off in any process; its failure is caught and recorded."""

import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aadml.configuration.config import Config
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks, Record
from aadml.retrieval.record import EvaluationRecord
from aadml.runs.evaluate import evaluate, evaluate_under_each
from aadml.runs.loading import read_evaluation
from aadml.runs.manifest import is_finished, read_manifest
from aadml.runs.run_names import evaluation_file
from aadml.runs.scoring import Scoring
from aadml.runs.train import train_into

FAILURE = "failure.txt"
SAVING_SHARE = 20
"""Saving takes at most one part in so many of a sweep's time; a kill costs some seconds of each run under way."""
Note = Callable[[int, int], None]
"""Called with (epochs done, epochs)."""


@dataclass(frozen=True)
class Job:
    """A run to be done.

    Attributes:
        folder: where.
        config: what.
        split: that is scored: "test", or "valid" for a trial of a search.
        metrics: that are scored beside those of every evaluation.
        protocols: under which it is scored too, once it is trained.
        diagnosis: epochs between two looks at the test clips, for figures of epochs alone; see `Scoring`.
        needs: the run whose model its method needs trained first; None leaves it to the run itself, in its own folder.
    """

    folder: Path
    config: Config
    split: str = "test"
    metrics: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    diagnosis: int = 0
    needs: "Job | None" = None


def is_done(job: Job) -> bool:
    """Tell whether a run is trained and scored by every metric and under every protocol."""
    return is_finished(job.folder) and not _missing(job, scored(job)) and not _missing_protocols(job)


def scored(job: Job) -> EvaluationRecord:
    """Read the evaluation of a finished run, with the figures that were added to it later.

    Raises:
        InputError: not finished, or damaged.
    """
    record = read_evaluation(job.folder)
    missing = _missing(job, record)
    name = evaluation_file(record.protocol, job.split, *missing)
    if not missing or name not in read_manifest(job.folder).files:
        return record
    return record.with_figures(missing, read_evaluation(job.folder, name=name))


def _missing(job: Job, record: EvaluationRecord) -> tuple[str, ...]:
    return tuple(metric for metric in job.metrics if record.figure(metric) is None)


def scored_under(job: Job, protocol: str) -> EvaluationRecord:
    """Read the evaluation of a finished run under one of its further protocols.

    Raises:
        InputError: not there, or damaged.
    """
    return read_evaluation(job.folder, name=evaluation_file(protocol, job.split))


def _missing_protocols(job: Job) -> tuple[str, ...]:
    there = read_manifest(job.folder).files
    return tuple(one for one in job.protocols if evaluation_file(one, job.split) not in there)


def work_off(job: Job, note: Note | None = None) -> str:
    """Do a run, or continue it.

    Args:
        job: what.
        note: called after every epoch.

    Returns:
        Why it failed, empty where it did not. The whole story of an error nobody expected goes to `failure.txt`.
    """
    epochs = {"done": 0, "total": job.config.training.epochs}

    def planned(total: int, done: int) -> None:
        epochs.update(done=done, total=total)

    def logged(record: Record) -> None:
        epochs["done"] = int(record["epoch"])
        if note:
            note(epochs["done"], epochs["total"])

    try:
        if not is_done(job):
            callbacks = Callbacks(on_plan=planned, on_epoch=logged)
            # a process that outlived its parent may still be at it: wait
            scoring = Scoring(
                job.split, queries=True, metrics=job.metrics, diagnosis=job.diagnosis, saving_share=SAVING_SHARE
            )
            train_into(
                job.config, job.folder, scoring, callbacks=callbacks, wait=True,
                priors=job.needs.folder.parent if job.needs else None,
            )  # fmt: skip
            if missing := _missing(job, scored(job)):  # trained before anybody asked for them
                evaluate(job.folder, split=job.split, metrics=missing)
            if protocols := _missing_protocols(job):
                evaluate_under_each(job.folder, protocols, split=job.split)
        if (job.folder / FAILURE).exists():
            (job.folder / FAILURE).unlink()
    except InputError as error:
        return _failed(job, " ".join(str(error).split()), "")
    except Exception as error:  # whatever one run does, it costs one run
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return _failed(job, reason, traceback.format_exc())
    return ""


def _failed(job: Job, reason: str, story: str) -> str:
    with suppress(InputError):  # a full disk may be the failure
        write_text(job.folder / FAILURE, f"{reason}\n{story}")
    return reason
