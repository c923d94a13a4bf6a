"""Contract of methods: fit on clips, and embed each modality independently of the others."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.features import Features, Modality
from aadml.comparison.stored_rows import BLOCK, StoredRows
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.methods.architecture import Architecture
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Precision, Training
from aadml.proxies.contract import Proxy


@dataclass(frozen=True)
class Context:
    """Facts about the data and the device of a method, for building the method.

    Attributes:
        dimensions: modality -> number of feature dimensions, in the order of the modalities. 0 for features that are
            computed batch by batch.
        classes: number of classes C; 0 if the clips have no class or several classes.
        seed: seed of initial weights, batch order, dropout and draws.
        device: device of neural methods.
        clips: number of training clips; 0 if unknown.
        features: modality -> provenance of its features, as in `Facts`; empty if unknown.
        unlabelled: number of training and validation clips without a label; 0 if `classes` is 0.
        class_problem: reason why the classes cannot be trained on, such as a class without training clips; "" if none.
        architecture: description of a saved model's pretrained networks (see `Method.architecture`). None for a new
            method, which reads the files of these networks.
    """

    dimensions: Mapping[Modality, int]
    classes: int
    seed: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    clips: int = 0
    features: Mapping[Modality, JsonObject] = field(default_factory=dict)
    unlabelled: int = 0
    class_problem: str = ""
    architecture: Architecture | None = None

    @property
    def modalities(self) -> tuple[Modality, ...]:
        """Modalities of the clips, in the order of `dimensions`."""
        return tuple(self.dimensions)

    def need_vectors(self, method: str) -> None:
        """Check that the clips have at least two modalities, with vectors as the features of each.

        Raises:
            InputError: there are fewer than two modalities, or the features of a modality are computed batch by batch.
        """
        if len(self.modalities) < 2:
            raise InputError(f"the data have only {', '.join(self.modalities)}; pass data of at least two modalities")
        for modality, dimension in self.dimensions.items():
            if not dimension:
                raise InputError(
                    f"{method} needs vectors, but the {modality} features are computed batch by batch; extract "
                    "features (`aadml extract`)"
                )

    def need_pair(self, method: str) -> tuple[Modality, Modality]:
        """Return the two modalities, for a method that requires exactly two.

        Raises:
            InputError: the clips do not have exactly two modalities, or the features of a modality are not vectors.
        """
        self.need_vectors(method)
        if len(self.modalities) != 2:
            raise InputError(
                f"{method} learns from two modalities, but the clips have {', '.join(self.modalities)}; choose two "
                f"(--set modalities={','.join(self.modalities[:2])}), or a method for any number of modalities (pairs, "
                "clip, aadml)"
            )
        first, second = self.modalities
        return first, second

    def need_classes(self, method: str, *, of_all: bool = True) -> int:
        """Return the number of classes, for a method that is trained on classes.

        Args:
            method: name of the method, for the message.
            of_all: whether the method needs the class of every clip.

        Raises:
            InputError: clips with no class or several classes, a class problem, or unlabeled clips if `of_all` is set.
        """
        if self.class_problem:
            raise InputError(
                f"{method} trains on classes, but {self.class_problem}; add clips, choose a method that trains without "
                "classes (such as pairs), or leave incomplete classes out: `aadml convert IN OUT --incomplete-classes "
                "drop`"
            )
        if self.classes and self.unlabelled and of_all:
            raise InputError(
                f"{method} needs one class per clip, but {self.unlabelled} training or validation clips have no label; "
                "omit these clips (--set unlabelled=drop), or choose a method for unlabeled clips (few-labels or pairs)"
            )
        if not self.classes:
            raise InputError(
                f"{method} needs one class per clip, but the clips have no class or several classes; choose the method "
                "pairs, clip, cca, kcca, dcca, bic-net or dcil, or keep the first of several labels "
                "(`aadml convert IN OUT --first-label`)"
            )
        return self.classes


@dataclass(frozen=True)
class Prior:
    """Description of a model that is trained before a method, on the same data and with the same seed.

    Attributes:
        name: role of the model in one word ("ancillary").
        method: name of the model's method in METHODS. The model has all options of the config that this method
            accepts.
        training: `training` section of the model.
    """

    name: str
    method: str
    training: Training


class Embedder(ABC):
    """Embedding of clips and checks of training clips, shared by methods and learners.

    Attributes:
        takes_missing: whether clips that lack a modality are used in training instead of omitted.
        needs_same_texts: reason why the texts of the training clips may not change from epoch to epoch; "" if they may
            change.
    """

    takes_missing: bool = False
    needs_same_texts: str = ""

    @property
    def similarity(self) -> str:
        """Similarity of embeddings, by name; a class may define a plain attribute instead of this property."""
        return "cosine"

    def check_clips(self, train: Clips) -> None:
        """Raise InputError if training on the clips is not possible. By default, any clips are accepted."""
        return

    @abstractmethod
    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Return the embeddings (n, dimension) of n items of one modality, float32 on the CPU.

        Each item is embedded independently of all other items.
        """

    def embed_clips(self, clips: Clips) -> Embeddings:
        """Embed every modality of `clips`, one at a time."""
        vectors = {modality: self.embed_all(clips[modality], modality) for modality in clips.modalities}
        return clips.embedded(vectors, self.similarity)

    def encode(self, clips: Clips, modality: Modality) -> Tensor:
        """Return the outputs (n, o) for one modality of `clips`, which `read_off` converts to embeddings.

        Each item is encoded independently of all other items. The number o of outputs depends on the method.
        """
        return self.embed_all(clips[modality], modality)

    def read_off(self, outputs: Tensor) -> Tensor:
        """Compute embeddings (n, dimension) from the outputs (n, o) of `encode`."""
        return outputs

    def proxy(self) -> Proxy | None:
        """Return the proxy of clips in the training loss; None if clips represent themselves."""
        return None

    def architecture(self) -> Architecture:
        """Return the description of the pretrained networks, for a saved model; empty without such networks."""
        return Architecture()

    def readout(self) -> Mapping[str, str | float]:
        """Return the name and temperature of the chosen read-out, for reports; empty if no read-out is chosen."""
        return {}


class Method(Embedder):
    """A model that is fitted on training clips, and embeds each item independently of all other items.

    Attributes:
        fits_validation: whether `fit` also learns from the validation clips. True for methods with a solution in
            closed form, because these methods choose no epoch.
        takes_statistics: whether inputs may be scaled by statistics of the training clips.
        divides_batches: whether several workers may train the method, each worker on a part of the rows of a batch.
        precision: precision of training: `training.precision`, resolved for method and machine.
    """

    fits_validation: bool = True
    takes_statistics: bool = True
    needs_same_texts = "does not train in epochs"
    divides_batches: bool = False
    precision: Precision = "float32"

    @abstractmethod
    def fit(self, train: Clips, valid: Clips, session: Session | None = None) -> None:
        """Fit on `train`; use `valid` only to choose the epoch or a temperature, except with `fits_validation`.

        Args:
            train: clips to fit on.
            valid: clips for choosing epoch and temperature; with `fits_validation`, additional clips to fit on.
            session: destination of progress, checkpoints and logs; None keeps these in memory.

        Raises:
            InputError: the method cannot be fitted on the clips.
        """

    @abstractmethod
    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items of one modality, each independently of labels, partners and other items.

        Args:
            features: (n, d) or a source of n items.
            modality: modality of the items.

        Returns:
            (n, dimension) float32 on the CPU.

        Raises:
            InputError: the method cannot embed the features, or is not fitted.
        """

    def embed_all(self, features: Features, modality: Modality) -> Tensor:
        """Embed n items; rows outside memory are read block by block. Arguments and result are those of `embed`."""
        if not isinstance(features, StoredRows):
            return self.embed(features, modality)
        return torch.cat([self.embed(rows, modality) for rows in features.split(BLOCK)])

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """Return all fitted parameters and buffers as tensors."""

    @abstractmethod
    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the result of `state`."""

    def prior(self) -> Prior | None:
        """Return the description of the model to train first; None if no other model is needed."""
        return None

    def take_prior(self, trained: "Method") -> None:
        """Use the trained model of `prior` in the next `fit`, which otherwise trains that model itself.

        Raises:
            InputError: the method needs no other model.
        """
        raise InputError(f"{type(self).__name__} needs no other model to be trained first; call fit without take_prior")

    def parameters_count(self) -> int:
        """Return the number of fitted values; by default, the number of entries of all tensors of `state`."""
        return sum(tensor.numel() for tensor in self.state().values())


class MethodFactory(Protocol):
    """Function or class that builds an untrained method; see METHODS for its keyword-only arguments."""

    def __call__(self, context: Context, settings: Training, /, **options: Any) -> Method:
        """Build an untrained method."""
        ...


def as_vectors(features: Features, method: str) -> Tensor:
    """Return features as a tensor (n, d).

    Raises:
        InputError: the features are computed batch by batch.
    """
    if not isinstance(features, Tensor):
        raise InputError(
            f"{method} needs vectors, but the features are computed batch by batch; extract features (`aadml extract`)"
        )
    return features
