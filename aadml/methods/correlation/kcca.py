"""KCCA: kernel canonical correlation analysis (Lai and Fyfe, 2000; Hardoon et al., Neural Computation 2004)."""

from collections.abc import Callable, Mapping
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.comparison.options import Count, Width
from aadml.comparison.pairwise import squared_distance
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Choice
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods.correlation.algebra import canonical, centered, cross_covariance
from aadml.methods.correlation.projection import Projection, joined
from aadml.methods.method import Context, Method
from aadml.methods.training.settings import Training

EIGENVALUE_FLOOR = 1e-10
BLOCK = 4096


class KernelFeatures:
    """Kernel values against landmarks, whitened by the landmarks' own kernel: their inner products are kernels.

    With every training clip a landmark this is kernel PCA without loss; with fewer it is Nystroem's approximation
    (Williams and Seeger, NIPS 2000).
    """

    def __init__(self, landmarks: Tensor, whitening: Tensor, parameter: Tensor, kernel: str) -> None:
        self.landmarks, self.whitening, self.parameter, self.kernel = landmarks, whitening, parameter, kernel

    def __call__(self, values: Tensor) -> Tensor:
        """Map (n, d) to (n, r), in double precision, block by block."""
        function = KERNELS[self.kernel]
        blocks = values.double().split(BLOCK)
        return torch.cat([function(block, self.landmarks, self.parameter) @ self.whitening for block in blocks])


def rbf(values: Tensor, landmarks: Tensor, gamma: Tensor) -> Tensor:
    """exp(-gamma |x - z|^2): (n, d), (m, d) -> (n, m)."""
    return torch.exp(-gamma * squared_distance(values, landmarks))


def polynomial(values: Tensor, landmarks: Tensor, gamma: Tensor) -> Tensor:
    """(1 + gamma x . z)^3: (n, d), (m, d) -> (n, m)."""
    return (1 + gamma * (values @ landmarks.T)) ** 3


KERNELS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {"rbf": rbf, "polynomial": polynomial}


class KernelMethod(Method):
    """See `kcca`."""

    def __init__(
        self, names: tuple[Modality, Modality], dimension: int, kernel: str, ridge: float, landmarks: int, seed: int
    ) -> None:
        lookup(KERNELS, kernel, "kernel")
        self.names, self.dimension, self.kernel = names, dimension, kernel
        self.ridge, self.count, self.seed = ridge, landmarks, seed
        self.maps: dict[Modality, KernelFeatures] = {}
        self.projection = Projection()

    def fit(self, train: Clips, valid: Clips, session: object = None) -> None:
        """Fit on training and validation clips together: there is nothing to choose."""
        clips = joined(train, valid)
        generator = torch.Generator().manual_seed(self.seed)
        chosen = torch.randperm(len(clips), generator=generator)[: self.count].sort().values
        parts = []
        for name in self.names:
            self.maps[name] = _kernel_features(clips.matrix(name)[chosen].double(), self.kernel)
            parts.append(centered(self.maps[name](clips.matrix(name))))
        (first, mean_first), (second, mean_second) = parts
        limit = min(first.shape[1], second.shape[1])
        if self.dimension > limit:
            raise InputError(f"method.dimension: {self.dimension} asked for; these clips span {limit} directions")
        cross = cross_covariance(first, second)
        solution = canonical(self._regularized(first), self._regularized(second), cross, self.dimension)
        self.projection.set(self.names[0], mean_first, solution.first)
        self.projection.set(self.names[1], mean_second, solution.second)

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Map n items of one modality (n, d) -> (n, dimension)."""
        if not isinstance(features, Tensor):
            raise InputError("kcca needs features as vectors")
        return self.projection(self.maps[modality](features), modality)

    def state(self) -> dict[str, Tensor]:
        """Return landmarks, whitenings, kernel parameters and projections."""
        state = self.projection.state()
        for name, mapped in self.maps.items():
            parts = {"landmarks": mapped.landmarks, "whitening": mapped.whitening, "parameter": mapped.parameter}
            state |= {f"kernel_{part}.{name}": value for part, value in parts.items()}
        return state

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state` returned."""
        self.projection.load(state)
        for name in self.names:
            landmarks, whitening, parameter = (
                state[f"kernel_{part}.{name}"] for part in ("landmarks", "whitening", "parameter")
            )
            self.maps[name] = KernelFeatures(landmarks, whitening, parameter, self.kernel)

    def _regularized(self, values: Tensor) -> Tensor:
        """(1 - c) K^2 + c K of kernel CCA, in the space where K is an inner product."""
        count = max(len(values) - 1, 1)
        own = values.T @ values / count
        return (1 - self.ridge) * own + self.ridge / count * torch.eye(len(own), dtype=own.dtype)


def kcca(
    context: Context,
    settings: Training,
    *,
    dimension: Width = 10,
    kernel: Annotated[str, Choice(KERNELS)] = "rbf",
    ridge: Annotated[float, Interval(gt=0, le=1)] = 0.1,
    landmarks: Count = 1000,
) -> Method:
    """Kernel CCA, exact up to `landmarks` clips and by Nystroem's approximation beyond (Hardoon et al., 2004).

    Maximizes a' K1 K2 b under a' ((1 - c) K1^2 + c K1) a = 1 and the same for b.

    Args:
        context: dimensions of the two modalities, seed of the choice of landmarks.
        settings: not used; the solution is closed.
        dimension: directions kept.
        kernel: "rbf" with gamma = 1 / (median distance)^2, or "polynomial" of degree 3.
        ridge: c above; without it kernel CCA correlates any two views perfectly.
        landmarks: clips that the kernels are computed against; with as many clips or fewer the solution is exact.
    """
    return KernelMethod(context.need_pair("kcca"), dimension, kernel, ridge, landmarks, context.seed)


def _kernel_features(landmarks: Tensor, kernel: str) -> KernelFeatures:
    if kernel == "rbf":
        distances = squared_distance(landmarks, landmarks)
        off_diagonal = distances[~torch.eye(len(distances), dtype=torch.bool)]
        # squared distances: the square of the median distance is the median of the squares
        scale = off_diagonal.median() if len(off_diagonal) else torch.ones((), dtype=torch.float64)
    else:
        scale = torch.tensor(float(landmarks.shape[1]), dtype=torch.float64)
    parameter = 1 / scale.clamp_min(torch.finfo(torch.float64).tiny)
    eigenvalues, vectors = torch.linalg.eigh(KERNELS[kernel](landmarks, landmarks, parameter))
    kept = eigenvalues > EIGENVALUE_FLOOR * eigenvalues[-1]
    return KernelFeatures(landmarks, vectors[:, kept] * eigenvalues[kept].rsqrt(), parameter, kernel)
