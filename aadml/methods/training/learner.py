"""Learners: modules that the training loop trains, with players, stages and hooks."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Matrix, Modality, Source
from aadml.comparison.processes import group
from aadml.data.sources.padding import sent
from aadml.methods.method import Embedder, MetricLoss
from aadml.methods.training.settings import Training
from aadml.methods.training.train_scores import map_scores
from aadml.methods.training.warnings import collapse_warning

EMBEDDING_BATCH = 1024
"""Items embedded at a time; 4,096 take up to half as long again, since activations no longer fit the caches."""


@dataclass(frozen=True)
class Epoch:
    """Position of an epoch in its stage.

    Attributes:
        stage: name of the stage.
        number: epochs of this stage done before this one.
        total: epochs of this stage.
    """

    stage: str
    number: int
    total: int


@dataclass(frozen=True)
class Batch:
    """Input of a player's loss.

    Attributes:
        features: modality -> (b, d), or the padded batch of a source; one of several processes holds its own rows.
        labels: (b,) int64.
        index: (b,) rows in the training set.
        generator: the only source of draws.
        epoch: position of the training.
        present: modality -> (b,) bool, whether a clip has it, where some clips of the training set lack it.
    """

    features: Mapping[Modality, Any]
    labels: Tensor
    index: Tensor
    generator: torch.Generator
    epoch: Epoch
    present: Mapping[Modality, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Player:
    """A set of parameters and the loss they minimize; adversarial methods have several.

    Attributes:
        parameters: of the player's optimizer.
        loss: batch -> named scalars; "loss" is minimized, the others are logged.
        settings: the `training` section -> that of this player, where its optimizer differs.
        probe: scalars of the loss, with their graph -> further scalars, logged once an epoch; it draws nothing.
    """

    parameters: Sequence[nn.Parameter]
    loss: Callable[[Batch], Mapping[str, Tensor]]
    settings: Callable[[Training], Training] = lambda settings: settings
    probe: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] | None = None


@dataclass(frozen=True)
class Stage:
    """A part of a training.

    Attributes:
        name: for the log.
        epochs: number of epochs.
        players: names of the players that are trained on each batch, in this order; None for all.
        batches: (train, epoch, generator) -> rows of each batch; None for shuffled batches of the configured size.
        keep_optimizer: whether the optimizers' state carries over from the stage before.
        start_from_best: whether the stage starts from the best weights of the stage before (else from its last).
        keep_best: whether the best score of the stage before still counts.
        scored: whether its best weights are scored too, before the next stage begins.
    """

    name: str
    epochs: int
    players: tuple[str, ...] | None = None
    batches: Callable[[Clips, Epoch, torch.Generator], Iterable[Tensor]] | None = None
    keep_optimizer: bool = False
    start_from_best: bool = True
    keep_best: bool = False
    scored: bool = False


def in_two(epochs: int, share: float, names: tuple[str, str], *, apart: bool = False) -> list[Stage]:
    """Divide epochs into two stages; a stage without epochs is left out.

    Args:
        epochs: of both.
        share: of the first stage, 0 to 1.
        names: of the stages.
        apart: whether each trains the player of its name alone.
    """
    first = round(share * epochs)
    counts = zip(names, (first, epochs - first), strict=True)
    return [Stage(name, count, (name,) if apart else None) for name, count in counts if count]


class Validation:
    """Validation clips with their embeddings under the weights of one epoch.

    Args:
        learner: that embeds.
        clips: to embed.
    """

    def __init__(self, learner: "Learner", clips: Clips) -> None:
        self.clips = clips
        self._learner = learner

    @cached_property
    def embeddings(self) -> Embeddings:
        """Embeddings of the clips, computed once."""
        return self._learner.embed_clips(self.clips)


class Learner(nn.Module, Embedder):
    """A trainable method whose parameters and buffers are all that is fitted: `state_dict` is complete.

    Attributes:
        criterion: the key of `validate`'s result that chooses the best epoch (larger is better).
        takes_criterion: whether `training.criterion` may name another score; not where a stage trains something else.
        in_bfloat16: whether `training.precision` may be bfloat16: "no", "possible", or "shown", where runs of several
            seeds scored the same in both precisions (docs/lab/speed.md), so that "auto" may choose it.
        divides_batches: whether several processes may train it: its losses then receive the features of the process's
            own rows (`group.together` gathers the outputs), and return the process's part of a sum.
        learns_beside_batches: whether its loss uses features of training clips outside the batch.
    """

    criterion: str = "map_mean"
    takes_criterion: bool = True
    in_bfloat16: Literal["no", "possible", "shown"] = "possible"
    divides_batches: bool = False
    learns_beside_batches: bool = False

    def players(self) -> Mapping[str, Player]:
        """Return the players by name; by default one, of all trainable parameters and `_loss`."""
        return {"all": Player([p for p in self.parameters() if p.requires_grad], self._loss)}

    def _loss(self, batch: Batch) -> Mapping[str, Tensor]:
        """Compute the loss of the default player: named scalars, of which "loss" is minimized."""
        raise NotImplementedError

    @abstractmethod
    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch of one modality (b, d) -> (b, dimension), in evaluation mode, each item alone."""

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Divide a training into stages; one by default."""
        return (Stage("train", epochs),)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Refresh what depends on the whole training set (bank, class means, codes)."""

    def calibrate(self, valid: Clips) -> None:
        """Choose on validation clips what is chosen there (temperature, read-out), before they are scored."""

    def finish(self, train: Clips, valid: Clips) -> None:
        """Fit what follows once the best weights are loaded (a closed form on the outputs)."""

    def validate(self, valid: Validation) -> dict[str, float]:
        """Score the validation clips: the mean average precision of every direction, and their mean."""
        return map_scores(valid.embeddings)

    def held_out_loss(self, clips: Clips, batch: int) -> float | None:
        """Compute the training loss of clips of any split in evaluation mode; None where it is undefined."""
        return None

    def warnings(self, valid: Validation) -> Iterable[str]:
        """Yield warnings after an epoch: modalities whose embeddings have collapsed to one point."""
        for modality in valid.embeddings.vectors:
            warning = collapse_warning(valid.embeddings.there(modality))
            if warning:
                yield f"the {modality} embeddings: {warning}"

    def metric_loss(self, settings: Training) -> MetricLoss | None:
        """Return the metric loss of a training; None where there is none to estimate."""
        return None

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items in evaluation mode, batch by batch, without gradients -> (n, dimension) float32 on the CPU."""
        with self.evaluated():
            return torch.cat([self.embed(batch, modality).float().cpu() for batch in self.in_batches(features)])

    @contextmanager
    def evaluated(self) -> Iterator[None]:
        """Return a context in evaluation mode and without gradients; the mode is restored however it ends."""
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(was_training)

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return next(self.parameters()).device

    def in_batches(self, features: Features, rows: Tensor | None = None) -> Iterator[Any]:
        """Yield batches of all n items, or of the rows (m,), on the device of the parameters."""
        chosen = torch.arange(len(features)) if rows is None else rows
        for part in chosen.split(EMBEDDING_BATCH if isinstance(features, Matrix) else 32):
            yield on_device(features, part, self.device)


class CachingLearner(Learner):
    """A learner that caches the vectors of all items of a source until its weights may change."""

    def __init__(self) -> None:
        super().__init__()
        self._cache: dict[int, tuple[Features, Tensor]] = {}  # by id of the features, which are held so that it stays

    def train(self, mode: bool = True) -> Self:
        """Set the mode; training mode clears the cache."""
        if mode:
            self._cache = {}
        return super().train(mode)

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False) -> Any:
        """Load parameters and buffers, and clear the cache."""
        self._cache = {}
        return super().load_state_dict(state_dict, strict=strict, assign=assign)


class ResizedBuffers(nn.Module):
    """A module whose buffers, of a size that follows from the training data, get the size of the state they load.

    Attributes:
        resized: names of the buffers.
    """

    resized: tuple[str, ...]

    def _load_from_state_dict(self, state_dict: Mapping[str, Tensor], prefix: str, *rest: Any) -> None:
        for name in self.resized:
            stored, buffer = state_dict.get(prefix + name), self.get_buffer(name)
            if stored is not None and stored.shape != buffer.shape:
                setattr(self, name, buffer.new_zeros(stored.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)


def batch_of(clips: Clips, rows: Tensor, device: torch.device, generator: torch.Generator, epoch: Epoch) -> Batch:
    """Build the batch of the rows (b,) of clips on a device, with the features of this process's own rows."""
    features = {m: on_device(clips[m], rows[group.own(len(rows))], device) for m in clips.modalities}
    labels = clips.labels[rows.to(clips.labels.device)].to(device)
    present = {m: flags[rows].to(device) for m, flags in clips.present.items()}
    return Batch(features, labels, rows.to(device), generator, epoch, present)


def on_device(features: Features, rows: Tensor, device: torch.device) -> Any:
    """Return the rows (b,) of in-memory features, or the padded batch of a source, on a device."""
    if isinstance(features, Tensor):
        return sent(features[rows.to(features.device)], device)
    assert isinstance(features, Source)
    batch = features.batch(rows)
    if isinstance(batch, Tensor):
        return sent(batch, device)
    return batch.to(device) if hasattr(batch, "to") else batch
