"""Inner products that two comparisons in opposite directions share, so that they are computed once."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from aadml.comparison.comparison import Comparison

WIDE = 128
"""Number of dimensions from which a product takes longer than a copy of its transpose and a sum of two gradients."""
MOST = 1 << 20
"""Largest number of pairs whose products are stored; more pairs are computed in blocks of rows."""


@dataclass(frozen=True)
class SharedProducts:
    """Matrices of a comparison and of the opposite comparison.

    Attributes:
        matrices: matrices that either comparison computed.
        opposite: whether the comparison is the second of the two.
    """

    matrices: dict[tuple[Hashable, bool], Tensor]
    opposite: bool

    def of(self, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """Return the transpose of the opposite comparison's matrix (a, c), or compute the matrix."""
        other = self.matrices.get((key, not self.opposite))
        if other is not None:
            return other.T.contiguous()
        self.matrices[key, self.opposite] = matrix = compute()
        return matrix


def share_products(comparisons: "Sequence[Comparison]") -> None:
    """Connect comparisons in opposite directions of the same wide vectors, unless they have too many pairs."""
    for first, second in combinations(comparisons, 2):
        same = first.anchors is second.candidates and first.candidates is second.anchors
        if same and first.anchors.shape[1] >= WIDE and len(first.anchors) * len(second.anchors) <= MOST:
            matrices: dict[tuple[Hashable, bool], Tensor] = {}
            for comparison, opposite in ((first, False), (second, True)):
                object.__setattr__(comparison, "shared", SharedProducts(matrices, opposite))
