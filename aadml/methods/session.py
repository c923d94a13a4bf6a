"""Where a training goes: its log, its best weights, the state from which it continues."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Checkpoint:
    """Tensors and plain facts that belong together.

    Attributes:
        tensors: name -> tensor.
        facts: what JSON can hold.
    """

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any] = field(default_factory=dict)


class Session:
    """A training that lives in memory; a run folder offers the same on disk."""

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self._best: Checkpoint | None = None

    def log(self, record: dict[str, Any]) -> None:
        """Take the figures of one finished epoch."""
        self.history.append(record)

    def warn(self, message: str) -> None:
        """Take a warning for people."""
        self.warnings.append(message)

    def plan(self, epochs: int, done: int) -> None:
        """Take the number of epochs to come and how many of them are done already."""

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
