"""Embedding expansion (Ko and Gu, CVPR 2020).

Reference: Ko and Gu, Embedding expansion: augmentation in embedding space for deep metric learning, CVPR 2020, https://arxiv.org/abs/2003.02546
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from annotated_types import Interval
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.features import Modality
from aadml.comparison.interpolation import interpolated
from aadml.proxies.contract import Direction
from aadml.proxies.unchanged import Unchanged


class Expansion(Unchanged):
    """Proxy that adds negatives, interpolated between two candidates of the same class.

        interpolated negatives:  i/(n + 1) y_j + (1 - i/(n + 1)) y_l,   i = 1 ... n,  y_l another candidate of j's class

    Expansion is the control, without a bank, for proxies that mix a clip with other clips of its class. The paper
    interpolates all pairs of a class, anchors included. Here, one y_l is drawn per candidate and point, and anchors
    are not interpolated. If candidate j is alone in its class, its points equal y_j. Gradients flow into y_j and
    y_l. The paper combines expansion with the hardest negatives (`ee-hard-triplet`).

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
        points: n, the number of points between two candidates; Ko and Gu use 2.
    """

    prefix = "ee-"

    def __init__(
        self, dimension: int, modalities: tuple[Modality, ...], *, points: Annotated[int, Interval(ge=1, le=64)] = 2
    ) -> None:
        super().__init__(dimension, modalities)
        self.shares = tuple(i / (points + 1) for i in range(1, points + 1))

    def extend(self, comparison: Comparison, direction: Direction) -> Comparison:
        """Append interpolated negatives to the c candidates of the comparison.

        The generator of `direction` draws the second candidate of each interpolated pair.

        Returns:
            The comparison with c (1 + n) candidates for n points; the candidates of the batch come first.

        Raises:
            InputError: the comparison has relevance scores, or no classes.
        """
        expanded = interpolated(comparison, direction.generator, shares=self.shares, lines=("same-class",))
        positives = expanded.positives.clone()
        positives[:, len(comparison.candidates) :] = False
        return replace(expanded, positives=positives)

    def store(self, embeddings: Mapping[Modality, Tensor], groups: Tensor, index: Tensor) -> None:
        """Do nothing."""
