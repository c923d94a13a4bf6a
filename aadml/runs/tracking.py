"""Logging of every epoch of a training run in an experiment tracker.

The tracker works offline unless the user sets a server.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import replace

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
LogEpoch = Callable[[Mapping[str, float], int], object]
"""Function of the values of an epoch, by name, and the number of the epoch, from 1."""


def _tensorboard(name: str, config: FlatConfig, closing: ExitStack) -> LogEpoch:
    board = optional("torch.utils.tensorboard", "track=tensorboard", "tensorboard")
    writer = board.SummaryWriter(f"tensorboard/{name}")
    closing.callback(writer.close)
    writer.add_text("config", "\n".join(f"    {key}: {value}" for key, value in config.items()))

    def log(values: Mapping[str, float], epoch: int) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, epoch)

    return log


def _wandb(name: str, config: FlatConfig, closing: ExitStack) -> LogEpoch:
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # error reports are sent from offline runs as well
    wandb = optional("wandb", "track=wandb", "wandb")
    mode = os.environ.get("WANDB_MODE", "offline")
    run = wandb.init(project=os.environ.get("WANDB_PROJECT", PROJECT), name=name, config=dict(config), mode=mode)
    closing.callback(run.finish)
    return lambda values, epoch: run.log(dict(values), step=epoch)


def _mlflow(name: str, config: FlatConfig, closing: ExitStack) -> LogEpoch:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = optional("mlflow", "track=mlflow", "mlflow")
    mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
    mlflow.start_run(run_name=name)
    closing.callback(mlflow.end_run)
    cut = {key: value[:_LONGEST] if isinstance(value, str) else value for key, value in config.items()}
    mlflow.log_params(_mlflow_names(cut))
    return lambda values, epoch: mlflow.log_metrics(_mlflow_names(values), step=epoch)


def _mlflow_names(values: FlatConfig) -> dict[str, int | float | str]:
    """Return `values` with "_" for each character that mlflow refuses in a name, such as the "@" of recall@10."""
    return {re.sub(r"[^\w/. -]", "_", key): value for key, value in values.items()}


def _trackio(name: str, config: FlatConfig, closing: ExitStack) -> LogEpoch:
    trackio = optional("trackio", "track=trackio", "trackio")
    trackio.init(project=PROJECT, name=name, config=dict(config))
    closing.callback(trackio.finish)
    return lambda values, epoch: trackio.log(dict(values), step=epoch)


TRACKERS: dict[str, Callable[[str, FlatConfig, ExitStack], LogEpoch]] = {
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
    "trackio": _trackio,
}
"""Name -> function that opens a run in the tracker, from the name of the run and its flat config.

The function adds the closing call of the run to the stack, and returns the call that logs an epoch.
"""


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
    start, closing = lookup(TRACKERS, name, "tracker"), ExitStack()
    run = f"{time.strftime('%Y%m%d-%H%M%S')}-{file_name(config.label())}-seed{config.common.seed}"
    try:
        with redirect_stdout(sys.stderr):  # standard output is for results
            log_epoch = start(run, dict(_flat("", config.shown.values)), closing)
    except InputError:
        raise
    except Exception as error:  # trackers have no common class of errors
        closing.close()
        raise InputError(
            f"{name}: the tracker cannot be opened ({cause(error)}); correct its setup, or omit track"
        ) from error
    log = _Log(name, log_epoch, callbacks, on_note)
    try:
        yield replace(callbacks, on_epoch=log.epoch, on_plan=log.plan)
    finally:
        log.attempt(closing.close)


class _Log:
    """Log of the epochs of all training sessions of a run, behind the callbacks of the user.

    Logging ends at the first failure.
    """

    def __init__(self, name: str, log_epoch: LogEpoch, callbacks: Callbacks, on_note: Note) -> None:
        self._name, self._log_epoch, self._callbacks, self._note = name, log_epoch, callbacks, on_note
        self._epochs, self._failed = 0, False

    def plan(self, epochs: int, done: int) -> None:
        if self._callbacks.on_plan:
            self._callbacks.on_plan(epochs, done)
        self._epochs += done  # a resumed run continues its steps

    def epoch(self, record: Record) -> None:
        if self._callbacks.on_epoch:
            self._callbacks.on_epoch(record)
        self._epochs += 1
        if not self._failed:
            self.attempt(lambda: self._log_epoch(numbers(record), self._epochs))

    def attempt(self, call: Callable[[], object]) -> None:
        """Call the tracker. The first error of a run is reported by a note."""
        try:
            with redirect_stdout(sys.stderr):
                call()
        except Exception as error:
            is_first, self._failed = not self._failed, True
            if is_first:
                self._note(
                    f"warning: the tracker {self._name} failed, so nothing more is logged in it ({cause(error)})"
                )


def _flat(key: str, value: object) -> Iterator[tuple[str, int | float | str]]:
    """Yield values of a config by dotted keys: numbers and flags unchanged, other values as text."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _flat(f"{key}.{name}" if key else name, part)
    else:
        yield key, value if isinstance(value, int | float) else str(value)
