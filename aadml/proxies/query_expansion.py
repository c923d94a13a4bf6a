"""Average query expansion (Chum et al., ICCV 2007; weighted by similarity: Radenovic et al., TPAMI 2019)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.pairwise import TINY
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.graph import neighbors


@torch.no_grad()
def expand(vectors: Tensor, bank: Tensor, *, k: int, alpha: float = 0.0) -> Tensor:
    """Add to every unit vector the unit vectors of its k nearest bank rows: the honest control of a proxy with a bank.

        x' = x / |x|  +  sum over the k most cosine-similar rows b of  cos(x, b)^alpha  b / |b|

    The bank is of the training set; no label, no partner and no other item is looked at. Queries and gallery may both
    be expanded.

    Args:
        vectors: (m, d).
        bank: (n, d).
        k: how many rows; 0 leaves the unit vectors as they are, more than n takes all.
        alpha: how much less the farther rows count; 0 is the plain average. Negative cosines count as 0.

    Returns:
        (m, d), in the type of `vectors`.

    Raises:
        InputError: negative k or alpha, or shapes that do not fit.
    """
    if k < 0 or alpha < 0:
        raise InputError(f"query expansion: k {k} and alpha {alpha} must not be negative")
    own = F.normalize(vectors, dim=1, eps=TINY)
    if not k:
        return own
    lists = neighbors(bank, vectors, k=min(k, len(bank)))
    weights = lists.similarity.clamp_min(0).pow(alpha).to(own.dtype) * lists.mask
    near = F.normalize(bank, dim=1, eps=TINY)[lists.index.clamp_min(0)].to(own.dtype)
    return own + (weights[:, :, None] * near).sum(1)
