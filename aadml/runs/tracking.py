"""Logging of every epoch of a training run in an experiment tracker, offline unless the user sets a server."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, replace

from aadml.configuration.config import Config
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.import_paths import optional
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.ground.strings import Note
from aadml.methods.training.session import Callbacks, Record, numbers
from aadml.runs.run_names import file_name

PROJECT = "aadml"
_LONGEST = 500  # characters of a value that every server of mlflow accepts
FlatConfig = Mapping[str, int | float | str]
"""Values of a config by dotted keys."""


@dataclass(frozen=True)
class Tracker:
    """Open run in a tracker.

    Attributes:
        log: called with the numbers of an epoch and the number of the epoch, from 1.
        close: called once, after training ends or fails.
    """

    log: Callable[[Mapping[str, float], int], object]
    close: Callable[[], object]


def _tensorboard(name: str, config: FlatConfig) -> Tracker:
    board = optional("torch.utils.tensorboard", "track=tensorboard", "tensorboard")
    writer = board.SummaryWriter(f"tensorboard/{name}")
    with _closed_after_errors(writer.close):
        writer.add_text("config", "\n".join(f"    {key}: {value}" for key, value in config.items()))

    def log(values: Mapping[str, float], epoch: int) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, epoch)

    return Tracker(log, writer.close)


def _wandb(name: str, config: FlatConfig) -> Tracker:
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # error reports are sent from offline runs as well
    wandb = optional("wandb", "track=wandb", "wandb")
    mode = os.environ.get("WANDB_MODE", "offline")
    run = wandb.init(project=os.environ.get("WANDB_PROJECT", PROJECT), name=name, config=dict(config), mode=mode)
    return Tracker(lambda values, epoch: run.log(dict(values), step=epoch), run.finish)


def _mlflow(name: str, config: FlatConfig) -> Tracker:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = optional("mlflow", "track=mlflow", "mlflow")
    mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
    mlflow.start_run(run_name=name)
    with _closed_after_errors(mlflow.end_run):
        mlflow.log_params({key: value[:_LONGEST] if isinstance(value, str) else value for key, value in config.items()})
    return Tracker(lambda values, epoch: mlflow.log_metrics(dict(values), step=epoch), mlflow.end_run)


def _trackio(name: str, config: FlatConfig) -> Tracker:
    trackio = optional("trackio", "track=trackio", "trackio")
    trackio.init(project=PROJECT, name=name, config=dict(config))
    return Tracker(lambda values, epoch: trackio.log(dict(values), step=epoch), trackio.finish)


@contextmanager
def _closed_after_errors(close: Callable[[], object]) -> Iterator[None]:
    with ExitStack() as stack:
        stack.callback(close)
        yield
        stack.pop_all()


TRACKERS: dict[str, Callable[[str, FlatConfig], Tracker]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
    "trackio": _trackio,
}
"""Name -> function of the name of a run and its flat config, which opens the run in the tracker."""


@contextmanager
def tracked(name: str | None, config: Config, callbacks: Callbacks, on_note: Note) -> Iterator[Callbacks]:
    """Open a tracker, and yield callbacks that also log every epoch in the tracker.

    If the tracker fails during training, training continues without further logging.

    Args:
        name: a key of TRACKERS; None changes nothing.
        config: config of the run, which is logged.
        callbacks: callbacks of training.
        on_note: called with the reason if the tracker fails during training.

    Raises:
        InputError: the tracker is unknown, not installed, or cannot be opened.
    """
    if name is None:
        yield callbacks
        return
    start = lookup(TRACKERS, name, "tracker")
    run = f"{time.strftime('%Y%m%d-%H%M%S')}-{file_name(config.label())}-seed{config.common.seed}"
    try:
        with redirect_stdout(sys.stderr):  # standard output is for results
            tracker = start(run, dict(_flat("", config.values)))
    except InputError:
        raise
    except Exception as error:  # trackers have no common class of errors
        raise InputError(
            f"{name}: the tracker cannot be opened ({cause(error)}); correct its setup, or omit track"
        ) from error
    log = _Log(name, tracker, on_note)
    try:
        yield replace(
            callbacks, on_epoch=_both(callbacks.on_epoch, log.epoch), on_plan=_both(callbacks.on_plan, log.plan)
        )
    finally:
        log.close()


class _Log:
    """Log of epochs, which counts the epochs of all training sessions of a run and stops at the first failure."""

    def __init__(self, name: str, tracker: Tracker, on_note: Note) -> None:
        self._name, self._tracker, self._note = name, tracker, on_note
        self._epochs, self._failed = 0, False

    def plan(self, epochs: int, done: int) -> None:
        self._epochs += done  # a resumed run continues its steps

    def epoch(self, record: Record) -> None:
        self._epochs += 1
        if not self._failed:
            self._attempt(lambda: self._tracker.log(numbers(record), self._epochs))

    def close(self) -> None:
        self._attempt(self._tracker.close)

    def _attempt(self, call: Callable[[], object]) -> None:
        try:
            with redirect_stdout(sys.stderr):
                call()
        except Exception as error:
            is_first, self._failed = not self._failed, True
            if is_first:
                self._note(
                    f"warning: the tracker {self._name} failed, so nothing more is logged in it ({cause(error)})"
                )


def _both(first: Callable[..., None] | None, second: Callable[..., None]) -> Callable[..., None]:
    def call(*values: object) -> None:
        if first:
            first(*values)
        second(*values)

    return call


def _flat(key: str, value: object) -> Iterator[tuple[str, int | float | str]]:
    """Yield values of a config by dotted keys; values that are not numbers or flags are texts."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _flat(f"{key}.{name}" if key else name, part)
    else:
        yield key, value if isinstance(value, int | float) else str(value)
