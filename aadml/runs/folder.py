"""Run folders: everything a training leaves behind, and all that it needs to continue."""

import json
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from aadml.methods.session import Checkpoint, Session
from feature_extraction.ground.atomic import atomic_path, write_text
from feature_extraction.ground.errors import InputError

CONFIG = "config.yaml"
ENVIRONMENT = "environment.json"
METRICS = "metrics.jsonl"
CHECKPOINT = "checkpoint.safetensors"
TRAINING_STATE = "training_state.safetensors"
EVALUATION = "evaluation.json"


class RunSession(Session):
    """A training that lives in a run folder: it survives Ctrl-C and kill -9, losing at most the current epoch.

    The best weights are written with the state to continue from, so that both are of one moment.

    Args:
        folder: the run folder.
        inputs: the fitted scaling, stored beside the weights.
        on_epoch: called with every record, for a progress bar.
        on_plan: called once with (epochs, epochs done).
        on_warning: called with every new warning.
        saving_share: 0 saves after every epoch; n leaves out saves that would take more than 1/n of the time, for many
            short runs in a row, where losing some seconds of one is cheaper than writing all states.
    """

    def __init__(
        self,
        folder: Path,
        inputs: Mapping[str, Tensor],
        *,
        on_epoch: Callable[[dict[str, Any]], None] | None = None,
        on_plan: Callable[[int, int], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
        saving_share: int = 0,
    ) -> None:
        super().__init__()
        self.folder = folder
        self._inputs = {f"inputs.{key}": value for key, value in inputs.items()}
        self._on_epoch, self._on_plan, self._on_warning = on_epoch, on_plan, on_warning
        self._best_is_written = True
        self._saving_share = saving_share
        self._saved_at, self._saving_seconds = -math.inf, 0.0

    def plan(self, epochs: int, done: int) -> None:
        """Pass on how many epochs there are."""
        if self._on_plan:
            self._on_plan(epochs, done)

    def log(self, record: dict[str, Any]) -> None:
        """Append the figures of an epoch to the log."""
        super().log(record)
        with (self.folder / METRICS).open("a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")
        if self._on_epoch:
            self._on_epoch(record)

    def warn(self, message: str) -> None:
        """Pass a warning on, each text once."""
        kind = message.split(":", 1)[-1]
        if all(kind != known.split(":", 1)[-1] for known in self.warnings):
            super().warn(message)
            if self._on_warning:
                self._on_warning(message)

    def keep_best(self, checkpoint: Checkpoint) -> None:
        """Take the weights of the best epoch so far; the next `save` writes them."""
        super().keep_best(checkpoint)
        self._best_is_written = False

    def best(self) -> Checkpoint | None:
        """Return the best weights, of this process or an earlier one."""
        if super().best() is None and (self.folder / CHECKPOINT).is_file() and (self.folder / TRAINING_STATE).is_file():
            stored = read_tensors(self.folder / CHECKPOINT)
            weights = {k.removeprefix("method."): v for k, v in stored.tensors.items() if k.startswith("method.")}
            super().keep_best(Checkpoint(weights, stored.facts))
        return super().best()

    def save(self, checkpoint: Checkpoint) -> None:
        """Write all that is needed to continue after this epoch, where it is time to."""
        started = time.monotonic()
        if started - self._saved_at < self._saving_share * self._saving_seconds:
            return
        best = super().best()
        if best is not None and not self._best_is_written:
            tensors = {f"method.{key}": value for key, value in best.tensors.items()} | self._inputs
            write_tensors(self.folder / CHECKPOINT, tensors, best.facts, durable=False)
            self._best_is_written = True
        write_tensors(self.folder / TRAINING_STATE, checkpoint.tensors, checkpoint.facts, durable=False)
        self._saved_at = time.monotonic()
        self._saving_seconds = self._saved_at - started

    def resume(self) -> Checkpoint | None:
        """Read the state to continue from, and cut the log back to it."""
        path = self.folder / TRAINING_STATE
        if not path.is_file():
            (self.folder / METRICS).unlink(missing_ok=True)
            return None
        checkpoint = read_tensors(path)
        records = read_metrics(self.folder)[: checkpoint.facts["epochs_done"]]
        write_text(self.folder / METRICS, "".join(json.dumps(record) + "\n" for record in records))
        self.history = records
        return checkpoint


def new_run_folder(runs: Path, label: str, seed: int) -> Path:
    """Make an empty folder for a run, named by time, what is trained, and seed.

    Raises:
        InputError: `runs` cannot be written.
    """
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        folder = runs / (f"{stamp}-{label}-seed{seed}" + (f"-{number}" if number else ""))
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            if not runs.is_dir():
                raise InputError(f"{runs}: is a file; --runs wants a folder") from None
            continue
        except OSError as error:
            raise InputError(
                f"{folder}: cannot be made ({error.strerror}); choose another place with --runs"
            ) from error
        return folder
    raise InputError(f"{runs}: a thousand runs of this second are there already")


def discard_unbegun(folder: Path) -> None:
    """Take back a run folder that this process made and in which not even one epoch was finished.

    Only what a run writes before its first epoch is removed, and the folder where nothing else is in it.
    """
    if any((folder / name).exists() for name in (TRAINING_STATE, CHECKPOINT, EVALUATION)):
        return
    for name in (CONFIG, ENVIRONMENT, METRICS):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # something else lies there, and stays
        folder.rmdir()


def write_tensors(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], *, durable: bool = True) -> None:
    """Write tensors and JSON facts as one safetensors file, whole or not at all."""
    ready = {key: value.detach().cpu().contiguous().clone() for key, value in sorted(tensors.items())}
    with atomic_path(path, durable=durable) as temporary:
        try:
            save_file(ready, temporary, {"facts": json.dumps(dict(facts), sort_keys=True)})
        except SafetensorError as error:
            raise OSError(28, str(error)) from error


def read_tensors(path: Path) -> Checkpoint:
    """Read what `write_tensors` wrote.

    Raises:
        InputError: the file is absent or damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads((file.metadata() or {}).get("facts", "{}"))
            return Checkpoint({key: file.get_tensor(key) for key in file.keys()}, facts)  # noqa: SIM118
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; the run has not finished its first epoch") from error
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error}); train again") from error


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Read the records of all epochs; a last line that was cut off is left out."""
    path = folder / METRICS
    records = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    return records


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object of a run folder.

    Raises:
        InputError: absent or damaged.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; is {path.parent} a finished run?") from error
    except ValueError as error:
        raise InputError(f"{path}: damaged ({error})") from error
    assert isinstance(value, dict)
    return value


def is_run(folder: Path) -> bool:
    """Say whether a folder is a run folder."""
    return (folder / CONFIG).is_file()


def device_of(name: str) -> torch.device:
    """Choose the device: "auto" takes a GPU where there is one.

    Raises:
        InputError: torch knows no such device here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            f"device: '{name}' is not to be had here; there are auto, cpu and cuda where installed"
        ) from error
    return device
