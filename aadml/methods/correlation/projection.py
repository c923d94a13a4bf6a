"""Closed-form methods: a mean and a projection for each modality."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.correlation.algebra import Canonical, canonical, centered, covariance, mixed_cross_covariance
from aadml.methods.method import Method, as_vectors


class LinearMethod(Method):
    """Method with a projection x -> (x - mean) W in double precision per modality, found in closed form."""

    def __init__(self) -> None:
        self.mean: dict[Modality, Tensor] = {}
        self.weights: dict[Modality, Tensor] = {}

    @abstractmethod
    def solve(self, parts: Sequence[Clips]) -> None:
        """Fit the projection to sets of clips, which are treated as one set.

        Raises:
            InputError: `method.dimension` is too large for the clips.
        """

    def fit(self, train: Clips, valid: Clips, session: object = None) -> None:
        """Fit on training and validation clips together, since no epoch is chosen; errors are those of `solve`."""
        self.solve([part for part in (train, valid) if len(part)])

    def store(
        self,
        names: tuple[Modality, Modality],
        means: tuple[Tensor, Tensor],
        solution: Canonical,
        *,
        weighted: bool = False,
    ) -> None:
        """Store a solution.

        Args:
            names: names of the two modalities.
            means: means (d1,) and (d2,) of the modalities.
            solution: projections of both modalities, and the correlations.
            weighted: whether to multiply each direction by its correlation.
        """
        for name, mean, weights in zip(names, means, (solution.first, solution.second), strict=True):
            self.mean[name] = mean.double()
            self.weights[name] = (weights * solution.correlations if weighted else weights).double()

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Project the features (n, d) of one modality to vectors (n, dimension).

        Raises:
            InputError: the features are computed batch by batch, or the method is not fitted on the modality.
        """
        vectors = as_vectors(features, "a method in closed form")
        if modality not in self.weights:
            raise InputError(
                f"the projection is not fitted on {modality} (fitted modalities: {', '.join(self.weights) or 'none'}); "
                f"fit the method on {modality}"
            )
        return ((self.inputs(vectors, modality) - self.mean[modality]) @ self.weights[modality]).float()

    def inputs(self, features: Tensor, modality: Modality) -> Tensor:
        """Return the inputs (n, d) of the projection in double precision."""
        return features.double()

    def state(self) -> dict[str, Tensor]:
        """Return the mean (d,) and the weights (d, k) of every modality."""
        state = {f"mean.{m}": value for m, value in self.mean.items()}
        return state | {f"weights.{m}": value for m, value in self.weights.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the result of `state`."""
        for key, value in state.items():
            part, modality = key.rsplit(".", 1)
            if part in ("mean", "weights"):
                getattr(self, part)[modality] = value


def solve_buffers(
    module: nn.Module,
    values: Mapping[Modality, Tensor],
    labels: Tensor,
    *,
    pair_weight: float | None,
    ridge: float,
    dimension: int,
) -> None:
    """Solve the correlation problem of paired values, and store the solution in buffers of a module.

    The buffers are `mean_MODALITY` (d,) and `weights_MODALITY` (d, k).

    Args:
        module: module that has the buffers.
        values: modality -> (n, d).
        labels: (n,) classes.
        pair_weight: weight of the pairs in the cross-covariance, besides clusters; None for only pairs.
        ridge: constant added to the diagonals of both covariances.
        dimension: number of directions, k.

    Raises:
        InputError: k is below 1, or larger than the smaller number of feature dimensions.
    """
    (first, mean_first), (second, mean_second) = (centered(vectors) for vectors in values.values())
    cross = mixed_cross_covariance(first, second, labels.to(first.device), pair_weight)
    solution = canonical(covariance(first, ridge), covariance(second, ridge), cross, dimension)
    means, projections = (mean_first, mean_second), (solution.first, solution.second)
    for modality, mean, weights in zip(values, means, projections, strict=True):
        module.get_buffer(f"mean_{modality}").copy_(mean)
        module.get_buffer(f"weights_{modality}").copy_(weights)
