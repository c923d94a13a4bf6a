"""Log of a training run, its best weights, and the state for continuing the run."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.json_values import JsonObject

if TYPE_CHECKING:
    from aadml.methods.training.learner import Learner

Record = Mapping[str, float | str]
"""Statistics of one epoch (one line of the log); the stage is a string."""


def numbers(record: Record) -> dict[str, float]:
    """Return the numeric entries of an epoch's record."""
    return {key: value for key, value in record.items() if not isinstance(value, str)}


@dataclass(frozen=True)
class Checkpoint:
    """Tensors and the facts that are saved with them.

    Attributes:
        tensors: name -> tensor.
        facts: JSON values.
    """

    tensors: Mapping[str, Tensor]
    facts: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class EpochWeights:
    """Weights at the end of an epoch, for observers of a training run.

    Attributes:
        learner: learner that has the weights.
        batch: clips per batch in training.
        last: whether the epoch was the last of its stage.
        class_names: class names of the training clips.
    """

    learner: "Learner"
    batch: int
    last: bool
    class_names: tuple[str, ...]

    def held_out_loss(self, clips: Clips) -> float | None:
        """Compute the loss of clips of any split.

        Returns:
            The mean loss; None if the loss is undefined, or the class names of `clips` differ from `class_names`.
        """
        same = clips.class_names == self.class_names
        return self.learner.held_out_loss(clips, self.batch) if same else None


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """Callbacks of a training run.

    Attributes:
        on_epoch: called with every record, for a progress bar.
        on_plan: called once with (epochs, finished epochs).
        on_warning: called with every new warning.
        on_step: called with the number of each step within its epoch, from 1.
        on_stage: called with the name of a finished stage whose best weights are now loaded, to be scored.
    """

    on_epoch: Callable[[Record], None] | None = None
    on_plan: Callable[[int, int], None] | None = None
    on_warning: Callable[[str], None] | None = None
    on_step: Callable[[int], None] | None = None
    on_stage: Callable[[str], None] | None = None


SILENT = Callbacks()


class Session:
    """State of a training run in memory; `aadml.runs.session.RunSession` stores the same state in a run folder."""

    def __init__(self, callbacks: Callbacks = SILENT) -> None:
        self.history: list[Record] = []
        self.warnings: list[str] = []
        self._best: Checkpoint | None = None
        self._callbacks = callbacks
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the session was created."""
        return time.perf_counter() - self._began

    def step(self, number: int) -> None:
        """Report a step within an epoch, counted from 1."""
        if self._callbacks.on_step:
            self._callbacks.on_step(number)

    def finish_stage(self, name: str) -> None:
        """Report a finished stage whose best weights are now loaded, to be scored."""
        if self._callbacks.on_stage:
            self._callbacks.on_stage(name)

    def log(self, record: Record, weights: EpochWeights | None = None) -> None:
        """Log the record of a finished epoch; a subclass may also use the weights."""
        self.history.append(record)
        if self._callbacks.on_epoch:
            self._callbacks.on_epoch(record)

    def warn(self, message: str) -> None:
        """Report a warning, unless an earlier warning has the same text apart from the epoch before the first colon."""
        kind = message.split(":", 1)[-1]
        if all(kind != known.split(":", 1)[-1] for known in self.warnings):
            self.warnings.append(message)
            if self._callbacks.on_warning:
                self._callbacks.on_warning(message)

    def plan(self, epochs: int, done: int) -> None:
        """Report the number of epochs and the number of finished epochs."""
        if self._callbacks.on_plan:
            self._callbacks.on_plan(epochs, done)

    def keep_best(self, checkpoint: Checkpoint) -> None:
        """Store the weights of the epoch chosen so far."""
        self._best = Checkpoint({k: v.detach().cpu().clone() for k, v in checkpoint.tensors.items()}, checkpoint.facts)

    def best(self) -> Checkpoint | None:
        """Return the latest checkpoint of `keep_best`; None before the first call of `keep_best`."""
        return self._best

    def save(self, checkpoint: Checkpoint) -> None:
        """Store the state for continuing after an interruption; a session in memory stores nothing."""

    def resume(self) -> Checkpoint | None:
        """Return the latest checkpoint that `save` stored in this process or an earlier process.

        The result is None without such a checkpoint, and always for a session in memory.
        """
        return None
