"""Embeddings of clips, after the encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from aadml.comparison.arrays import all_finite
from aadml.comparison.features import Direction, Modality, check_present
from aadml.comparison.relevance import Relevance, relevance_of
from aadml.feature_extraction.ground.errors import InputError


@dataclass(frozen=True)
class Embeddings:
    """Embedded clips, ready for retrieval.

    Attributes:
        vectors: modality -> (n, d) tensor; (m, d) where clips share their vectors.
        labels: (n,) int64; UNLABELLED where there is no class.
        ids: n names.
        similarity: the name under which two vectors are compared (a key of `aadml.retrieval`'s SIMILARITIES).
        class_names: C names in the order of the labels; empty where unknown.
        once: modalities whose rows repeat: one row a label is ranked (sound with five captions a clip).
        rows: modality whose vectors are shared -> (n,) which of them is each clip's.
        all_labels: (n, C) bool, all classes of each clip; None where none has several.
        relevance: what makes relevant; None decides it by the data, as `Clips` do.
        present: modality -> (n,) bool, whether a clip has it; who lacks it neither asks nor is ranked in it.
    """

    vectors: Mapping[Modality, Tensor]
    labels: Tensor
    ids: tuple[str, ...]
    similarity: str = "cosine"
    class_names: tuple[str, ...] = ()
    once: tuple[Modality, ...] = ()
    rows: Mapping[Modality, Tensor] = field(default_factory=dict)
    all_labels: Tensor | None = None
    relevance: Relevance | None = None
    present: Mapping[Modality, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.ids)
        for modality, there in self.present.items():
            check_present(modality, there, count)
        if self.labels.shape != (count,):
            raise InputError(f"embeddings: {count} ids but labels of shape {tuple(self.labels.shape)}")
        for modality, vectors in self.vectors.items():
            rows = self.rows.get(modality)
            shared = rows is not None and rows.shape == (count,) and bool((rows < len(vectors)).all())
            if vectors.ndim != 2 or (len(vectors) != count if rows is None else not shared):
                raise InputError(f"embeddings: {modality} must be ({count}, d), not {tuple(vectors.shape)}")
            if not all_finite(vectors):
                raise InputError(f"embeddings: the {modality} vectors hold NaN or infinity")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def relevant(self) -> Relevance:
        """Give what makes relevant: the rule that was set, or what the data decide."""
        return self.relevance or relevance_of(self)

    def of(self, modality: Modality, index: Tensor) -> Tensor:
        """Give the vectors of the clips `index` (b,) in a modality: (b, d); all of them, in order, are not copied."""
        vectors = self.vectors[modality]
        own = self.rows[modality][index] if modality in self.rows else index
        return vectors if torch.equal(own, torch.arange(len(vectors))) else vectors[own]

    def there(self, modality: Modality) -> Tensor:
        """Give the vectors (m, d) of the clips that have a modality."""
        own = self.present.get(modality)
        return self.matrix(modality) if own is None else self.matrix(modality)[own]

    def matrix(self, modality: Modality) -> Tensor:
        """Give a vector for each clip: (n, d), with those that clips share repeated."""
        return self.of(modality, torch.arange(len(self)))

    def directions(self) -> Sequence[Direction]:
        """List the ordered pairs of modalities present: who can query whom."""
        return [(q, g) for q in self.vectors for g in self.vectors if q != g]
