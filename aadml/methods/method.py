"""The one contract of every method: fit on clips, embed one modality alone."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Modality
from aadml.comparison.stored_rows import BLOCK, StoredRows
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Precision, Training


@dataclass(frozen=True)
class Context:
    """What a method is built for.

    Attributes:
        dimensions: modality -> number of feature dimensions; the order names the modalities. 0 for a batch-made source.
        classes: number of classes C; 0 where the clips are not of one class each.
        seed: decides initial weights, batch order, dropout, draws.
        device: where neural methods compute.
        clips: number of training clips; 0 where it is not known.
        features: modality -> what made its features, as `Facts` have it; empty where nothing is known.
        unlabelled: number of training and validation clips that have no label although others have one.
        architecture: what a saved model says of networks whose shape was read from files (see `Method.architecture`);
            None where a method is built to be trained, and reads those files itself.
    """

    dimensions: Mapping[Modality, int]
    classes: int
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    clips: int = 0
    features: Mapping[Modality, JsonObject] = field(default_factory=dict)
    unlabelled: int = 0
    architecture: JsonObject | None = None

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Name the modalities."""
        return tuple(self.dimensions)

    def need_vectors(self, method: str) -> None:
        """Refuse features that are no vectors, to a method that learns from vectors alone.

        Raises:
            InputError: names the modality.
        """
        for modality, dimension in self.dimensions.items():
            if not dimension:
                raise InputError(f"{method} needs features as vectors; the {modality} features are made batch by batch")

    def need_pair(self, method: str) -> tuple[Modality, Modality]:
        """Give the two modalities, of vectors, to a method of two views.

        Raises:
            InputError: there are not two, which says how to choose, or their features are no vectors.
        """
        if len(self.modalities) != 2:
            raise InputError(
                f"{method} learns from two modalities, and these clips have {', '.join(self.modalities)}; choose two "
                f"(--set modalities={','.join(self.modalities[:2])}), or take a method of any number (pairs, clip, "
                "aadml)"
            )
        self.need_vectors(method)
        first, second = self.modalities
        return first, second

    def need_classes(self, method: str, *, of_all: bool = True) -> int:
        """Give the number of classes to a method that learns them.

        Args:
            method: who asks, for the message.
            of_all: whether it needs the class of every clip.

        Raises:
            InputError: the clips have no classes, or several each, or not all have one; says what can be done.
        """
        if self.classes and self.unlabelled and of_all:
            raise InputError(
                f"{method} learns from one class a clip, and {self.unlabelled} training or validation clips have no "
                "label; leave them out (--set unlabelled=drop), or take few-labels or pairs (--method), which learn "
                "from them too"
            )
        if not self.classes:
            raise InputError(
                f"{method} learns from one class a clip, and these clips have none, or several; take pairs, clip, "
                "cca, kcca, dcca, bic-net or dcil (--method), or of several labels keep the first "
                "(`aadml convert IN OUT --first-label`)"
            )
        return self.classes


@dataclass(frozen=True)
class MetricLoss:
    """What a training in steps will spend on its metric loss.

    Attributes:
        loss: comparison -> terms.
        directions: (anchors, candidates) of each comparison of a step.
        features: f of the penultimate features.
        batch: clips of a step.
        epochs: of the training.
    """

    loss: Callable[..., Any]
    directions: Sequence[tuple[str, str]]
    features: int
    batch: int
    epochs: int


@dataclass(frozen=True)
class Prior:
    """A model that must be trained before a method is: on the same data, of the same seed and options.

    Attributes:
        name: what it is to the method, in a word ("ancillary").
        method: its name in METHODS; it takes those of the options that it knows.
        training: its `training` section.
    """

    name: str
    method: str
    training: Training


class Embedder(ABC):
    """What a method and the learner inside it share: how clips are embedded, and on which it can be trained."""

    @property
    def similarity(self) -> str:
        """Similarity by which embeddings are compared; a class may have it as a plain attribute."""
        return "cosine"

    @property
    def takes_missing(self) -> bool:
        """Whether training takes clips that lack a modality; else clips that lack one are left out.

        A class may have it as a plain attribute.
        """
        return False

    @property
    def needs_same_texts(self) -> str:
        """Reason why the texts of its training clips may not change from epoch to epoch; "" where they may."""
        return ""

    def check_clips(self, train: Clips) -> None:
        """Check that the method can be trained on the clips.

        Raises:
            InputError: the method cannot be trained on them; the message says why.
        """
        return

    @abstractmethod
    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality, each alone -> (n, dimension) float32 on the CPU."""

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`, one at a time."""
        vectors = {modality: self.embed_all(clips[modality], modality) for modality in clips.modalities}
        return clips.embedded(vectors, self.similarity)

    def encode(self, clips: Clips, modality: Modality) -> Tensor:
        """Encode one modality of `clips`, each item alone, up to where embeddings are read off (n, outputs)."""
        return self.embed_all(clips[modality], modality)

    def read_off(self, outputs: Tensor) -> Tensor:
        """Read embeddings off outputs (n, outputs) -> (n, dimension)."""
        return outputs

    def proxy(self) -> nn.Module | None:
        """Return the proxy as which clips are seen in training; None where there is none."""
        return None

    def readout(self) -> JsonObject:
        """Describe how embeddings are read off the outputs, where that was chosen (a temperature); for people."""
        return {}


class Method(Embedder):
    """Fit on training clips (choosing on validation clips only), then embed items of one modality, each alone.

    Attributes:
        fits_validation: whether `fit` learns from the validation clips too, as a closed form does, which has no epoch
            to choose by them.
        takes_statistics: whether its inputs may be scaled by statistics of the training clips.
    """

    fits_validation: bool = True
    takes_statistics: bool = True

    @property
    def needs_same_texts(self) -> str:
        """Say why the texts of its training clips may not change from epoch to epoch; "" where they may."""
        return "learns by no epochs"

    @property
    def divides_batches(self) -> bool:
        """Tell whether several processes may train it, each on rows of its own."""
        return False

    @property
    def precision(self) -> Precision:
        """Name the precision in which it trains, as `training.precision` resolved here."""
        return "float32"

    @abstractmethod
    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Learn from `train`; `valid` serves to choose (epoch, temperature), never to fit.

        Args:
            train: clips to fit on.
            valid: clips to choose on.
            session: where progress, checkpoints and logs go; None keeps them in memory.
        """

    @abstractmethod
    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality, each alone: no label, no partner, no other item acts on it.

        Args:
            features: (n, d) or a source of n items.
            modality: which.

        Returns:
            (n, dimension) float32 on the CPU.
        """

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items; what does not lie in memory is taken there part by part. Args as of `embed`."""
        if not isinstance(features, StoredRows):
            return self.embed(features, modality)
        return torch.cat([self.embed(rows, modality) for rows in features.split(BLOCK)])

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Return everything fitted, as tensors."""

    @abstractmethod
    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state` returned."""

    def prior(self) -> Prior | None:
        """Say which model must be trained first; None where there is none."""
        return None

    def take_prior(self, trained: "Method") -> None:
        """Take the trained model that `prior` names, for the next `fit`, which else trains it itself."""
        raise InputError(f"{type(self).__name__}: needs no other model trained first")

    def metric_loss(self) -> MetricLoss | None:
        """Lay out the metric loss that a training would compute; None where there is none to estimate."""
        return None

    def architecture(self) -> JsonObject:
        """Describe networks whose shape was read from files, so that a saved model can be built without them."""
        return {}

    def parameters_count(self) -> int:
        """Count the fitted numbers."""
        return sum(tensor.numel() for tensor in self.state().values())
