"""Second sort key for rankings by posteriors: the inner products of confident posteriors are often equal."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_SMALLEST = 2.0**-149  # smallest positive float32


def are_posteriors(vectors: Tensor) -> bool:
    """Return whether all vectors (n, d) are nonnegative and sum to one, up to 1e-4."""
    return bool((vectors >= 0).all() and ((vectors.double().sum(1) - 1).abs() < 1e-4).all())


def second_keys(queries: Tensor, gallery: Tensor, similarity: str) -> NDArray[np.float64] | None:
    """Compute the second key of items whose scores tie: the cosine of centered log-posteriors, averaged over queries.

    Centered log-posteriors are the centered logits of the model, up to the temperature.

    Args:
        queries: (q, d).
        gallery: (n, d).
        similarity: similarity of the vectors, by name.

    Returns:
        (n,) from -1 to 1, higher is better. None unless the vectors are posteriors compared by inner product.
    """
    if similarity != "dot" or not (are_posteriors(queries) and are_posteriors(gallery)):
        return None
    return np.asarray((_directions(gallery) @ _directions(queries).T).mean(1).numpy())


def _directions(posteriors: Tensor) -> Tensor:
    """Return centered log-posteriors (n, d) float64 of unit length; zero for a uniform posterior."""
    logs = posteriors.double().clamp(min=_SMALLEST).log()
    return torch.nn.functional.normalize(logs - logs.mean(1, keepdim=True), dim=1)
