"""What proxies share that leave embeddings as they are and may give the anchors further candidates."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.comparison.features import Modality


class Unchanged(nn.Module):
    """Every clip stands for itself; `extend` says whom anchors meet beside the batch.

    Args:
        dimension: d of the embeddings.
        modalities: that will be seen.
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
        """Take over the training set; called before each epoch. Here nothing is taken over.

        Args:
            bank: modality -> (n, d) embeddings of the training set, made in evaluation mode.
            labels: (n,) classes, as the batches' groups will be; None where there are none (audio-text).
            inputs: modality -> (n, f) features, for graphs in input space.
            generator: of what is drawn.
            groups: (n,) codes; entries of one code are of one clip (its captions). By default every row is its own.
        """

    def remember(self, bank: Mapping[Modality, Tensor]) -> None:
        """Need nothing: new items stand for themselves."""

    def forward(
        self,
        embeddings: Mapping[Modality, Tensor],
        index: Tensor,
        encode: Callable[[Modality, Tensor], Tensor] | None = None,
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of a batch; here the embeddings as they are.

        Args:
            embeddings: modality -> (b, d); row i of all modalities is one clip.
            index: (b,) rows of the batch in the training set.
            encode: (modality, rows (m,) of the training set) -> (m, d), for live neighbors; called once a row.

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
        """Append further candidates to those of a batch; here none.

        Args:
            comparison: of a batch of b clips: anchors (a, d), b of each modality in `rows`, candidates (c, d) likewise.
            rows: modalities of the anchors.
            columns: modalities of the candidates.
            index: (b,) rows of the batch in the training set.
            by_id: whether an anchor's partner is its only positive.
            generator: of what is drawn.

        Returns:
            The comparison with the same anchors, candidates of the batch first.
        """
        return comparison

    def store(self, embeddings: Mapping[Modality, Tensor], groups: Tensor, index: Tensor) -> None:
        """Take note of a batch that was trained on; here nothing.

        Args:
            embeddings: modality -> (b, d).
            groups: (b,) classes, or codes of clips.
            index: (b,) rows of the batch in the training set.
        """
