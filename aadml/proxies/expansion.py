"""Embedding expansion (Ko and Gu, Embedding expansion: augmentation in embedding space, CVPR 2020)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor

from aadml.comparison import Comparison
from aadml.comparison.features import Modality
from aadml.comparison.interpolation import interpolated
from aadml.proxies.unchanged import Unchanged


class Expansion(Unchanged):
    """Let anchors meet, beside the candidates of the batch, negatives made up between two of one class.

        made-up negatives:  i/(n + 1) y_j + (1 - i/(n + 1)) y_l,   i = 1 ... n,  y_l another candidate of the class of j

    It fills a class without a bank: the control of proxies that mix a clip with others of its class. The paper takes
    all pairs of a class, and makes up anchors too; here each candidate has one partner, drawn for each batch, and
    anchors are those of the batch. Gradients flow into both ends. Take a selection of the hardest negatives with it, as
    the paper does (`ee-hard-triplet`).

    Args:
        dimension: d of the embeddings.
        modalities: that will be seen.
        points: n, how many between two candidates (2: the paper).
    """

    prefix = "ee-"

    def __init__(
        self, dimension: int, modalities: tuple[Modality, ...], *, points: Annotated[int, Interval(ge=1, le=64)] = 2
    ) -> None:
        super().__init__(dimension, modalities)
        self.shares = tuple(i / (points + 1) for i in range(1, points + 1))

    def extend(
        self,
        comparison: Comparison,
        rows: Sequence[Modality],
        columns: Sequence[Modality],
        index: Tensor,
        *,
        by_id: bool,
        generator: torch.Generator,
    ) -> Comparison:
        """Append made-up negatives to the candidates; `generator` draws the partners.

        Returns:
            The comparison with c (1 + n) candidates, those of the batch first.

        Raises:
            InputError: a comparison of relevance scores, or without classes.
        """
        expanded = interpolated(comparison, generator, shares=self.shares, lines=("same-class",))
        made_up = torch.arange(len(expanded.candidates), device=expanded.candidates.device) >= len(
            comparison.candidates
        )
        return replace(expanded, positives=expanded.positives & ~made_up)
