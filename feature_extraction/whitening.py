"""PCA with whitening, and 8-bit quantization: what YouTube-8M and AudioSet did to the features they released.

Sources: Abu-El-Haija et al., YouTube-8M (2016) and its `feature_extractor`; tensorflow/models, `vggish_postprocess`.
"""

import io
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from feature_extraction.ground.archives import DAMAGED
from feature_extraction.ground.errors import InputError

Floats = NDArray[np.floating[Any]]

LOWEST, HIGHEST = -2.0, 2.0  # the range that 8 bits stand for
YOUTUBE8M_EPSILON = 1e-4


@dataclass(frozen=True)
class Whitening:
    """A linear map to uncorrelated components of unit variance.

    Attributes:
        mean: (d,) of the fitted rows.
        components: (d, k) orthonormal directions, the one of most variance first.
        variance: (k,) variance of the fitted rows along each.
        epsilon: added to the variance, so that directions without any are not blown up.
    """

    mean: NDArray[np.float64]
    components: NDArray[np.float64]
    variance: NDArray[np.float64]
    epsilon: float = YOUTUBE8M_EPSILON

    def transform(self, features: Floats) -> NDArray[np.float32]:
        """Whiten rows: ((x - mean) components) / sqrt(variance + epsilon), each row by itself.

        Args:
            features: (n, d).

        Returns:
            (n, k) float32.
        """
        scaled = self.components / np.sqrt(self.variance + self.epsilon)
        centered = np.asarray(features, dtype=np.float64) - self.mean
        return np.asarray(np.einsum("nd,dk->nk", centered, scaled, optimize=True), dtype=np.float32)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return what has to be kept to repeat `transform`: `mean`, `components`, `variance`, `epsilon`."""
        return {
            "mean": self.mean.astype(np.float32),
            "components": self.components.astype(np.float32),
            "variance": self.variance.astype(np.float32),
            "epsilon": np.array([self.epsilon], dtype=np.float32),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Floats]) -> "Whitening":
        """Rebuild a whitening from its `arrays`."""
        mean, components, variance = (
            np.asarray(arrays[name], dtype=np.float64) for name in ("mean", "components", "variance")
        )
        return cls(mean, components, variance, float(np.asarray(arrays["epsilon"]).ravel()[0]))


def fit_whitening(blocks: Iterable[Floats], dimension: int, *, epsilon: float = YOUTUBE8M_EPSILON) -> Whitening:
    """Fit a PCA with whitening to rows that come in blocks; only a (d, d) matrix is ever held.

    The caller hands in training rows alone: whatever is fitted to a test row leaks it.

    Args:
        blocks: (n_i, d) arrays; read once.
        dimension: k, how many components are kept.
        epsilon: see `Whitening`.

    Returns:
        The whitening; each component's largest entry is positive, so the same rows give the same signs.

    Raises:
        InputError: there are fewer rows than components, or a row is not finite.
    """
    count, mean, scatter = 0, None, None
    for block in blocks:
        rows = np.asarray(block, dtype=np.float64)
        if not len(rows):
            continue
        if not np.isfinite(rows).all():
            raise InputError("PCA: a training row is not finite; nothing was fitted")
        if mean is None or scatter is None:
            mean, scatter = np.zeros(rows.shape[1]), np.zeros((rows.shape[1], rows.shape[1]))
        block_mean = rows.mean(axis=0)
        centered, shift = rows - block_mean, block_mean - mean
        scatter += centered.T @ centered + np.outer(shift, shift) * (count * len(rows) / (count + len(rows)))
        mean = mean + shift * (len(rows) / (count + len(rows)))
        count += len(rows)
    if mean is None or scatter is None or count < max(2, dimension):
        wanted = f"at least {max(2, dimension):,} training frames"
        raise InputError(
            f"PCA to {dimension} dimensions: given {count:,} training frames, needs {wanted}; "
            "give more training clips, or keep the 2048 dimensions (reduction none)"
        )
    if dimension > len(mean):
        raise InputError(f"PCA to {dimension} dimensions: the features have only {len(mean)}")
    values, vectors = np.linalg.eigh(scatter / (count - 1))
    components = vectors[:, ::-1][:, :dimension]
    components = components * np.sign(components[np.abs(components).argmax(axis=0), np.arange(dimension)])
    return Whitening(mean, components, np.maximum(values[::-1][:dimension], 0.0), epsilon)


def youtube8m_whitening(path: str | Path, dimension: int = 1024) -> Whitening:
    """Read the matrices YouTube-8M released: `mean.npy`, `eigenvals.npy`, `eigenvecs.npy`.

    Args:
        path: their folder, or the published `yt8m_pca.tgz` as it is.
        dimension: how many components are kept.

    Returns:
        The whitening of Inception-V3's 2048 dimensions.

    Raises:
        InputError: a file is missing or of another shape.
    """
    mean, values, vectors = (_matrix(Path(path), name) for name in ("mean", "eigenvals", "eigenvecs"))
    mean, values = mean.reshape(-1), values.reshape(-1)
    if vectors.ndim != 2 or vectors.shape[1] != len(mean) or min(len(values), len(vectors)) < dimension:
        shapes = f"mean {mean.shape}, eigenvals {values.shape}, eigenvecs {vectors.shape}"
        raise InputError(f"{path}: {shapes} are not (d,), (k,), (k, d) with k at least {dimension}")
    return Whitening(mean, vectors[:dimension].T.copy(), values[:dimension], YOUTUBE8M_EPSILON)


def vggish_pca(features: Floats, eigenvectors: Floats, means: Floats) -> NDArray[np.float32]:
    """Apply AudioSet's PCA (its eigenvectors are already scaled to whiten): y = P (x - mean).

    Args:
        features: (n, 128) pre-activation embeddings.
        eigenvectors: (128, 128), P.
        means: (128,) or (128, 1).

    Returns:
        (n, 128) float32.
    """
    centered = np.asarray(features, dtype=np.float64) - np.asarray(means, dtype=np.float64).reshape(-1)
    rows = np.einsum("nd,kd->nk", centered, np.asarray(eigenvectors, dtype=np.float64), optimize=True)
    return np.asarray(rows, dtype=np.float32)


def quantize(features: Floats, *, rounding: Literal["nearest", "floor"]) -> NDArray[np.uint8]:
    """Clip to [-2, 2] and keep 8 bits: (x + 2) * 255 / 4, to the nearest (YouTube-8M) or downwards (VGGish)."""
    scaled = (np.clip(features, LOWEST, HIGHEST) - LOWEST) * (255.0 / (HIGHEST - LOWEST))
    return np.asarray(np.rint(scaled) if rounding == "nearest" else np.floor(scaled), dtype=np.uint8)


def dequantize(quantized: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Undo `quantize` as YouTube-8M's readers do: q * 4 / 255 + 4 / 512 - 2."""
    width = HIGHEST - LOWEST
    return (quantized.astype(np.float64) * (width / 255.0) + width / 512.0 + LOWEST).astype(np.float32)


def _matrix(path: Path, name: str) -> NDArray[np.float64]:
    """Read one of the matrices of a folder or of a tar archive; nothing else in it is touched."""
    try:
        if path.is_dir():
            content = (path / f"{name}.npy").read_bytes()
        else:
            with tarfile.open(path) as archive:
                member = next((m for m in archive if Path(m.name).name == f"{name}.npy" and m.isfile()), None)
                opened = archive.extractfile(member) if member else None
                if opened is None:
                    raise InputError(f"{path}: holds no {name}.npy")
                content = opened.read()
        return np.asarray(np.load(io.BytesIO(content), allow_pickle=False), dtype=np.float64)
    except (*DAMAGED, tarfile.TarError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: {name}.npy cannot be read ({' '.join(str(error).split())})") from error
