"""Learners: modules with players, stages and hooks for the training loop."""

import weakref
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
from aadml.comparison.features import Features, Matrix, Modality
from aadml.comparison.processes import group
from aadml.comparison.transfer import sent
from aadml.feature_extraction.ground.errors import cause
from aadml.methods.method import Embedder
from aadml.methods.training.settings import Training
from aadml.methods.training.train_scores import map_scores
from aadml.methods.training.warnings import collapse_warning

EMBEDDING_BATCH = 1024
"""Items embedded at a time; 4,096 take up to 1.5 times as long, since activations no longer fit the caches."""


@dataclass(frozen=True)
class Epoch:
    """Position of an epoch in its stage.

    Attributes:
        stage: name of the stage.
        number: finished epochs of this stage, before this epoch.
        total: number of epochs of this stage.
    """

    stage: str
    number: int
    total: int


@dataclass(frozen=True)
class Batch:
    """Input of a player's loss.

    Attributes:
        features: modality -> (b, d), or the batch of a source. With several workers, the features contain only the
            rows of this worker.
        labels: (b,) int64.
        index: (b,) rows in the training set.
        generator: generator of the draws of selections and losses; dropout and noise use torch's global generator.
        epoch: position of the epoch in its stage.
        present: modality -> (b,) bool, whether a clip has the modality; only for modalities that some training
            clips lack.
        first_rows: (b,) row in the training set where the id of each row first occurs; None if no id is repeated.
    """

    features: Mapping[Modality, Any]
    labels: Tensor
    index: Tensor
    generator: torch.Generator
    epoch: Epoch
    present: Mapping[Modality, Tensor] = field(default_factory=dict)
    first_rows: Tensor | None = None

    @property
    def groups(self) -> Tensor:
        """Number (b,) of the clip of each row; rows with equal ids, such as captions of a clip, share a number."""
        return self.index if self.first_rows is None else self.first_rows


@dataclass(frozen=True)
class Player:
    """A set of parameters, and the loss that an optimizer minimizes over these parameters.

    Adversarial methods have several players.

    Attributes:
        parameters: parameters of the player's optimizer.
        loss: batch -> named scalars; "loss" is minimized, and all scalars are logged.
        settings: function from the `training` section to the section for this player; the same section by default.
        probe: function from the scalars of the loss, with their graph, to additional scalars for the log. The
            function draws no random numbers. None for no additional scalars.
        rates: parameter -> learning rate, for the parameters to which the rate of `settings` does not apply.
        after_step: called after each step of the optimizer.
    """

    parameters: Sequence[nn.Parameter]
    loss: Callable[[Batch], Mapping[str, Tensor]]
    settings: Callable[[Training], Training] = lambda settings: settings
    probe: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]] | None = None
    rates: Mapping[nn.Parameter, float] = field(default_factory=dict)
    after_step: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Stage:
    """Part of a training run.

    Attributes:
        name: name of the stage, for the log.
        epochs: number of epochs.
        players: names of the players that are trained on each batch, in the order of `Learner.players`; None for
            all.
        batches: (train, epoch, generator) -> rows of each batch; None for shuffled batches of the configured size.
        keep_optimizer: whether the optimizers keep their state from the stage before.
        start_from_best: whether the stage starts from the best weights of the stage before, rather than from the
            last weights of that stage.
        keep_best: whether the best score so far includes the stage before.
        scored: whether the best weights at the end of the stage are scored, before the next stage begins.
        validated: whether the stage trains parts that validation scores; patience and plateaus count only such
            stages.
    """

    name: str
    epochs: int
    players: tuple[str, ...] | None = None
    batches: Callable[[Clips, Epoch, torch.Generator], Iterable[Tensor]] | None = None
    keep_optimizer: bool = False
    start_from_best: bool = True
    keep_best: bool = False
    scored: bool = False
    validated: bool = True


def in_two(epochs: int, share: float, names: tuple[str, str], *, apart: bool = False) -> list[Stage]:
    """Divide epochs between two stages, and return the stages with at least one epoch.

    Args:
        epochs: epochs of both stages together.
        share: share of the epochs that belong to the first stage, 0 to 1.
        names: names of the stages.
        apart: whether each stage trains only the player with the stage's name.
    """
    first = round(share * epochs)
    counts = zip(names, (first, epochs - first), strict=True)
    return [Stage(name, count, (name,) if apart else None) for name, count in counts if count]


class Validation:
    """Validation clips with their embeddings under the weights of one epoch.

    Args:
        learner: learner that embeds the clips.
        clips: clips to embed.
    """

    def __init__(self, learner: "Learner", clips: Clips) -> None:
        self.clips = clips
        self._learner = learner

    @cached_property
    def embeddings(self) -> Embeddings:
        """Embeddings of the clips, computed once."""
        return self._learner.embed_clips(self.clips)


class Learner(nn.Module, Embedder):
    """A module for the training loop; all fitted numbers are parameters or buffers, and thus in `state_dict`.

    Attributes:
        criterion: key of the score that chooses the best epoch, in the result of `validate`; larger scores are
            better.
        takes_criterion: whether `training.criterion` may be another score; False if the stages have different
            scores.
        in_bfloat16: whether `training.precision` may be bfloat16 or tf32: "no", "possible" or "shown". "shown" lets
            "auto" choose bfloat16, after equal scores in bfloat16 and float32 over several seeds (see
            docs/lab/speed.md).
        divides_batches: whether several workers may train the learner. On each worker, the losses then receive only
            the features of the worker's own rows, and return the worker's part of a sum. `group.together` gathers
            the outputs of all workers.
        learns_beside_batches: whether the loss uses features of training clips outside the batch.
        normalizes_batches: whether training normalizes by the statistics of a batch, which needs two clips or more.
    """

    criterion: str = "map_mean"
    takes_criterion: bool = True
    in_bfloat16: Literal["no", "possible", "shown"] = "possible"
    divides_batches: bool = False
    learns_beside_batches: bool = False
    normalizes_batches: bool = False

    def players(self) -> Mapping[str, Player]:
        """Return the players by name; by default, one player of all trainable parameters with `_loss`."""
        return {"all": Player([p for p in self.parameters() if p.requires_grad], self._loss)}

    def _loss(self, batch: Batch) -> Mapping[str, Tensor]:
        """Compute the loss of the default player: named scalars; "loss" is minimized."""
        raise NotImplementedError

    @abstractmethod
    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed b items of one modality; in evaluation mode, each item independently.

        Args:
            features: (b, d), or the batch of a source.
            modality: modality of the items.

        Returns:
            Embeddings (b, dimension).
        """

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Return the stages of training; one stage by default."""
        return (Stage("train", epochs),)

    def begun(self, train: Clips, valid: Clips) -> tuple[Clips, Clips]:
        """Prepare training and validation clips before training; by default, the clips are returned unchanged."""
        return train, valid

    def decodable(self, clips: Clips) -> Clips:
        """Return the clips that can be embedded, in the form for `embed_clips`; by default, `clips` unchanged."""
        return clips

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Recompute state of all training clips, such as a bank, class means or codes; nothing by default."""

    def calibrate(self, valid: Clips) -> None:
        """Choose a temperature or read-out on the validation clips, before the clips are scored; nothing by default."""

    def finish(self, train: Clips, valid: Clips) -> None:
        """Fit a closed-form last step on the outputs, after the best weights are loaded; nothing by default."""

    def validate(self, valid: Validation) -> dict[str, float]:
        """Return scores of the validation clips; by default, the MAP of every direction and the mean MAP."""
        return map_scores(valid.embeddings)

    def held_out_loss(self, clips: Clips, batch: int) -> float | None:
        """Compute the training loss of clips of any split in evaluation mode, in batches of `batch` clips.

        Returns:
            The mean loss; None if the loss is undefined, as by default.
        """
        return None

    def warnings(self, valid: Validation) -> Iterable[str]:
        """Yield warnings after an epoch; by default, a warning for each modality whose embeddings coincide."""
        for modality in valid.embeddings.vectors:
            warning = collapse_warning(valid.embeddings.there(modality))
            if warning:
                yield f"the {modality} embeddings {warning}"

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items in evaluation mode, batch by batch, without gradients.

        Returns:
            Embeddings (n, dimension), float32 on the CPU.
        """
        with self.evaluated():
            return torch.cat([self.embed(batch, modality).float().cpu() for batch in self.in_batches(features)])

    @contextmanager
    def evaluated(self) -> Iterator[None]:
        """Return a context with the learner in evaluation mode, without gradients; the mode is restored at exit."""
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
        """Yield batches of the features of all n items, or of `rows` (m,), on the device of the parameters."""
        chosen = torch.arange(len(features)) if rows is None else rows
        for part in chosen.split(EMBEDDING_BATCH if isinstance(features, Matrix) else 32):
            yield on_device(features, part, self.device)


class CachingLearner(Learner):
    """A learner with a cache for the vectors of sources.

    The vectors of a source are dropped after the source is deleted. The cache is cleared when the weights may change.
    """

    def __init__(self) -> None:
        super().__init__()
        self._cache: dict[int, tuple[weakref.ref[Features], Tensor]] = {}  # by id of the features

    def __getstate__(self) -> object:
        return {**vars(self), "_cache": {}}  # weak references cannot be pickled

    def _stored(self, features: Features) -> Tensor | None:
        """Return the vectors that `_store` cached for a source; None without such vectors."""
        reference, vectors = self._cache.get(id(features), (None, None))
        return vectors if reference is not None and reference() is features else None

    def _store(self, features: Features, vectors: Tensor) -> None:
        """Cache the vectors of a source that supports weak references, and drop the vectors of deleted sources."""
        if not hasattr(features, "__weakref__"):
            return
        living = {key: entry for key, entry in self._cache.items() if entry[0]() is not None}
        self._cache = living | {id(features): (weakref.ref(features), vectors)}

    def train(self, mode: bool = True) -> Self:
        """Set the mode; training mode clears the cache."""
        if mode:
            self._cache = {}
        return super().train(mode)

    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False) -> Any:
        """Load the parameters and buffers, and clear the cache."""
        self._cache = {}
        return super().load_state_dict(state_dict, strict=strict, assign=assign)


class ResizedBuffers(nn.Module):
    """A module that resizes certain buffers to their sizes in a loaded state.

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


def mismatch(error: Exception) -> str:
    """Return the cause of an error of `load_state_dict` in one line.

    The line is the first entry of torch's list of differences; without such a list, the first line of the error.
    """
    first = str(error).partition("state_dict for ")[2].partition("\n")[2]
    return cause(ValueError(first) if first else error)


def batch_of(clips: Clips, rows: Tensor, device: torch.device, generator: torch.Generator, epoch: Epoch) -> Batch:
    """Build the batch of the rows (b,) of clips on a device; the features are those of this worker's rows."""
    features = {m: on_device(clips[m], rows[group.own(len(rows))], device) for m in clips.modalities}
    labels = sent(clips.labels[sent(rows, clips.labels.device)], device)
    present = {m: sent(flags[sent(rows, flags.device)], device) for m, flags in clips.present.items()}
    first_rows = None if clips.first_rows is None else sent(clips.first_rows[rows.cpu()], device)
    return Batch(features, labels, sent(rows, device), generator, epoch, present, first_rows)


def on_device(features: Features, rows: Tensor, device: torch.device) -> Any:
    """Return the features of the rows (b,): a tensor on the device, or the batch of a source (moved if possible)."""
    batch = features[sent(rows, features.device)] if isinstance(features, Tensor) else features.batch(rows)
    if isinstance(batch, Tensor):
        return sent(batch, device)
    return batch.to(device) if hasattr(batch, "to") else batch
