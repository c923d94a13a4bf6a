"""Average query expansion (Chum et al., ICCV 2007; weighted by similarity: Radenovic et al., TPAMI 2019).

Reference: Chum et al., Total recall: automatic query expansion with a generative feature model for object retrieval,
ICCV 2007, https://doi.org/10.1109/ICCV.2007.4408891
Reference: Radenovic et al., Fine-tuning CNN image retrieval with no human annotation, TPAMI 2019, https://doi.org/10.1109/TPAMI.2018.2846566
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.pairwise import TINY
from aadml.feature_extraction.ground.errors import InputError
from aadml.proxies.graph import neighbors


@torch.no_grad()
def expand(vectors: Tensor, bank: Tensor, *, k: int, alpha: float = 0.0) -> Tensor:
    """Return each vector, normalized, plus the weighted sum of its k nearest bank rows, each normalized.

        x' = x / |x|  +  sum over the k most cosine-similar rows b of  cos(x, b)^alpha  b / |b|

    Query expansion is the control for a proxy with a bank. The bank is of the training set; labels, partners and other
    items are not used. Queries and gallery may both be expanded.

    Args:
        vectors: (m, d).
        bank: (n, d).
        k: number of rows; 0 adds none, more than n adds all.
        alpha: exponent of the weights; with 0, all weights are 1. Negative cosines count as 0.

    Returns:
        (m, d), of the dtype of `vectors`.

    Raises:
        InputError: a negative k or alpha, shapes that do not match, or a vector that is not finite.
    """
    if k < 0 or alpha < 0:
        raise InputError(f"query expansion: k is {k} and alpha is {alpha}; pass values of at least 0")
    unit = F.normalize(vectors, dim=1, eps=TINY)
    if not k:
        return unit
    lists = neighbors(bank, vectors, k=min(k, len(bank)))
    weights = lists.similarity.clamp_min(0).pow(alpha).to(unit.dtype) * lists.mask
    near = F.normalize(bank, dim=1, eps=TINY)[lists.index.clamp_min(0)].to(unit.dtype)
    return unit + (weights[:, :, None] * near).sum(1)
