"""PCA with whitening, as in the released features of YouTube-8M and AudioSet.

Sources: Abu-El-Haija et al., YouTube-8M (2016) and its `feature_extractor`; tensorflow/models, `vggish_postprocess`.

Reference: Abu-El-Haija et al., YouTube-8M: a large-scale video classification benchmark, 2016, https://arxiv.org/abs/1609.08675
Reference: Chan et al., Updating formulae and a pairwise algorithm for computing sample variances, Stanford University
1979, http://i.stanford.edu/pub/cstr/reports/cs/tr/79/773/CS-TR-79-773.pdf
"""

import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.foreign.numpy_files import read_npy
from aadml.feature_extraction.frontends.quantization import dequantize, quantize
from aadml.feature_extraction.ground.archives import damage_as
from aadml.feature_extraction.ground.errors import InputError

Floats = NDArray[np.floating[Any]]

YOUTUBE8M_EPSILON = 1e-4
_ROWS = 4096  # minimum rows of a block whose scatter matrix is computed


@dataclass(frozen=True)
class Whitening:
    """Affine map to uncorrelated components of unit variance.

    Attributes:
        mean: (d,) mean of the fitted rows.
        components: (d, k) orthonormal directions, ordered by decreasing variance.
        variance: (k,) variance of the fitted rows along each direction.
        epsilon: value added to the variance to avoid division by zero; a number or an array (1,).
    """

    mean: NDArray[np.float64]
    components: NDArray[np.float64]
    variance: NDArray[np.float64]
    epsilon: float | NDArray[np.float64] = YOUTUBE8M_EPSILON

    def transform(self, features: Floats) -> NDArray[np.float32]:
        """Whiten rows: ((x - mean) components) / sqrt(variance + epsilon).

        Args:
            features: (n, d).

        Returns:
            (n, k) float32.
        """
        centered = np.asarray(features, dtype=np.float64) - self.mean
        return np.asarray(np.einsum("nd,dk->nk", centered, self._scaled, optimize=True), dtype=np.float32)

    @cached_property
    def _scaled(self) -> NDArray[np.float64]:
        return np.asarray(self.components / np.sqrt(self.variance + self.epsilon))

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return `mean` (d,), `components` (d, k), `variance` (k,) and `epsilon` (1,) as float32 for a feature file."""
        return {f.name: np.atleast_1d(np.asarray(getattr(self, f.name), dtype=np.float32)) for f in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Floats]) -> "Whitening":
        """Build a whitening from the result of `arrays`."""
        return cls(**{f.name: np.asarray(arrays[f.name], dtype=np.float64) for f in fields(cls)})


def fit_whitening(blocks: Iterable[Floats], dimension: int, *, epsilon: float = YOUTUBE8M_EPSILON) -> Whitening:
    """Fit a PCA with whitening to rows in blocks, with the memory of a (d, d) matrix.

    The rows must be training rows, because a fit to test rows would leak test data.

    Args:
        blocks: (n_i, d) arrays; read once.
        dimension: k, the number of components, at most d.
        epsilon: see `Whitening`.

    Returns:
        The whitening. The entry of largest magnitude of each component is positive, so that signs are reproducible.

    Raises:
        InputError: fewer rows than components or than two, `dimension` above d, or a row that is not finite.
    """
    count, mean, scatter = 0, np.zeros(()), np.zeros(())
    for block in _gathered(blocks):
        if not np.isfinite(block).all():
            raise InputError(
                "PCA: the features of the training clips contain NaN or infinity; check the weights of the network, or "
                "set reduction to none"
            )
        block_mean = block.mean(axis=0)
        centered = block - block_mean
        shift, share = block_mean - mean, len(block) / (count + len(block))  # Chan, Golub and LeVeque, 1979
        scatter = scatter + (centered.T @ centered + np.outer(shift, shift) * (count * share))
        mean = mean + shift * share
        count += len(block)
    if count < max(2, dimension):
        raise InputError(
            f"PCA to {dimension} dimensions: there are {count:,} training frames, but at least {max(2, dimension):,} "
            "are needed; pass more training clips, or set reduction to none"
        )
    if dimension > len(mean):
        raise InputError(
            f"PCA to {dimension} dimensions: the features have only {len(mean)} dimensions; choose at most {len(mean)}"
        )
    values, vectors = np.linalg.eigh(scatter / (count - 1))
    components = vectors[:, ::-1][:, :dimension]
    components = components * np.sign(components[np.abs(components).argmax(axis=0), np.arange(dimension)])
    return Whitening(mean, components, np.maximum(values[::-1][:dimension], 0.0), epsilon)


@dataclass(frozen=True)
class PcaWhitening:
    """PCA with whitening, fitted to the frames of the training clips; a `Fit` of an extractor.

    Attributes:
        dimension: number of components.
        eight_bit: whether the whitened values are quantized to 8 bits.
    """

    dimension: int
    eight_bit: bool = False

    def arrays(self, train: Iterable[Floats]) -> dict[str, NDArray[np.float32]]:
        """Return the arrays of a whitening that `fit_whitening` fits to features (t_i, d) of the training clips."""
        return fit_whitening(train, self.dimension).arrays()

    def transformation(
        self, arrays: Mapping[str, NDArray[np.float32]]
    ) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
        """Build from fitted `arrays` the function (t, d) -> (t, k) that the extraction job applies."""
        return partial(reduced, Whitening.of_arrays(arrays), eight_bit=self.eight_bit)


def reduced(whitening: Whitening, rows: NDArray[np.float32], *, eight_bit: bool) -> NDArray[np.float32]:
    """Whiten rows (t, d) to (t, k) float32; `eight_bit` adds quantization to 8 bits and dequantization."""
    white = whitening.transform(rows)
    return dequantize(quantize(white, rounding="nearest")) if eight_bit else white


def _gathered(blocks: Iterable[Floats]) -> Iterator[NDArray[np.float64]]:
    """Join small blocks, because the scatter matrix of a block needs a (d, d) sum for any number of rows."""
    waiting: list[Floats] = []
    for block in blocks:
        if len(block):
            waiting.append(block)
        if sum(map(len, waiting)) >= _ROWS:
            yield np.concatenate(waiting).astype(np.float64)
            waiting = []
    if waiting:
        yield np.concatenate(waiting).astype(np.float64)


def youtube8m_whitening(path: str | Path, dimension: int = 1024) -> Whitening:
    """Read the matrices released with YouTube-8M: `mean.npy`, `eigenvals.npy`, `eigenvecs.npy`.

    Args:
        path: the published archive `yt8m_pca.tgz`.
        dimension: number of components.

    Returns:
        The whitening of Inception-V3's 2048 dimensions.

    Raises:
        InputError: the archive cannot be read, or an array is missing or has a wrong shape.
    """
    mean, values, vectors = (_matrix(Path(path), name) for name in ("mean", "eigenvals", "eigenvecs"))
    mean, values = mean.reshape(-1), values.reshape(-1)
    if vectors.ndim != 2 or vectors.shape[1] != len(mean) or min(len(values), len(vectors)) < dimension:
        shapes = f"mean {mean.shape}, eigenvals {values.shape}, eigenvecs {vectors.shape}"
        raise InputError(
            f"{path} has shapes {shapes}, but (d,), (k,), (k, d) with k at least {dimension} are needed; "
            "pass the published archive"
        )
    return Whitening(mean, vectors[:dimension].T.copy(), values[:dimension], YOUTUBE8M_EPSILON)


def vggish_pca(features: Floats, eigenvectors: Floats, means: Floats) -> NDArray[np.float32]:
    """Apply AudioSet's PCA, whose eigenvectors include the whitening: y = P (x - mean).

    Args:
        features: (n, 128) pre-activation embeddings.
        eigenvectors: (128, 128) matrix P.
        means: (128,) or (128, 1) mean of the embeddings.

    Returns:
        (n, 128) float32.
    """
    centered = np.asarray(features, dtype=np.float64) - np.asarray(means, dtype=np.float64).reshape(-1)
    rows = np.einsum("nd,kd->nk", centered, np.asarray(eigenvectors, dtype=np.float64), optimize=True)
    return np.asarray(rows, dtype=np.float32)


def _matrix(path: Path, name: str) -> NDArray[np.float64]:
    """Read one matrix from a tar archive."""
    where, advice = f"{path}: {name}.npy", "pass the published archive"
    with damage_as(f"{where} cannot be read", advice), tarfile.open(path) as archive:
        member = next((m for m in archive if Path(m.name).name == f"{name}.npy" and m.isfile()), None)
        opened = archive.extractfile(member) if member else None
        if member is None or opened is None:
            raise InputError(f"{path} contains no {name}.npy; {advice}")
        return np.asarray(read_npy(opened, member.size, where), dtype=np.float64)
