"""KCCA: kernel canonical correlation analysis (Lai and Fyfe, 2000; Hardoon et al., Neural Computation 2004).

Reference: Lai and Fyfe, Kernel and nonlinear canonical correlation analysis, International Journal of Neural Systems
2000, https://doi.org/10.1142/S012906570000034X
Reference: Hardoon et al., Canonical correlation analysis: an overview with application to learning methods, Neural
Computation 2004, https://doi.org/10.1162/0899766042321814
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Count, Width
from aadml.comparison.pairwise import squared_distance
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Choice
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods.correlation.algebra import canonical, centered, covariance, cross_covariance
from aadml.methods.correlation.covariances import Names
from aadml.methods.correlation.projection import LinearMethod
from aadml.methods.method import Context, Method
from aadml.methods.training.settings import Training

EIGENVALUE_FLOOR = 1e-10
BLOCK = 4096
_PARTS = ("landmarks", "whitening", "parameter")


def rbf(values: Tensor, landmarks: Tensor, gamma: Tensor) -> Tensor:
    """Compute the kernel (n, m) of `values` (n, d) and `landmarks` (m, d): exp(-gamma |x - z|^2) for rows x and z."""
    return torch.exp(-gamma * squared_distance(values, landmarks))


def polynomial(values: Tensor, landmarks: Tensor, gamma: Tensor) -> Tensor:
    """Compute the kernel (n, m) of `values` (n, d) and `landmarks` (m, d): (1 + gamma x . z)^3 for rows x and z."""
    return (1 + gamma * (values @ landmarks.T)) ** 3


KERNELS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {"rbf": rbf, "polynomial": polynomial}


class KernelFeatures:
    """Map from vectors to features whose inner products are kernel values of the vectors.

    The features are the kernel values of a vector with all landmarks, whitened by the kernel matrix of the
    landmarks. If every training clip is a landmark, the features are exact (kernel PCA). With fewer landmarks, the
    features are Nystroem's approximation (Williams and Seeger, NIPS 2000).

    Reference: Williams and Seeger, Using the Nyström method to speed up kernel machines, NIPS 2000, https://papers.nips.cc/paper_files/paper/2000/hash/19de10adbaa1b2ee13f77f679fa1483a-Abstract.html

    Args:
        kernel: a key of KERNELS.
        landmarks: (m, d).
        whitening: (m, r), with the rank r of the kernel matrix of the landmarks.
        parameter: gamma, a scalar.
    """

    def __init__(self, kernel: str, landmarks: Tensor, whitening: Tensor, parameter: Tensor) -> None:
        self.kernel, self.landmarks, self.whitening, self.parameter = kernel, landmarks, whitening, parameter

    def __call__(self, values: Tensor) -> Tensor:
        """Compute the features (n, r) of vectors (n, d) in double precision, block by block."""
        function = KERNELS[self.kernel]
        blocks = values.double().split(BLOCK)
        return torch.cat([function(block, self.landmarks, self.parameter) @ self.whitening for block in blocks])


class KernelCorrelation(LinearMethod):
    """Projection of kernel features; see `kcca` for the arguments."""

    def __init__(self, names: Names, kernel: str, *, dimension: int, ridge: float, landmarks: int, seed: int) -> None:
        super().__init__()
        self.names, self.kernel, self.dimension = names, kernel, dimension
        self.ridge, self.landmarks, self.seed = ridge, landmarks, seed
        self.maps: dict[Modality, KernelFeatures] = {}

    def solve(self, parts: Sequence[Clips]) -> None:
        """Fit the projection to sets of clips, which are treated as one set.

        Raises:
            InputError: `method.dimension` is above the number of directions that the clips span.
        """
        generator = torch.Generator().manual_seed(self.seed)
        chosen = torch.randperm(sum(map(len, parts)), generator=generator)[: self.landmarks].sort().values
        values = {name: torch.cat([part.matrix(name) for part in parts]) for name in self.names}
        maps = {name: _kernel_features(vectors[chosen].double(), self.kernel) for name, vectors in values.items()}
        (first, mean_first), (second, mean_second) = (centered(maps[m](values[m])) for m in self.names)
        limit = min(first.shape[1], second.shape[1])
        if self.dimension > limit:
            raise InputError(
                f"method.dimension is {self.dimension}, but the clips span {limit} directions; pass at most {limit}"
            )
        covariances = _regularized(first, self.ridge), _regularized(second, self.ridge)
        solution = canonical(*covariances, cross_covariance(first, second), self.dimension)
        self.maps = maps
        self.store(self.names, (mean_first, mean_second), solution)

    def inputs(self, features: Tensor, modality: Modality) -> Tensor:
        """Return the kernel features (n, r) of features (n, d)."""
        return self.maps[modality](features)

    def state(self) -> dict[str, Tensor]:
        """Return the landmarks, whitenings, kernel parameters and projections."""
        maps = {f"kernel_{part}.{m}": getattr(mapped, part) for m, mapped in self.maps.items() for part in _PARTS}
        return super().state() | maps

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load the result of `state`."""
        super().load(state)
        for name in self.weights:
            self.maps[name] = KernelFeatures(self.kernel, *(state[f"kernel_{part}.{name}"] for part in _PARTS))


def kcca(
    context: Context,
    settings: Training,
    *,
    dimension: Width = 10,
    kernel: Annotated[str, Choice(KERNELS)] = "rbf",
    ridge: Annotated[float, Interval(gt=0, le=1)] = 0.1,
    landmarks: Count = 1000,
) -> Method:
    """Build kernel CCA (Hardoon et al., 2004), with Nystroem's approximation for more than `landmarks` clips.

        maximize a' K1 K2 b   under   a' ((1 - c) K1^2 + c K1) a = 1   and   b' ((1 - c) K2^2 + c K2) b = 1

    K1 and K2 are the centered kernel matrices of the modalities, and a and b are weights of the clips.

    Args:
        context: dimensions of the two modalities, and the seed for choosing landmarks.
        settings: not used, since the solution has a closed form.
        dimension: number of directions.
        kernel: "rbf" with gamma = 1 / (median distance)^2, or "polynomial" of degree 3.
        ridge: constant c in the constraints. Without a ridge, kernel CCA correlates any two modalities perfectly.
        landmarks: largest number of clips that are landmarks of the kernels. The result is exact for at most this
            number of clips.

    Raises:
        InputError: the kernel is unknown, or the clips do not have exactly two modalities of vectors.
    """
    lookup(KERNELS, kernel, "kernel")
    names = context.need_pair("kcca")
    return KernelCorrelation(names, kernel, dimension=dimension, ridge=ridge, landmarks=landmarks, seed=context.seed)


def _regularized(values: Tensor, ridge: float) -> Tensor:
    """Compute the matrix (r, r) of the constraint from centered kernel features F (n, r), with c = `ridge`.

        ((1 - c) F' F + c I) / (n - 1)

    This matrix is the form of (1 - c) K^2 + c K, with K = F F', in the space of the features.
    """
    count = max(len(values) - 1, 1)
    identity = torch.eye(values.shape[1], dtype=values.dtype)
    return (1 - ridge) * covariance(values, 0.0) + ridge / count * identity


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
    large = eigenvalues > EIGENVALUE_FLOOR * eigenvalues[-1]
    return KernelFeatures(kernel, landmarks, vectors[:, large] * eigenvalues[large].rsqrt(), parameter)
