"""Networks of MSNSCA: convolutions at several scales over a vector, and attention among the scales of one item."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CHANNELS = 64
KERNELS = (3, 5, 7)
"""Odd sizes of the convolutions, one per scale (SMSA-VA-CMR's code)."""
SHORTEST = 8
"""Smallest number of components of a vector that the convolutions and poolings below accept."""


class ScaleNetwork(nn.Module):
    """Network that computes tokens of vectors, one token for each kernel size: from (b, d) to (b, 3, width).

    A strided convolution over the components of a vector is followed by one branch for each kernel size. A branch
    consists of two convolutions. Max-pooling follows every convolution, and the last pooling of a branch is over
    all positions.

    Args:
        width: width of a token.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(1, CHANNELS, 8, stride=2, padding=4), nn.MaxPool1d(2))
        self.branches = nn.ModuleList(_branch(kernel, width) for kernel in KERNELS)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the tokens (b, 3, width) of vectors (b, d)."""
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

        q + W_o softmax(Q K^T / sqrt(width)) V

    Q is a linear map of the queries q. K and V are linear maps of the tokens of the item.

    Args:
        width: width of queries and tokens.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, queries: Tensor, tokens: Tensor) -> Tensor:
        """Return the queries (b, q, width) plus the output of attention over the tokens (b, t, width)."""
        parts = (part[:, None] for part in (self.query(queries), self.key(tokens), self.value(tokens)))  # one head
        outputs: Tensor = queries + self.output(F.scaled_dot_product_attention(*parts)[:, 0])
        return outputs
