"""Input of an objective: a batch after the encoders, and the comparison of each direction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.comparison.features import Modality
from aadml.comparison.masks import MaskCodes
from aadml.feature_extraction.ground.errors import InputError
from aadml.objective.neighbor_positives import Positives

Side = str
"""A modality, or BOTH: all modalities together."""

BOTH = "both"
Relation = Literal["label", "id"]


@dataclass(frozen=True)
class Embedded:
    """A batch of b clips after the encoders.

    Attributes:
        vectors: modality -> (b, d).
        groups: (b,) codes. Items with the same code are positives for the relation "label", and are not negatives
            for the relation "id".
        index: (b,) rows of the training set, used by proxies to find neighbors.
        relation: "label" (all items of a group are positives) or "id" (only a clip's own partner is positive).
        features: modality -> (b, f) penultimate features, for losses that generate negatives (DAML, HDML).
        heads: modality -> last layer, which maps features (m, f) to vectors (m, d), for the losses that use
            `features`.
        relevance: function of the anchors' modality and the candidates' modality. The returned scores (b, b)
            replace scores of vectors.
        guides: name -> (b, b) detached scores that selections may use.
        neighbors: modality of the anchors -> additional positives of each clip among the candidates.
        present: modality -> (b,) bool, whether a clip has the modality. Clips without the modality are not compared
            in the modality. All clips have a modality that `present` lacks.
        bank: candidates that replace the clips of the batch. Rows `index` of the bank are the clips of the batch.
            None uses the clips of the batch as candidates.
    """

    vectors: Mapping[Modality, Tensor]
    groups: Tensor
    index: Tensor
    relation: Relation = "label"
    features: Mapping[Modality, Tensor] | None = None
    heads: Mapping[Modality, nn.Module] | None = None
    relevance: Callable[[Modality, Modality], Tensor] | None = None
    guides: Mapping[str, Tensor] | None = None
    neighbors: Mapping[Modality, Positives] | None = None
    present: Mapping[Modality, Tensor] = field(default_factory=dict)
    bank: "Bank | None" = None

    @property
    def candidates(self) -> "Bank":
        """Clips used as candidates: the clips of `bank`, or the clips of the batch if `bank` is None."""
        return Bank(self.vectors, self.groups) if self.bank is None else self.bank

    @property
    def places(self) -> Tensor:
        """Positions (b,) of the clips of the batch among the candidates of one modality."""
        return torch.arange(len(self.groups), device=self.groups.device) if self.bank is None else self.index


@dataclass(frozen=True)
class Bank:
    """Candidates: all clips of the training set, without gradient, or the clips of a batch.

    Attributes:
        vectors: modality -> (n, d).
        groups: (n,) codes, as in the batch.
    """

    vectors: Mapping[Modality, Tensor]
    groups: Tensor


def laid_out(batch: Embedded, direction: tuple[Side, Side]) -> Comparison:
    """Return the comparison of one direction.

    If a side has several modalities, the vectors of these modalities are concatenated. No vector is compared with
    itself. Clips that lack a modality are neither anchors nor candidates in this modality.

    Raises:
        InputError: a modality of the direction has no vectors.
    """
    comparison = _whole(batch, direction)
    rows, columns = (_kept(batch, side) for side in direction)
    among = comparison if columns is None else comparison.among(columns)
    return among if rows is None else among.narrow(rows=rows)


def _kept(batch: Embedded, side: Side) -> Tensor | None:
    """Return the row numbers (m,) of the present vectors of a side; None if the side has no presence flags."""
    modalities = modalities_of(batch.vectors, side)
    if not any(modality in batch.present for modality in modalities):
        return None
    everyone = torch.ones_like(batch.groups, dtype=torch.bool)
    return torch.cat([batch.present.get(modality, everyone) for modality in modalities]).nonzero()[:, 0]


def _whole(batch: Embedded, direction: tuple[Side, Side]) -> Comparison:
    """Return the comparison of one direction as if every clip had every modality."""
    bank, places = batch.candidates, batch.places
    rows, columns = (modalities_of(batch.vectors, side) for side in direction)
    codes = _codes(rows, columns, batch)
    near, shares = _near(rows, columns, batch)
    positives = None if near is None else codes.positives(slice(None)) | near
    relevance = None
    if batch.relevance is not None:
        relevance = torch.cat([torch.cat([batch.relevance(r, c) for c in columns], 1) for r in rows])
    features = batch.features
    return Comparison(
        anchors=stacked(batch.vectors, direction[0]),
        candidates=stacked(bank.vectors, direction[1]),
        positives=codes.positives if positives is None else positives,
        negatives=codes.negatives if positives is None else codes.negatives(slice(None)) & ~positives,
        own=_partners(rows, columns, places, len(bank.groups)),
        relevance=relevance,
        shares=shares,
        guides=batch.guides or {},
        within=codes.within,
        anchor_features=stacked(features, direction[0]) if features else None,
        candidate_features=stacked(features, direction[1]) if features and batch.bank is None else None,
        candidate_head=batch.heads[columns[0]] if batch.heads and len(columns) == 1 else None,
        anchor_class=_repeated(batch.groups, rows),
        candidate_class=_repeated(bank.groups, columns),
    )


def _near(
    rows: Sequence[Modality], columns: Sequence[Modality], batch: Embedded
) -> tuple[Tensor | None, Tensor | None]:
    """Return the mask (a, c) of additional positives of one direction, and the shares (a, c) of all positives.

    The mask and the shares are None if the batch has no `neighbors`. The shares are also None if all shares are
    equal.
    """
    if batch.neighbors is None:
        return None, None
    further = [batch.neighbors[row] for row in rows]
    shares = [positives.shares for positives in further if positives.shares is not None]
    near = torch.cat([positives.mask for positives in further]).tile(1, len(columns))
    return near, torch.cat(shares).tile(1, len(columns)) if shares else None


def _codes(rows: Sequence[Modality], columns: Sequence[Modality], batch: Embedded) -> MaskCodes:
    """Return the codes that define the masks.

    The masks exclude pairs in which a vector is compared with itself.
    """
    bank, places = batch.candidates, batch.places
    clip = places if batch.bank is None else torch.arange(len(bank.groups), device=bank.groups.device)
    place = {modality: number for number, modality in enumerate(columns)}
    itself = [places + place[row] * len(clip) if row in place else torch.full_like(places, -1) for row in rows]
    numbers = {modality: number for number, modality in enumerate(batch.vectors)}
    return MaskCodes(
        groups=(_repeated(batch.groups, rows), _repeated(bank.groups, columns)),
        clips=(_repeated(places, rows), _repeated(clip, columns)) if batch.relation == "id" else None,
        itself=torch.cat(itself) if place.keys() & set(rows) else None,
        sides=(_sides(rows, numbers, places), _sides(columns, numbers, clip)),
    )


def _repeated(codes: Tensor, modalities: Sequence[Modality]) -> Tensor:
    return codes if len(modalities) == 1 else torch.cat([codes] * len(modalities))  # faster than `repeat`


def _sides(modalities: Sequence[Modality], numbers: Mapping[Modality, int], clip: Tensor) -> Tensor:
    return torch.cat([torch.full_like(clip, numbers[modality]) for modality in modalities])


def _partners(rows: Sequence[Modality], columns: Sequence[Modality], places: Tensor, width: int) -> Tensor:
    """Return the columns (a,) of the anchors' partners; -1 for an anchor without a partner.

    The partner is the same clip in the first modality of the candidates that differs from the anchor's modality.

    Args:
        rows: modalities of the anchors.
        columns: modalities of the candidates.
        places: (b,) position of each clip among the candidates of one modality.
        width: number of candidates of one modality.
    """
    other = [next((at for at, column in enumerate(columns) if column != row), None) for row in rows]
    return torch.cat([torch.full_like(places, -1) if at is None else places + at * width for at in other])


def stacked(vectors: Mapping[Modality, Tensor], side: Side) -> Tensor:
    """Return the concatenated vectors (a, d) of a side.

    Raises:
        InputError: there are no vectors of the side.
    """
    parts = [vectors[modality] for modality in modalities_of(vectors, side)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def modalities_of(vectors: Mapping[Modality, Tensor], side: Side) -> list[Modality]:
    """Return the modalities of a side.

    Raises:
        InputError: there are no vectors of the side.
    """
    if side == BOTH:
        return list(vectors)
    if side not in vectors:
        raise InputError(f"directions: there are no {side} embeddings; choose from {', '.join(vectors)}, {BOTH}")
    return [side]
