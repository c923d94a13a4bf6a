"""Where a training goes: its log, its best weights, the state from which it continues."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.feature_extraction.ground.json_values import JsonObject

Record = Mapping[str, float | str]
"""The figures of one epoch, a line of the log; the name of the stage is a word."""


def numbers(record: Record) -> dict[str, float]:
    """Give the figures of an epoch that are numbers."""
    return {key: value for key, value in record.items() if not isinstance(value, str)}


@dataclass(frozen=True)
class Checkpoint:
    """Tensors and plain facts that belong together.

    Attributes:
        tensors: name -> tensor.
        facts: what JSON can hold.
    """

    tensors: Mapping[str, Tensor]
    facts: JsonObject = field(default_factory=dict)


class Scored(Protocol):
    """What embeds and costs clips with the weights of the moment."""

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`, each item alone."""

    def held_out_loss(self, clips: Clips, batch: int) -> float | None:
        """Cost clips of any split; None where that is not defined."""


@dataclass(frozen=True)
class EpochWeights:
    """The weights at the end of an epoch, for those who look on.

    Attributes:
        learner: that has them.
        batch: clips a batch of the training.
        last: whether the epoch was the last of its stage.
        class_names: of the training clips.
    """

    learner: Scored
    batch: int
    last: bool
    class_names: tuple[str, ...]

    def held_out_loss(self, clips: Clips) -> float | None:
        """Cost clips of any split; None where that is not defined, or their labels stand for other classes."""
        same = clips.class_names == self.class_names
        return self.learner.held_out_loss(clips, self.batch) if same else None


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """What is called while a training goes on.

    Attributes:
        on_epoch: called with every record, for a progress bar.
        on_plan: called once with (epochs, epochs done).
        on_warning: called with every new warning.
        on_step: called with the number of each step within its epoch, from 1.
        on_stage: called with the name of a stage that is to be scored, its best weights in place.
    """

    on_epoch: Callable[[Record], None] | None = None
    on_plan: Callable[[int, int], None] | None = None
    on_warning: Callable[[str], None] | None = None
    on_step: Callable[[int], None] | None = None
    on_stage: Callable[[str], None] | None = None


SILENT = Callbacks()


class Session:
    """A training that lives in memory; a run folder offers the same on disk."""

    def __init__(self, callbacks: Callbacks = SILENT) -> None:
        self.history: list[Record] = []
        self.warnings: list[str] = []
        self._best: Checkpoint | None = None
        self._callbacks = callbacks
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since training began."""
        return time.perf_counter() - self._began

    def step(self, number: int) -> None:
        """Take note of a step within an epoch, counted from 1."""
        if self._callbacks.on_step:
            self._callbacks.on_step(number)

    def finish_stage(self, name: str) -> None:
        """Take note that a stage is over whose best weights, now in place, are to be scored."""
        if self._callbacks.on_stage:
            self._callbacks.on_stage(name)

    def log(self, record: Record, weights: EpochWeights | None = None) -> None:
        """Take the figures of one finished epoch, and its weights to look at; nothing is given back to the training."""
        self.history.append(record)
        if self._callbacks.on_epoch:
            self._callbacks.on_epoch(record)

    def warn(self, message: str) -> None:
        """Take a warning for people, each text once; what stands before its first colon (the epoch) may differ."""
        kind = message.split(":", 1)[-1]
        if all(kind != known.split(":", 1)[-1] for known in self.warnings):
            self.warnings.append(message)
            if self._callbacks.on_warning:
                self._callbacks.on_warning(message)

    def plan(self, epochs: int, done: int) -> None:
        """Take the number of epochs to come and how many of them are done already."""
        if self._callbacks.on_plan:
            self._callbacks.on_plan(epochs, done)

    def keep_best(self, checkpoint: Checkpoint) -> None:
        """Keep the weights of the best epoch so far."""
        self._best = Checkpoint({k: v.detach().cpu().clone() for k, v in checkpoint.tensors.items()}, checkpoint.facts)

    def best(self) -> Checkpoint | None:
        """Return what `keep_best` was last given."""
        return self._best

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep all that is needed to continue after this epoch; memory needs nothing."""

    def resume(self) -> Checkpoint | None:
        """Return what `save` was last given, in this or an earlier process."""
        return None
