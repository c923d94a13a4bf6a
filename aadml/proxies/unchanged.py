"""Base class of proxies: every clip represents itself."""

from collections.abc import Mapping

from torch import Tensor, nn

from aadml.comparison.features import Modality
from aadml.proxies.contract import Encode, TrainingSet


class Unchanged(nn.Module):
    """Proxy that leaves every embedding unchanged; see `Proxy` for the methods.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
    """

    aa_on: str = "all"
    aa_mix: float = 1.0

    def __init__(self, dimension: int, modalities: tuple[Modality, ...]) -> None:
        super().__init__()
        self.dimension, self.modalities = dimension, tuple(modalities)

    def check_size(self, count: int, labels: Tensor | None) -> None:
        """Accept any number of clips."""

    def refresh(self, train: TrainingSet) -> None:
        """Do nothing."""

    def remember(self, bank: Mapping[Modality, Tensor]) -> None:
        """Do nothing: new items represent themselves."""

    def forward(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None
    ) -> dict[Modality, Tensor]:
        """Return the embeddings (b, d) of each modality unchanged."""
        return dict(embeddings)

    def from_bank(self, vectors: Tensor, modality: Modality, *, k: int | None = None) -> Tensor:
        """Return the vectors (m, d) unchanged."""
        return vectors
