"""Binary codes of classes, fitted to the codes of clips by discrete coordinate descent (Shen et al., CVPR 2015)."""

import torch
from torch import Tensor
from torch.nn import functional as F


def signs(values: Tensor) -> Tensor:
    """Give the bits of real values as plus and minus one: 1 where x > 0, else -1."""
    return torch.where(values > 0, 1.0, -1.0)


def code_cost(vectors: Tensor, labels: Tensor, codes: Tensor) -> Tensor:
    """Squared error of telling classes by the inner product with their codes.

        sum over i, c of  (h_i . b_c - k S_ic)^2,   S_ic = 1 where clip i is of class c, else -1

    Args:
        vectors: h (n, k).
        labels: (n,) int64 in 0..C-1.
        codes: b (C, k), plus and minus one.

    Returns:
        A scalar.
    """
    wanted = 2.0 * F.one_hot(labels, len(codes)) - 1
    cost: Tensor = (vectors @ codes.T - vectors.shape[1] * wanted).square().sum()
    return cost


def fitted_codes(vectors: Tensor, labels: Tensor, codes: Tensor) -> Tensor:
    """Lower `code_cost` by one round of coordinate descent: bit after bit, the best for all classes given the others.

    Args:
        vectors: h (n, k).
        labels: (n,) int64 in 0..C-1.
        codes: (C, k) plus and minus one to begin with.

    Returns:
        (C, k) codes whose cost is not above that of those given; a bit that makes no difference stays as it was.
    """
    exact, fitted = vectors.double(), codes.double().clone()
    gram = exact.T @ exact  # (k, k)
    wanted = 2.0 * F.one_hot(labels, len(codes)).double() - 1
    target = exact.shape[1] * wanted.T @ exact  # (C, k)
    for bit in range(exact.shape[1]):
        others = fitted @ gram[:, bit] - fitted[:, bit] * gram[bit, bit]
        better = target[:, bit] - others
        fitted[:, bit] = torch.where(better == 0, fitted[:, bit], signs(better).double())
    return fitted.to(codes.dtype)
