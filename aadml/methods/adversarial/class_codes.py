"""Binary codes of classes, fitted to the codes of clips by discrete coordinate descent (Shen et al., CVPR 2015).

Reference: Shen et al., Supervised discrete hashing, CVPR 2015, https://openaccess.thecvf.com/content_cvpr_2015/html/Shen_Supervised_Discrete_Hashing_2015_CVPR_paper.html
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def signs(values: Tensor) -> Tensor:
    """Return the bits of real values of any shape as plus and minus one: 1 where x > 0, else -1."""
    return torch.where(values > 0, 1.0, -1.0)


def code_loss(vectors: Tensor, labels: Tensor, codes: Tensor) -> Tensor:
    """Compute the squared error of class scores, which are inner products of vectors and class codes.

        sum over i, c of  (h_i . b_c - k S_ic)^2,   S_ic = 1 where clip i is of class c, else -1

    Args:
        vectors: h (n, k).
        labels: (n,) int64 in 0..C-1.
        codes: b (C, k), plus and minus one.

    Returns:
        A scalar.
    """
    similar = 2.0 * F.one_hot(labels, len(codes)) - 1
    loss: Tensor = (vectors @ codes.T - vectors.shape[1] * similar).square().sum()
    return loss


def fitted_codes(vectors: Tensor, labels: Tensor, codes: Tensor) -> Tensor:
    """Fit class codes by one round of coordinate descent on `code_loss`: each bit in turn, with all other bits fixed.

    Args:
        vectors: h (n, k).
        labels: (n,) int64 in 0..C-1.
        codes: (C, k) initial codes, plus and minus one.

    Returns:
        (C, k) codes with a loss not above that of `codes`. A bit without effect on the loss stays unchanged.
    """
    exact, fitted = vectors.double(), codes.double().clone()
    gram = exact.T @ exact  # (k, k)
    similar = 2.0 * F.one_hot(labels, len(codes)).double() - 1
    target = exact.shape[1] * similar.T @ exact  # (C, k)
    for bit in range(exact.shape[1]):
        others = fitted @ gram[:, bit] - fitted[:, bit] * gram[bit, bit]
        better = target[:, bit] - others
        fitted[:, bit] = torch.where(better == 0, fitted[:, bit], signs(better).double())
    return fitted.to(codes.dtype)
