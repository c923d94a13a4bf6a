"""Base class of proxies that leave embeddings unchanged and may append candidates."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.comparison.features import Modality


class Unchanged(nn.Module):
    """Proxy that leaves every embedding unchanged; `extend` may append candidates.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
    """

    prefix = ""
    aa_on = "all"
    aa_mix = 1.0

    def __init__(self, dimension: int, modalities: tuple[Modality, ...]) -> None:
        super().__init__()
        self.dimension, self.modalities = dimension, tuple(modalities)

    def refresh(
        self,
        bank: Mapping[Modality, Tensor],
        labels: Tensor | None = None,
        inputs: Mapping[Modality, Tensor] | None = None,
        generator: torch.Generator | None = None,
        *,
        groups: Tensor | None = None,
    ) -> None:
        """Read the training set, before each epoch; does nothing here.

        Args:
            bank: modality -> (n, d) embeddings of the training set in evaluation mode.
            labels: (n,) classes, equal to the groups of batches; None without classes (audio-text).
            inputs: modality -> (n, f) features, for graphs in input space.
            generator: generator of random draws.
            groups: (n,) codes of clips; captions of one clip have the same code. By default every row has its own.
        """

    def remember(self, bank: Mapping[Modality, Tensor]) -> None:
        """Do nothing: new items represent themselves."""

    def forward(
        self,
        embeddings: Mapping[Modality, Tensor],
        index: Tensor,
        encode: Callable[[Modality, Tensor], Tensor] | None = None,
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of a batch; here the embeddings.

        Args:
            embeddings: modality -> (b, d); row i of all modalities is one clip.
            index: (b,) rows of the batch in the training set.
            encode: (modality, rows (m,) of the training set) -> (m, d), for live neighbors; called once for each row.

        Returns:
            modality -> (b, d).
        """
        return dict(embeddings)

    def from_bank(self, vectors: Tensor, modality: Modality, *, k: int | None = None) -> Tensor:
        """Return the vectors (m, d) as given."""
        return vectors

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
        """Append candidates to those of a batch; here none.

        Args:
            comparison: comparison of b clips: anchors (a, d), b of each modality in `rows`, and candidates (c, d).
            rows: modalities of the anchors.
            columns: modalities of the candidates.
            index: (b,) rows of the batch in the training set.
            by_id: whether an anchor's partner is its only positive.
            generator: generator of random draws.

        Returns:
            The comparison with the same anchors, candidates of the batch first.
        """
        return comparison

    def store(self, embeddings: Mapping[Modality, Tensor], groups: Tensor, index: Tensor) -> None:
        """Store a batch after its training step; does nothing here.

        Args:
            embeddings: modality -> (b, d).
            groups: (b,) classes, or codes of clips.
            index: (b,) rows of the batch in the training set.
        """
