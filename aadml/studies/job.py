"""One run of a study. It can run in any process, and its failure is caught and recorded."""

import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aadml.configuration.config import Config
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks
from aadml.retrieval.record import CONDITIONS, EvaluationRecord
from aadml.runs.data import with_absolute_paths
from aadml.runs.evaluate import evaluate
from aadml.runs.loading import read_evaluation
from aadml.runs.manifest import is_finished, read_manifest
from aadml.runs.protocol_scores import evaluate_under_each
from aadml.runs.run_names import EVALUATIONS, evaluation_file
from aadml.runs.scoring import Scoring
from aadml.runs.train import train_into

FAILURE = "failure.txt"
SAVING_SHARE = 20
"""Saving takes at most 1 / SAVING_SHARE of the time, so that a killed process loses only seconds of a run."""


@dataclass(frozen=True)
class Job:
    """One run of a study.

    Attributes:
        folder: folder of the run.
        config: config of the run; relative paths of its data and judgments become absolute.
        split: scored split: "test", or "valid" for a trial of a search.
        metrics: metrics in addition to those of every evaluation.
        protocols: protocols under which the trained model is scored, in addition to the protocol of its config.
        diagnosis: number of epochs between two scores of the test clips for figures, 0 for none; see `Scoring`.
        needs: run of the pretrained model. None: the model, if required, is trained in the folder of this run.
    """

    folder: Path
    config: Config
    split: str = "test"
    metrics: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    diagnosis: int = 0
    needs: "Job | None" = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", with_absolute_paths(self.config))


def is_done(job: Job) -> bool:
    """Return whether a run is trained, and scored by every metric and under every protocol.

    Raises:
        InputError: the run is damaged.
    """
    return is_finished(job.folder) and not _missing(job, scored(job)) and not _missing_protocols(job)


def recorded_failure(job: Job) -> str:
    """Return the first line of `failure.txt`, which is the reason of a failure; "" without this file."""
    path = job.folder / FAILURE
    words = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    return words[0] if words else ""


def scored(job: Job) -> EvaluationRecord:
    """Read the evaluation of a finished run, with the metrics of later evaluations under the same conditions.

    Raises:
        InputError: the run is not finished, or is damaged.
    """
    record = read_evaluation(job.folder)
    for name in read_manifest(job.folder).files if _missing(job, record) else ():
        if name.startswith(f"{EVALUATIONS}/"):
            other = read_evaluation(job.folder, name=name)
            if all(getattr(other, field) == getattr(record, field) for field in CONDITIONS):
                record = record.with_figures(_missing(job, record), other)
    return record


def _missing(job: Job, record: EvaluationRecord) -> tuple[str, ...]:
    return tuple(metric for metric in job.metrics if record.figure(metric) is None)


def scored_under(job: Job, protocol: str) -> EvaluationRecord:
    """Read the evaluation of a finished run under a protocol of `Job.protocols`.

    Raises:
        InputError: the evaluation is missing or damaged.
    """
    return read_evaluation(job.folder, name=evaluation_file(protocol, job.split))


def _missing_protocols(job: Job) -> tuple[str, ...]:
    files = read_manifest(job.folder).files
    return tuple(protocol for protocol in job.protocols if evaluation_file(protocol, job.split) not in files)


def work_off(job: Job, report: Callable[[tuple[int, int]], None] = lambda epochs: None) -> str:
    """Start or continue a run, and return the reason of a failure.

    Args:
        job: the run.
        report: called with (epochs done, epochs) after every epoch.

    Returns:
        Reason of a failure; "" for a finished run. The reason is also written to `failure.txt`, with the traceback
        of an unexpected error.
    """
    total = job.config.training.epochs

    def planned(epochs: int, done: int) -> None:
        nonlocal total
        total = epochs

    try:
        if not is_done(job):
            callbacks = Callbacks(on_plan=planned, on_epoch=lambda record: report((int(record["epoch"]), total)))
            scoring = Scoring(
                job.split, queries=True, metrics=job.metrics, diagnosis=job.diagnosis, saving_share=SAVING_SHARE
            )
            priors = job.needs.folder.parent if job.needs else None
            train_into(job.config, job.folder, scoring, callbacks=callbacks, priors=priors)
            if missing := _missing(job, scored(job)):  # metrics that were added after training
                evaluate(job.folder, split=job.split, metrics=missing)
            if protocols := _missing_protocols(job):
                evaluate_under_each(job.folder, protocols, split=job.split)
        (job.folder / FAILURE).unlink(missing_ok=True)
    except Exception as error:  # an error fails only this run
        is_input = isinstance(error, InputError)
        reason = " ".join((str(error) if is_input else f"{type(error).__name__}: {error}").split())
        with suppress(InputError):  # a full disk may be the failure
            write_text(job.folder / FAILURE, f"{reason}\n{'' if is_input else traceback.format_exc()}")
        return reason
    return ""
