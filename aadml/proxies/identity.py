"""The identity proxy: every clip stands for itself."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from aadml.comparison.types import Modality


class Identity(nn.Module):
    """Return embeddings as they are, behind the interface all proxies have.

    Args:
        dimension: d of the embeddings.
        modalities: that will be seen.
    """

    prefix = ""
    aa_on = "all"
    aa_mix = 1.0

    def __init__(self, dimension: int, modalities: tuple[Modality, ...]) -> None:
        super().__init__()
        self.dimension = dimension
        self.modalities = tuple(modalities)

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
