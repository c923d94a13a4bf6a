"""Networks of MSNSCA: convolutions at several scales over a vector, and attention among the scales of one item."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CHANNELS = 64
SHORTEST = 8
"""Smallest number of components of a vector that the convolutions and poolings below accept."""


class ScaleNetwork(nn.Module):
    """Tokens of a vector at several scales, one per kernel: (b, d) -> (b, kernels, width).

    A strided convolution over the components of the vector is followed by a branch of two convolutions for each kernel,
    each with max-pooling; the last pooling is over all positions.

    Args:
        kernels: odd sizes of the branches' convolutions.
        width: width of a token.
    """

    def __init__(self, kernels: Sequence[int], width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, CHANNELS, 8, stride=2, padding=4), nn.MaxPool1d(2))
        self.branches = nn.ModuleList(_branch(kernel, width) for kernel in kernels)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the tokens (b, kernels, width) of vectors (b, d)."""
        inner = self.stem(vectors[:, None])
        return torch.stack([branch(inner).squeeze(2) for branch in self.branches], 1)


def _branch(kernel: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(CHANNELS, CHANNELS, kernel, padding=kernel // 2),
        nn.MaxPool1d(2),
        nn.Conv1d(CHANNELS, width, kernel, padding=kernel // 2),
        nn.AdaptiveMaxPool1d(1),
    )


class ItemAttention(nn.Module):
    """Attention of an item's queries over only the item's tokens.

        query + W_o softmax(Q K^T / sqrt(d_h)) V,   K, V of the tokens of the item

    Args:
        width: width of queries and tokens.
        heads: number of attention heads, a divisor of `width`.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, queries: Tensor, tokens: Tensor) -> Tensor:
        """Return the queries (b, q, width) plus the values attended to among the tokens (b, t, width)."""
        parts = (self._split(self.query(queries)), self._split(self.key(tokens)), self._split(self.value(tokens)))
        attended = F.scaled_dot_product_attention(*parts)  # (b, heads, q, width / heads)
        outputs: Tensor = queries + self.output(attended.transpose(1, 2).flatten(2))
        return outputs

    def _split(self, values: Tensor) -> Tensor:
        count, rows, width = values.shape
        return values.view(count, rows, self.heads, width // self.heads).transpose(1, 2)
