"""Embedding expansion (Ko and Gu, Embedding expansion: augmentation in embedding space, CVPR 2020)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.comparison.interpolation import interpolated
from aadml.comparison.types import Modality


class Expansion(nn.Module):
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
    aa_on = "all"
    aa_mix = 1.0

    def __init__(
        self, dimension: int, modalities: tuple[Modality, ...], *, points: Annotated[int, Interval(ge=1, le=64)] = 2
    ) -> None:
        super().__init__()
        self.dimension, self.modalities = dimension, tuple(modalities)
        self.shares = tuple(i / (points + 1) for i in range(1, points + 1))

    def refresh(
        self,
        bank: Mapping[Modality, Tensor],
        labels: Tensor | None = None,
        inputs: Mapping[Modality, Tensor] | None = None,
        generator: torch.Generator | None = None,
        *,
        groups: Tensor | None = None,
    ) -> None:
        """Need nothing."""

    def remember(self, bank: Mapping[Modality, Tensor]) -> None:
        """Need nothing."""

    def forward(
        self,
        embeddings: Mapping[Modality, Tensor],
        index: Tensor,
        encode: Callable[[Modality, Tensor], Tensor] | None = None,
    ) -> dict[Modality, Tensor]:
        """Return modality -> (b, d) as given."""
        return dict(embeddings)

    def from_bank(self, vectors: Tensor, modality: Modality, *, k: int | None = None) -> Tensor:
        """Return the vectors (m, d) as given."""
        return vectors

    def extend(self, comparison: Comparison, generator: torch.Generator) -> Comparison:
        """Append made-up negatives to the candidates.

        Args:
            comparison: a anchors against c candidates, whose classes it carries.
            generator: draws the partners.

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
