"""What a reproduction will cost, before it begins: some steps of every kind, measured, times what is planned."""

import math
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.features import Matrix
from aadml.configuration.config import Config, resolve
from aadml.configuration.overrides import with_setting
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.worker_pool import Finished, Lost, WorkerPool
from aadml.methods.training.session import EpochWeights, Record, Session, numbers
from aadml.runs.data import load_splits
from aadml.runs.prepare import untrained_model
from aadml.runs.test_curve import Diagnosis
from aadml.studies.job import Job, is_done
from aadml.studies.sweep import conditions

WORTH_ASKING = 3600.0
"""Seconds from which on a person is asked before it begins."""
Note = Callable[[str], None]
K = TypeVar("K", bound=Hashable)
_BATCHES = 2
_CAPTIONS = 32
_EPOCHS = 2  # the first one warms up
_STARTING = 1.0  # seconds: reading data, building, writing


@dataclass(frozen=True)
class Rate:
    """What a kind of run costs, in seconds on one worker.

    Attributes:
        clips: of training, in an epoch; no seconds.
        step: of training.
        epoch: beside its steps: scores of training and validation clips.
        look: at the test clips once.
        fixed: once a run: a closed form, and starting.
    """

    clips: int = 0
    step: float = 0.0
    epoch: float = 0.0
    look: float = 0.0
    fixed: float = _STARTING

    def seconds(self, job: Job) -> float:
        """Estimate a run."""
        training = job.config.training
        looks = training.epochs / job.diagnosis if job.diagnosis and self.step else 0.0
        steps = math.ceil(self.clips / training.batch)
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
    # what needs another model is as expensive a step as that one, which can be measured by itself
    configs = [job.needs.config if job.needs else job.config for job in waiting]
    kinds = list(map(_kind, configs))
    rates = measured_kinds(list(zip(kinds, configs, strict=True)), workers, note)
    seconds = {str(job.folder): rates[kind].seconds(job) for kind, job in zip(kinds, waiting, strict=True)}
    return Forecast(seconds, len(jobs) - len(waiting), min(workers, max(len(waiting), 1)))


def measured_kinds(runs: Sequence[tuple[K, Config]], workers: int, note: Note) -> dict[K, Rate]:
    """Measure the first run of every kind, as many at a time as will be trained: processes slow each other down.

    Args:
        runs: the kind of each, and its config.
        workers: how many at a time, one thread each where there are several.
        note: called with a line before, and with one about each kind that cannot be measured.

    Raises:
        InputError: data that cannot be read.
    """
    examples: dict[K, Config] = {}
    for kind, config in runs:
        examples.setdefault(kind, config)
    if examples:
        note(f"forecast: measuring {len(examples)} kind{'s' if len(examples) > 1 else ''} of runs")
    tasks: list[list[K]] = []
    for data in dict.fromkeys(config.data for config in examples.values()):
        own = [kind for kind, config in examples.items() if config.data == data]
        tasks += [own[first::workers] or own[:1] for first in range(workers)] if workers > 1 else [own]
    rates: dict[K, Rate] = {}
    for number, found in _side_by_side([[examples[kind] for kind in task] for task in tasks], workers):
        for kind, rate in zip(tasks[number], found, strict=True):
            if kind in rates:  # a worker without a kind of its own measured it too
                continue
            rates[kind] = rate if isinstance(rate, Rate) else Rate()
            if not isinstance(rate, Rate):
                note(f"forecast: {examples[kind].label()} counts as nothing: {rate}")
    return rates


def _side_by_side(tasks: Sequence[Sequence[Config]], workers: int) -> Iterator[tuple[int, list[Rate | str]]]:
    """Measure the configs of each task; give its number, and rates, or why there is none."""
    if workers <= 1:
        yield from enumerate(map(_one_by_one, tasks))
        return
    with WorkerPool(_in_process, workers, conditions(workers)) as pool:
        for event in pool.work_off(enumerate(tasks)):
            if isinstance(event, Finished):
                yield event.task[0], list(event.value)
            elif isinstance(event, Lost):
                number, configs = event.task
                yield number, [f"its process ended with {event.ending}"] * len(configs)


def _in_process(task: tuple[int, Sequence[Config]], report: Callable[[object], None]) -> list[Rate | str]:
    return _one_by_one(task[1])


def _one_by_one(configs: Sequence[Config]) -> list[Rate | str]:
    """Measure configs of one data set; one that cannot begin costs nothing, and says why when its turn comes.

    Raises:
        InputError: data that cannot be read.
    """
    splits = load_splits(configs[0])
    found: list[Rate | str] = []
    for config in configs:
        try:
            found.append(measured(config, splits))
        except InputError as error:
            found.append(str(error))
    return found


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
    clips = splits.train.per_epoch
    return replace(rate, clips=clips, epoch=rate.epoch * of_valid, look=rate.look * of_test)


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

    def log(self, record: Record, weights: EpochWeights | None = None) -> None:
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
        return Rate(step=last["seconds"] / max(last["steps"], 1), epoch=max(epoch, 0.0), look=self._look)


def _kind(config: Config) -> str:
    """Name what makes one run as expensive as another: everything but seed, schedule and number of neighbors."""
    values = with_setting(config.values, "seed", 0)
    proxy = values.get("proxy")
    if isinstance(proxy, Mapping):
        values = values | {"proxy": {key: value for key, value in proxy.items() if key != "k"}}
    return repr(sorted(values.items()))
