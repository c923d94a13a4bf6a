"""What every closed-form member of the family is once fitted: a mean and a projection for each modality."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.correlation.algebra import Canonical
from aadml.methods.method import Method


def joined(train: Clips, valid: Clips) -> Clips:
    """Return training and validation clips as one: a closed form without a search has nothing to choose."""
    if not len(valid):
        return train
    features: dict[Modality, Features] = {m: torch.cat([train.matrix(m), valid.matrix(m)]) for m in train.modalities}
    labels = torch.cat([train.labels, valid.labels])
    return Clips(features, labels, train.ids + valid.ids, train.class_names)


class Projection:
    """x -> (x - mean) W in double precision, for each modality alone."""

    def __init__(self) -> None:
        self.mean: dict[Modality, Tensor] = {}
        self.weights: dict[Modality, Tensor] = {}

    def set(self, modality: Modality, mean: Tensor, weights: Tensor) -> None:
        """Fix what was fitted: mean (d,) and weights (d, k)."""
        self.mean[modality], self.weights[modality] = mean.double(), weights.double()

    def __call__(self, features: Tensor, modality: Modality) -> Tensor:
        """Project (n, d) -> (n, k), float32."""
        if modality not in self.weights:
            raise InputError(f"not fitted on {modality}; there are {', '.join(self.weights) or 'none'}")
        return ((features.double() - self.mean[modality]) @ self.weights[modality]).float()

    def state(self) -> dict[str, Tensor]:
        """Return mean and weights of every modality."""
        state = {f"mean.{m}": value for m, value in self.mean.items()}
        return state | {f"weights.{m}": value for m, value in self.weights.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state` returned."""
        for key, value in state.items():
            part, modality = key.rsplit(".", 1)
            if part in ("mean", "weights"):
                getattr(self, part)[modality] = value


def projection_of(
    names: tuple[Modality, Modality], means: tuple[Tensor, Tensor], solution: Canonical, *, weighted: bool
) -> Projection:
    """Make the projection of a solved problem, directions multiplied by their correlations where `weighted`."""
    projection = Projection()
    for name, mean, weights in zip(names, means, (solution.first, solution.second), strict=True):
        projection.set(name, mean, weights * solution.correlations if weighted else weights)
    return projection


class LinearMethod(Method):
    """A method that is fitted in closed form by a function of the training clips.

    Args:
        fitted: sets of clips, taken as one -> a projection.
    """

    def __init__(self, fitted: Callable[[Sequence[Clips]], Projection]) -> None:
        self._fitted = fitted
        self.projection = Projection()

    def fit(self, train: Clips, valid: Clips, session: object = None) -> None:
        """Fit on training and validation clips together: there is nothing to choose."""
        self.projection = self._fitted([part for part in (train, valid) if len(part)])

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Project n items of one modality (n, d) -> (n, dimension)."""
        if not isinstance(features, Tensor):
            raise InputError("a linear method needs features as vectors")
        return self.projection(features, modality)

    def state(self) -> dict[str, Tensor]:
        """Return mean and weights."""
        return self.projection.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over mean and weights."""
        self.projection.load(state)
