"""Estimate of the time that many runs take, from a few measured steps of every kind of run."""

import hashlib
import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.features import Matrix
from aadml.configuration.config import Config, resolve
from aadml.configuration.overrides import with_setting
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.atomic import write_bytes
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import parse_as, to_bytes
from aadml.feature_extraction.ground.strings import Note
from aadml.methods.training.session import EpochWeights, Record, Session, numbers
from aadml.runs.data import load_splits
from aadml.runs.prepare import untrained_model
from aadml.runs.test_curve import Diagnosis
from aadml.studies.job import Job, is_done
from aadml.studies.sweep import in_processes

WORTH_ASKING = 3600.0
"""Smallest estimated duration, in seconds, that the user must confirm before the work begins."""
_BATCHES = 2
_CAPTIONS = 32
_EPOCHS = 2  # the first epoch is a warm-up
_STARTING = 1.0  # seconds for reading data, building, and writing


@dataclass(frozen=True)
class Rate:
    """Durations of the parts of a run on one worker, and number of training clips of the run.

    Attributes:
        clips: number of training clips per epoch.
        step: seconds of a training step.
        epoch: seconds of an epoch in addition to its steps, for scores of training and validation clips.
        look: seconds to score the test clips.
        fixed: seconds per run for the start, and for the complete fit of a method without epochs.
    """

    clips: int = 0
    step: float = 0.0
    epoch: float = 0.0
    look: float = 0.0
    fixed: float = _STARTING

    def seconds(self, job: Job) -> float:
        """Estimate the duration of a run, in seconds."""
        training = job.config.training
        looks = training.epochs / job.diagnosis if job.diagnosis and self.step else 0.0
        steps = math.ceil(self.clips / training.batch)
        scored = 1 + 2 * len(job.protocols)  # each protocol embeds and ranks again
        epochs = training.epochs if self.step else 0
        return self.fixed + epochs * (steps * self.step + self.epoch) + (looks + scored) * self.look


@dataclass(frozen=True)
class Forecast:
    """Estimated time of the runs that are not finished.

    Attributes:
        seconds: folder of each waiting run -> seconds on one worker.
        finished: number of finished runs.
        workers: number of processes; 0 is this process.
        impossible: folder of a run that cannot be trained -> reason. These runs are not in `seconds`.
    """

    seconds: Mapping[str, float]
    finished: int
    workers: int
    impossible: Mapping[str, str] = field(default_factory=dict)

    @property
    def wall(self) -> float:
        """Estimated seconds until all runs are finished: at least the duration of the longest run."""
        total = sum(self.seconds.values()) / max(self.workers, 1)
        return max([total, *self.seconds.values()], default=0.0)

    def sentence(self) -> str:
        """Return the estimate as a sentence."""
        workers = f"on {self.workers} worker{'s' if self.workers != 1 else ''}" if self.workers else "in this process"
        return (
            f"{len(self.seconds)} of {len(self.seconds) + self.finished} runs remain, about {in_words(self.wall)} "
            f"{workers} (from {_EPOCHS * _BATCHES} steps of each kind of run)"
        )

    def longest_first(self, jobs: Sequence[Job]) -> list[Job]:
        """Sort runs by estimated time, the longest first, so that no worker is left with a long run at the end."""
        return sorted(jobs, key=lambda job: -self.seconds.get(str(job.folder), 0.0))


def in_words(seconds: float) -> str:
    """Return a duration as text, in seconds, minutes or hours."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def kind_of(config: Config) -> Hashable:
    """Return the part of a config that determines the time of a step: all keys but `seed` and `proxy.k`."""
    values = with_setting(config.values, "seed", 0)
    proxy = values.get("proxy")
    if isinstance(proxy, Mapping):
        values = values | {"proxy": {key: value for key, value in proxy.items() if key != "k"}}
    return repr(sorted(values.items()))


def forecast(
    jobs: Sequence[Job],
    workers: int,
    note: Note = lambda message: None,
    kinds: Mapping[str, Hashable] | None = None,
    kept: Path | None = None,
) -> Forecast:
    """Estimate the time of the runs that are not finished.

    The first unfinished run of every kind is measured. If this run needs a pretrained model, the model is measured
    instead. The measurements use as many parallel processes as training, because parallel processes slow each other
    down.

    Args:
        jobs: all runs, including finished runs.
        workers: number of processes; several processes use one thread each.
        note: called with a line before the measurements, and with the names of runs that cannot be trained.
        kinds: folder of a run -> kind. Runs of the same kind take the same time per step. By default, kinds are
            computed by `kind_of`.
        kept: file of earlier measurements, which are not repeated. New measurements are added to this file.

    Raises:
        InputError: the data or the file `kept` cannot be read.
    """
    waiting = [job for job in jobs if not is_done(job)]
    # instead of a job that needs a pretrained model, that model is measured: their steps take equally long
    configs = [job.needs.config if job.needs else job.config for job in waiting]
    names = [kinds[str(job.folder)] if kinds else kind_of(config) for job, config in zip(waiting, configs, strict=True)]
    examples = dict(zip(reversed(names), reversed(configs), strict=True))
    rates = _rates(examples, workers, note, kept) if examples else {}
    of_jobs = {str(job.folder): rates[name] for name, job in zip(names, waiting, strict=True)}
    impossible = {folder: rate for folder, rate in of_jobs.items() if isinstance(rate, str)}
    _name_impossible(waiting, impossible, note)
    seconds = {
        str(job.folder): rate.seconds(job) for job in waiting if isinstance(rate := of_jobs[str(job.folder)], Rate)
    }
    return Forecast(seconds, len(jobs) - len(waiting), min(workers, max(len(seconds), 1)), impossible)


@dataclass(frozen=True)
class _Measured:
    """Content of a file of measurements.

    Attributes:
        rates: digest -> rate. A digest is computed from the kind and the number of processes.
    """

    rates: Mapping[str, Rate]


def _rates(
    examples: Mapping[Hashable, Config], workers: int, note: Note, kept: Path | None
) -> dict[Hashable, Rate | str]:
    """Return the rate of each kind, or the reason of a failure. Rates are read from the file `kept`, or added to it."""
    digests = {kind: hashlib.sha256(f"{workers} {kind}".encode()).hexdigest()[:16] for kind in examples}
    known = dict(parse_as(_Measured, kept.read_bytes(), kept).rates) if kept and kept.is_file() else {}
    rates: dict[Hashable, Rate | str] = {kind: known[key] for kind, key in digests.items() if key in known}
    if new := {kind: config for kind, config in examples.items() if kind not in rates}:
        measured = measured_rates(new, workers, note)
        rates |= measured
        known |= {digests[kind]: rate for kind, rate in measured.items() if isinstance(rate, Rate)}
        if kept:
            write_bytes(kept, to_bytes({"rates": {key: asdict(rate) for key, rate in known.items()}}))
    return rates


def _name_impossible(waiting: Sequence[Job], reasons: Mapping[str, str], note: Note) -> None:
    for reason in dict.fromkeys(reasons.values()):
        jobs = [job for job in waiting if reasons.get(str(job.folder)) == reason]
        rows = dict.fromkeys(job.folder.name.removesuffix(f"_seed{job.config.common.seed}") for job in jobs)
        note(f"{len(jobs)} of {len(waiting)} runs cannot be trained ({', '.join(rows)}): {reason}")


def measured_rates(examples: Mapping[Hashable, Config], workers: int, note: Note) -> dict[Hashable, Rate | str]:
    """Measure a config of each kind; return, by kind, the rate or the reason of a failure.

    Raises:
        InputError: the data cannot be read.
    """
    note(f"forecast: {len(examples)} kind{'s of runs are' if len(examples) > 1 else ' of runs is'} measured")
    processes = workers if workers > 1 else 0
    return {kind: rate for (kind, _), rate in in_processes(_measured_or_reason, examples.items(), processes)}


def _measured_or_reason(example: tuple[Hashable, Config], report: Callable[[object], None]) -> Rate | str:
    """Measure the config of a kind; return the rate, or the reason of a failure.

    Raises:
        InputError: the data cannot be read.
    """
    splits = load_splits(example[1])
    try:
        return measure(example[1], splits)
    except InputError as error:
        return str(error)


def measure(config: Config, splits: Splits) -> Rate:
    """Time a few training steps of a config, or the complete fit of a method without a learner.

    The complete fit has `_EPOCHS` epochs. The estimate is too small for a method from outside aadml with more epochs
    in a loop of its own.

    Raises:
        InputError: the data do not match the config.
    """
    short = with_setting(config.values, "training.epochs", _EPOCHS)
    if config.training.train_map > 1:  # otherwise the measured epoch would include scores that most epochs omit
        short = with_setting(short, "training.train_map", 0)
    config = resolve(short)
    model = untrained_model(config, splits, chosen_device(config.common.device, "config"))
    train, valid, test = (model.scaling.clips(clips) for clips in (splits.train, splits.valid, splits.test))
    (valid, of_valid), (test, of_test) = _some(valid), _some(test)
    watch = _Watch(Diagnosis(test, 1))
    rows = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    learns = hasattr(model.method, "learner")
    few = train.select(rows[: _BATCHES * config.training.batch].sort().values) if learns else train
    started = time.perf_counter()
    model.method.fit(few, valid, watch)
    rate = watch.rate(time.perf_counter() - started)
    return replace(rate, clips=splits.train.per_epoch, epoch=rate.epoch * of_valid, look=rate.look * of_test)


def _some(clips: Clips) -> tuple[Clips, float]:
    """Return the clips to embed, and the number of all clips divided by the number of the returned clips.

    If a modality is sound or captions, only the first `_CAPTIONS` clips are returned.
    """
    if all(isinstance(features, Matrix) for features in clips.features.values()):
        return clips, 1.0
    few = clips.select(torch.arange(min(len(clips), _CAPTIONS)))
    return few, len(clips) / max(len(few), 1)


class _Watch(Session):
    """Session that times the epochs, and the scoring of the test clips after each epoch."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__()
        self._diagnosis, self._look, self._ends = diagnosis, 0.0, [time.perf_counter()]

    def log(self, record: Record, weights: EpochWeights | None = None) -> None:
        """Record the times of an epoch."""
        super().log(record)
        if weights is not None:
            started = time.perf_counter()
            self._diagnosis(1, weights)
            self._look = time.perf_counter() - started
        self._ends.append(time.perf_counter())

    def rate(self, seconds: float) -> Rate:
        """Return the rate from the times of the last epoch.

        For a fit without epochs, the rate contains only the time of the start plus the duration of the fit.

        Args:
            seconds: duration of the fit.
        """
        if not self.history:
            return Rate(fixed=_STARTING + seconds)
        last = numbers(self.history[-1])
        epoch = self._ends[-1] - self._ends[-2] - self._look - last["seconds"]
        return Rate(step=last["seconds"] / max(last["steps"], 1), epoch=max(epoch, 0.0), look=self._look)
