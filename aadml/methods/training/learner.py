"""What the training loop trains: a module with players, stages and hooks."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Matrix, Modality, Source
from aadml.data.sources.padding import sent
from aadml.methods.method import Embedder, MetricLoss
from aadml.methods.training.settings import Training
from aadml.methods.training.train_scores import map_scores
from aadml.methods.training.warnings import collapse_warning

EMBEDDING_BATCH = 1024
"""Items embedded at a time; 4,096 take up to half as long again, since what stands between layers leaves the caches."""


@dataclass(frozen=True)
class Epoch:
    """Where training stands.

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
    """What a player's loss is given.

    Attributes:
        features: modality -> (b, d), or the padded batch of a source; of several processes each has its own rows.
        labels: (b,) int64.
        index: (b,) rows in the training set.
        generator: the only source of draws.
        epoch: where training stands.
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
    """One set of parameters and the loss they minimise; adversarial methods have several.

    Attributes:
        parameters: what the player's optimizer moves.
        loss: batch -> named scalars; "loss" is minimised, the others are logged.
        settings: the `training` section -> that of this player, where its optimizer is another.
        probe: what the loss named, its graph still there -> further scalars, logged once an epoch; it draws nothing.
    """

    parameters: Sequence[nn.Parameter]
    loss: Callable[[Batch], Mapping[str, Tensor]]
    settings: Callable[[Training], Training] = lambda settings: settings
    probe: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] | None = None


@dataclass(frozen=True)
class Stage:
    """A part of training, as data.

    Attributes:
        name: for the log.
        epochs: how many.
        players: who is trained, in this order, on each batch; None for all.
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
    """Give the first of two stages its share of the epochs, and the second the rest; one without epochs is left out.

    Args:
        epochs: of both.
        share: of the first, 0 to 1.
        names: of the stages.
        apart: whether each trains the player of its name alone.
    """
    begun = round(share * epochs)
    parts = zip(names, (begun, epochs - begun), strict=True)
    return [Stage(name, count, (name,) if apart else None) for name, count in parts if count]


class Validation:
    """The validation clips as the weights of one epoch embed them.

    Args:
        learner: that embeds.
        clips: what.
    """

    def __init__(self, learner: "Learner", clips: Clips) -> None:
        self.clips = clips
        self._learner = learner

    @cached_property
    def embeddings(self) -> Embeddings:
        """Embed the clips, once for all who ask."""
        return self._learner.embed_clips(self.clips)


class Learner(nn.Module, Embedder):
    """A trainable method: what is fitted are parameters and buffers, so that `state_dict` is the whole of it.

    Attributes:
        criterion: the key of `validate`'s result that chooses the best epoch (larger is better).
        takes_criterion: whether `training.criterion` may name another score; not where a stage trains something else.
        margin: of the hinge whose mean is logged as "metric_loss"; None where there is none.
        in_bfloat16: whether `training.precision` may be bfloat16: "no", "possible", or "shown", where runs of several
            seeds scored the same in both precisions (docs/speed.md), so that "auto" may take it.
        divides_batches: whether several processes may train it: its losses then take the features of the process's own
            rows (`group.together` gathers what is made of them), and return the process's part of a sum.
        learns_beside_batches: whether its loss takes features of training clips that are not in the batch.
    """

    criterion: str = "map_mean"
    takes_criterion: bool = True
    margin: float | None = None
    in_bfloat16: Literal["no", "possible", "shown"] = "possible"
    divides_batches: bool = False
    learns_beside_batches: bool = False

    @abstractmethod
    def players(self) -> Mapping[str, Player]:
        """Name who is trained."""

    @abstractmethod
    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch of one modality (b, d) -> (b, dimension), in evaluation mode, each item alone."""

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Divide training into stages; one by default."""
        return (Stage("train", epochs),)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Refresh what depends on the whole training set (bank, class means, codes)."""

    def calibrate(self, valid: Clips) -> None:
        """Choose what is chosen on validation clips (temperature, read-out), before they are scored."""

    def finish(self, train: Clips, valid: Clips) -> None:
        """Do what remains once the best weights are loaded (a closed form on the outputs)."""

    def validate(self, valid: Validation) -> dict[str, float]:
        """Score the validation clips: the mean average precision of every direction, and their mean."""
        return map_scores(valid.embeddings)

    def held_out_loss(self, clips: Clips, batch: int) -> float | None:
        """Cost clips of any split as the trained ones are, in evaluation mode; None where that is not defined."""
        return None

    def warnings(self, valid: Validation) -> Iterable[str]:
        """Say what people should know after an epoch: embeddings that have collapsed to one point."""
        for modality in valid.embeddings.vectors:
            warning = collapse_warning(valid.embeddings.there(modality))
            if warning:
                yield f"the {modality} embeddings: {warning}"

    def metric_loss(self, settings: Training) -> MetricLoss | None:
        """Lay out the metric loss of a training; None where there is none to estimate."""
        return None

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items in evaluation mode, batch by batch, without gradients -> (n, dimension) float32 on the CPU."""
        with self.evaluated():
            return torch.cat([self.embed(batch, modality).float().cpu() for batch in self.in_batches(features)])

    @contextmanager
    def evaluated(self) -> Iterator[None]:
        """Stay in evaluation mode and follow no gradients as long as the context lasts, however it ends."""
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(was_training)

    @property
    def device(self) -> torch.device:
        """Say where the parameters lie."""
        return next(self.parameters()).device

    def in_batches(self, features: Features, rows: Tensor | None = None) -> Iterator[Any]:
        """Take all n items, or the rows (m,) of them, to the device of the parameters, a batch at a time."""
        chosen = torch.arange(len(features)) if rows is None else rows
        for some in chosen.split(EMBEDDING_BATCH if isinstance(features, Matrix) else 32):
            yield on_device(features, some, self.device)


def on_device(features: Features, rows: Tensor, device: torch.device) -> Any:
    """Take the rows (b,) of in-memory features, or the padded batch of a source, to a device."""
    if isinstance(features, Tensor):
        return sent(features[rows.to(features.device)], device)
    assert isinstance(features, Source)
    batch = features.batch(rows)
    if isinstance(batch, Tensor):
        return sent(batch, device)
    return batch.to(device) if hasattr(batch, "to") else batch
