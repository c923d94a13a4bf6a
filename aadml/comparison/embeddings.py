"""Embeddings of clips, the outputs of encoders."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from aadml.comparison.arrays import nonfinite_row
from aadml.comparison.features import Direction, Modality, check_items, check_mapping, check_tensor
from aadml.comparison.relevance import Relevance, relevance_of
from aadml.feature_extraction.ground.errors import InputError


@dataclass(frozen=True)
class Embeddings:
    """Embedded clips, ready for retrieval.

    Attributes:
        vectors: modality -> (n, d) tensor; (m, d) if clips share vectors.
        labels: (n,) int64; UNLABELLED for a clip without a class.
        ids: n names.
        similarity: name of the similarity of two vectors (a key of SIMILARITIES in `aadml.retrieval`).
        class_names: C names in the order of the labels; empty if unknown.
        once: modalities with repeated rows, such as the sound of clips with five captions. In these modalities,
            only one row per label is ranked.
        rows: modality with shared vectors -> (n,) int64, row of the vector of each clip.
        all_labels: (n, C) bool, all classes of each clip; None if no clip has several classes.
        relevance: rule of relevance; None selects a rule by the data, as in `Clips`.
        present: modality -> (n,) bool, False for a clip without the modality. Such a clip is neither a query nor a
            result in the modality.
        clusters: id of a clip -> its cluster, such as a speaker or a recording. For confidence intervals of MAP,
            clusters are resampled; None resamples clips.

    Raises:
        InputError: an attribute does not have the type, shape or number of rows above, or a vector is not finite.
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
    clusters: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        count = len(self.ids)
        check_mapping("embeddings: vectors", self.vectors)
        check_mapping("embeddings: rows", self.rows)
        check_items("embeddings", self, len(self.class_names) or "C", self.present)
        for modality, vectors in self.vectors.items():
            if not isinstance(vectors, Tensor):
                raise InputError(f"embeddings: {modality} has type {type(vectors).__name__}; pass a tensor (n, d)")
            rows = self.rows.get(modality)
            if vectors.ndim != 2 or (rows is None and len(vectors) != count):
                number = count if rows is None else "m"
                raise InputError(f"embeddings: {modality} has shape {tuple(vectors.shape)}; pass vectors ({number}, d)")
            if rows is not None:
                _check_rows(modality, rows, count, len(vectors))
            if (row := nonfinite_row(vectors)) is not None:
                raise InputError(
                    f"embeddings: the {modality} vectors contain NaN or infinity, first at row {row}; pass finite "
                    "vectors"
                )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def relevant(self) -> Relevance:
        """Rule of relevance: the rule that was set, or else the rule selected by the data."""
        return self.relevance or relevance_of(self)

    @property
    def clip_names(self) -> Sequence[str]:
        """Clip of each row, by name: its class if modalities are ranked `once` per label, else its id."""
        if not self.once:
            return self.ids
        names = dict(enumerate(self.class_names))
        return [names.get(label, str(label)) for label in self.labels.tolist()]

    def of(self, modality: Modality, index: Tensor) -> Tensor:
        """Return the vectors (b, d) of the clips in rows `index` (b,).

        If all stored rows are selected in order, the stored tensor is returned, not a copy.
        """
        vectors = self.vectors[modality]
        rows = self.rows[modality][index] if modality in self.rows else index
        return vectors if torch.equal(rows, torch.arange(len(vectors))) else vectors[rows]

    def there(self, modality: Modality) -> Tensor:
        """Return the vectors (m, d) of the clips that have a modality."""
        flags = self.present.get(modality)
        return self.matrix(modality) if flags is None else self.matrix(modality)[flags]

    def matrix(self, modality: Modality) -> Tensor:
        """Return the vectors (n, d) of a modality, one vector per clip; shared vectors are repeated."""
        return self.of(modality, torch.arange(len(self)))

    def directions(self) -> Sequence[Direction]:
        """Return all ordered pairs (modality of the queries, modality of the gallery) of different modalities."""
        return [(q, g) for q in self.vectors for g in self.vectors if q != g]


def _check_rows(modality: Modality, rows: Tensor, count: int, vectors: int) -> None:
    check_tensor(f"embeddings: the rows of {modality} have", rows, torch.int64, (count,), "one row per id")
    if count and not 0 <= int(rows.min()) <= int(rows.max()) < vectors:
        raise InputError(
            f"embeddings: the rows of {modality} range from {int(rows.min())} to {int(rows.max())}, but there are "
            f"{vectors} vectors; pass rows in 0..{vectors - 1}"
        )


def checksum_of(vectors: Mapping[Modality, Tensor]) -> str:
    """Return one SHA-256 checksum, as hex digits, of the names and the float32 vectors (n, d) of all modalities.

    Vectors that are computed on another machine, or with another number of threads, may be rounded differently. The
    checksum then differs.
    """
    checksum = hashlib.sha256()
    for modality in sorted(vectors):
        checksum.update(modality.encode() + vectors[modality].float().contiguous().numpy().tobytes())
    return checksum.hexdigest()
