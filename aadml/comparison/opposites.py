"""Results that two comparisons in opposite directions share, so that they are computed once."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from aadml.comparison.comparison import Comparison

T = TypeVar("T")
MOST = 1 << 20
"""Largest number of pairs whose products are stored; more pairs are computed in blocks of rows."""


@dataclass(frozen=True)
class SharedResults:
    """Results for a comparison and for the opposite comparison.

    Attributes:
        results: results by key, and by whether the result belongs to the second of the two comparisons.
        opposite: whether the comparison is the second of the two.
    """

    results: dict[tuple[Hashable, bool], Any]
    opposite: bool

    def of(self, key: Hashable, compute: Callable[[], tuple[T, T]]) -> T:
        """Return the result of this comparison.

        Args:
            key: name of the result.
            compute: function that computes the results of this comparison and of the opposite comparison. The
                function is called only if neither comparison has requested the result before.
        """
        if (key, self.opposite) not in self.results:
            self.results[key, self.opposite], self.results[key, not self.opposite] = compute()
        result: T = self.results[key, self.opposite]
        return result


def share_results(comparisons: "Sequence[Comparison]") -> None:
    """Connect comparisons in opposite directions of the same vectors, unless the comparisons have too many pairs."""
    for first, second in combinations(comparisons, 2):
        same = first.anchors is second.candidates and first.candidates is second.anchors
        if same and len(first.anchors) * len(second.anchors) <= MOST:
            results: dict[tuple[Hashable, bool], Any] = {}
            for comparison, opposite in ((first, False), (second, True)):
                object.__setattr__(comparison, "shared", SharedResults(results, opposite))
