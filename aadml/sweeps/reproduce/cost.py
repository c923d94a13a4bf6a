"""What a reproduction will cost, before it begins: some steps of every kind, measured, times what is planned."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.features import Matrix
from aadml.configuration.changes import with_setting
from aadml.configuration.config import Config, resolve
from aadml.methods.session import Record, Session, Weights, numbers
from aadml.runs.data import load_splits
from aadml.runs.diagnosis import Diagnosis
from aadml.runs.prepare import untrained_model
from aadml.sweeps.job import Job, is_done
from feature_extraction.ground.errors import InputError
from feature_extraction.network_run import chosen_device

WORTH_ASKING = 3600.0
"""Seconds from which on a person is asked before it begins."""
Note = Callable[[str], None]
_BATCHES = 2
_CAPTIONS = 32
_EPOCHS = 2  # the first one warms up
_STARTING = 1.0  # seconds: reading data, building, writing


@dataclass(frozen=True)
class Rate:
    """What a kind of run costs, in seconds on one worker.

    Attributes:
        step: of training.
        epoch: beside its steps: scores of training and validation clips.
        look: at the test clips once.
        fixed: once a run: a closed form, and starting.
    """

    step: float = 0.0
    epoch: float = 0.0
    look: float = 0.0
    fixed: float = _STARTING

    def seconds(self, job: Job, clips: int) -> float:
        """Estimate a run on so many training clips."""
        training = job.config.training
        looks = training.epochs / job.diagnosis if job.diagnosis and self.step else 0.0
        steps = math.ceil(clips / training.batch)
        scored = 1 + 2 * len(job.protocols)  # under each protocol all is embedded and ranked again
        epochs = training.epochs if self.step else 0
        return self.fixed + epochs * (steps * self.step + self.epoch) + (looks + scored) * self.look


@dataclass(frozen=True)
class Forecast:
    """What is left to do.

    Attributes:
        seconds: estimated seconds of each waiting run, on one worker.
        kept: how many runs are finished.
        workers: how many run at a time; 0 in this process.
    """

    seconds: Mapping[str, float]
    kept: int
    workers: int

    @property
    def wall(self) -> float:
        """Estimate the seconds until all is done: no less than the longest run."""
        total = sum(self.seconds.values()) / max(self.workers, 1)
        return max([total, *self.seconds.values()], default=0.0)

    def sentence(self) -> str:
        """Say it for people."""
        kept = f"{self.kept} are finished, " if self.kept else ""
        workers = f"on {self.workers} worker{'s' if self.workers != 1 else ''}" if self.workers else "in this process"
        return (
            f"{len(self.seconds) + self.kept} runs: {kept}{len(self.seconds)} to do, about {in_words(self.wall)} "
            f"{workers} (from {_EPOCHS * _BATCHES} steps of each kind)"
        )

    def longest_first(self, jobs: Sequence[Job]) -> list[Job]:
        """Order runs so that no worker is left alone with a long one at the end."""
        return sorted(jobs, key=lambda job: -self.seconds.get(str(job.folder), 0.0))


def in_words(seconds: float) -> str:
    """Write a duration as people say it."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def forecast(jobs: Sequence[Job], workers: int, note: Note = lambda message: None) -> Forecast:
    """Estimate what is left of some runs.

    Args:
        jobs: all of them.
        workers: how many at a time, one thread each where there are several.
        note: called with a line about kinds of runs that cannot be measured.

    Raises:
        InputError: data that cannot be read.
    """
    waiting = [job for job in jobs if not is_done(job)]
    threads = torch.get_num_threads()
    seconds: dict[str, float] = {}
    rates: dict[str, Rate] = {}
    torch.set_num_threads(1 if workers > 1 else threads)
    try:
        for data in dict.fromkeys(job.config.data for job in waiting):
            own = [job for job in waiting if job.config.data == data]
            splits = load_splits(own[0].config)
            for job in own:
                config = job.needs.config if job.needs else job.config  # as expensive a step, and needs no other model
                kind = _kind(config)
                if kind not in rates:
                    rates[kind] = measured_or_nothing(config, splits, note)
                seconds[str(job.folder)] = rates[kind].seconds(job, splits.train.per_epoch)
    finally:
        torch.set_num_threads(threads)
    return Forecast(seconds, len(jobs) - len(waiting), min(workers, max(len(waiting), 1)))


def measured(config: Config, splits: Splits) -> Rate:
    """Train a few steps of a config and time them; a method without epochs is fitted whole.

    Raises:
        InputError: data or config do not fit.
    """
    short = with_setting(config.values, "training.epochs", _EPOCHS)
    if config.training.train_map > 1:  # the last epoch would be charged for what few are
        short = with_setting(short, "training.train_map", 0)
    return _timed(resolve(short), splits)


def _timed(config: Config, splits: Splits) -> Rate:
    """Time the training of a config on some batches."""
    model = untrained_model(config, splits, chosen_device(config.common.device, "config"))
    train, valid, test = (model.scaling.clips(one) for one in (splits.train, splits.valid, splits.test))
    (valid, of_valid), (test, of_test) = _some(valid), _some(test)
    watch = _Watch(Diagnosis(test, 1))
    rows = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    learns = hasattr(model.method, "learner")
    few = train.select(rows[: _BATCHES * config.training.batch].sort().values) if learns else train
    started = time.perf_counter()
    model.method.fit(few, valid, watch)
    rate = watch.rate(time.perf_counter() - started)
    return replace(rate, epoch=rate.epoch * of_valid, look=rate.look * of_test)


def _some(clips: Clips) -> tuple[Clips, float]:
    """Take a few clips of sound and captions, which are slow to embed, and how many times more there are."""
    if all(isinstance(features, Matrix) for features in clips.features.values()):
        return clips, 1.0
    few = clips.select(torch.arange(min(len(clips), _CAPTIONS)))
    return few, len(clips) / max(len(few), 1)


class _Watch(Session):
    """Times a training: its steps, what is scored after each epoch, and a look at the test clips."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__()
        self._diagnosis, self._look = diagnosis, 0.0
        self._ends = [time.perf_counter()]

    def log(self, record: Record, weights: Weights | None = None) -> None:
        """Take the times of an epoch."""
        super().log(record)
        if weights is not None:
            started = time.perf_counter()
            self._diagnosis(1, weights)
            self._look = time.perf_counter() - started
        self._ends.append(time.perf_counter())

    def rate(self, whole: float) -> Rate:
        """Make a rate of what was seen last; of the whole time where there were no epochs."""
        if not self.history:
            return Rate(fixed=_STARTING + whole)
        last = numbers(self.history[-1])
        epoch = self._ends[-1] - self._ends[-2] - self._look - last["seconds"]
        return Rate(last["seconds"] / max(last["steps"], 1), max(epoch, 0.0), self._look)


def measured_or_nothing(config: Config, splits: Splits, note: Note) -> Rate:
    """Measure; a run that cannot begin costs nothing, and says why when its turn comes."""
    try:
        return measured(config, splits)
    except InputError as error:
        note(f"forecast: {config.label()} counts as nothing: {error}")
        return Rate()


def _kind(config: Config) -> str:
    """Name what makes one run as expensive as another: everything but seed, schedule and number of neighbors."""
    values = with_setting(config.values, "seed", 0)
    proxy = values.get("proxy")
    if isinstance(proxy, Mapping):
        values = values | {"proxy": {key: value for key, value in proxy.items() if key != "k"}}
    return repr(sorted(values.items()))
