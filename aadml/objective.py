"""A training signal: the loss of a comparison of proxies, over directions, reduced to one number."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.types import Modality
from feature_extraction.errors import InputError

Side = Literal["audio", "visual", "text", "both"]
Relation = Literal["label", "id"]
Encode = Callable[[Modality, Tensor], Tensor]


@dataclass(frozen=True)
class Embedded:
    """A batch of b clips after the encoders.

    Attributes:
        vectors: modality -> (b, d).
        groups: (b,) what two items must share to be positives ("label") or must not share to be negatives ("id").
        index: (b,) rows in the training set (proxies look up neighbors by it).
        relation: whether all of a group are positives ("label"), or a clip's own partner alone ("id").
        features: modality -> (b, f) penultimate features, for losses that generate (DAML, HDML).
        heads: modality -> the last layer, features (m, f) -> vectors (m, d), for the same.
        relevance: (anchors' modality, candidates' modality) -> (b, b) score in place of one of two vectors.
        guides: name -> (b, b) detached scores that selections may follow.
    """

    vectors: Mapping[Modality, Tensor]
    groups: Tensor
    index: Tensor
    relation: Relation = "label"
    features: Mapping[Modality, Tensor] | None = None
    heads: Mapping[Modality, nn.Module] | None = None
    relevance: Callable[[Modality, Modality], Tensor] | None = None
    guides: Mapping[str, Tensor] | None = None


def parse_directions(names: Sequence[str]) -> tuple[tuple[Side, Side], ...]:
    """Read directions written as "anchors-candidates", for example "audio-visual" or "both-both".

    Raises:
        InputError: a name that is not two of audio, visual, text, both.
    """
    directions = []
    for name in names:
        sides = str(name).split("-")
        if len(sides) != 2 or any(side not in get_args(Side) for side in sides):
            raise InputError(f"directions: '{name}' is not ANCHORS-CANDIDATES, two of {', '.join(get_args(Side))}")
        directions.append((sides[0], sides[1]))
    return tuple(directions)  # type: ignore[arg-type]


REDUCTIONS = ("sum", "mean", "mean-of-active", "per-anchor")


def reduce(terms: Terms, reduction: str) -> Tensor:
    """Make one number of per-anchor terms.

    Args:
        terms: totals, active and possible counts, each (a,).
        reduction: "sum" of all terms; "mean" over possible terms; "mean-of-active" over terms that are not zero;
            "per-anchor": the mean of the anchors' totals.

    Returns:
        A scalar; 0 where there are no terms. A penalty is added as it is.
    """
    total = terms.total.sum()
    if reduction == "mean":
        total = total / terms.possible.sum().clamp_min(1)
    elif reduction == "mean-of-active":
        total = total / terms.active.sum().clamp_min(1)
    elif reduction == "per-anchor":
        total = total / max(len(terms.total), 1)
    elif reduction != "sum":
        raise InputError(f"loss.reduction: no '{reduction}'; there are {', '.join(REDUCTIONS)}")
    return total if terms.penalty is None else total + terms.penalty


class Objective(nn.Module):
    """loss(selection(comparison(proxy(anchors), candidates))), over directions.

    Args:
        loss: comparison -> terms.
        selection: (comparison, generator) -> comparison.
        proxy: who anchors (and candidates) are seen as; None for themselves. Its `aa_on` says on which sides it acts,
            its `aa_mix` how much of the loss is computed on proxies (the rest on the embeddings themselves).
        directions: who meets whom.
        reduction: one of REDUCTIONS.
        combine: "mean" or "sum" of the directions' losses.
    """

    def __init__(
        self,
        loss: Callable[[Comparison], Terms],
        selection: Callable[[Comparison, torch.Generator], Comparison],
        proxy: nn.Module | None,
        *,
        directions: Sequence[str],
        reduction: str = "mean-of-active",
        combine: str = "mean",
    ) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise InputError(f"loss.reduction: no '{reduction}'; there are {', '.join(REDUCTIONS)}")
        if combine not in ("mean", "sum"):
            raise InputError(f"loss.combine: no '{combine}'; there are mean, sum")
        self.loss = loss
        self.selection = selection
        self.proxy = proxy
        self.directions = parse_directions(directions)
        self.reduction = reduction
        self.combine = combine

    def forward(self, batch: Embedded, generator: torch.Generator, encode: Encode | None = None) -> dict[str, Tensor]:
        """Return the objective of a batch.

        Args:
            batch: embeddings and who belongs together.
            generator: of the selection's draws.
            encode: (modality, rows of the training set) -> embeddings, for proxies with live neighbors.

        Returns:
            "loss" (a scalar) and "active", the share of terms that are not zero.
        """
        raw = batch.vectors
        if self.proxy is None:
            return self._compare(batch, raw, raw, generator)
        proxy: Any = self.proxy
        on, mix = proxy.aa_on, float(proxy.aa_mix)
        if mix == 0:
            return self._compare(batch, raw, raw, generator)
        proxies = proxy(raw, batch.index, encode)
        anchors = proxies if on in ("all", "anchor") else raw
        candidates = proxies if on in ("all", "reference") else raw
        seen = self._compare(batch, anchors, candidates, generator)
        if mix == 1:
            return seen
        plain = self._compare(batch, raw, raw, generator)
        return {key: mix * seen[key] + (1 - mix) * plain[key] for key in seen}

    def comparisons(
        self, batch: Embedded, anchors: Mapping[Modality, Tensor], candidates: Mapping[Modality, Tensor]
    ) -> list[Comparison]:
        """Lay out the comparison of every direction, before any selection."""
        return [_comparison(batch, anchors, candidates, direction) for direction in self.directions]

    def _compare(
        self,
        batch: Embedded,
        anchors: Mapping[Modality, Tensor],
        candidates: Mapping[Modality, Tensor],
        generator: torch.Generator,
    ) -> dict[str, Tensor]:
        losses, shares = [], []
        for comparison in self.comparisons(batch, anchors, candidates):
            terms = self.loss(self.selection(comparison, generator))
            losses.append(reduce(terms, self.reduction))
            shares.append(terms.active.sum() / terms.possible.sum().clamp_min(1))
        loss = torch.stack(losses).sum()
        return {
            "loss": loss / len(losses) if self.combine == "mean" else loss,
            "active": torch.stack([share.detach().float() for share in shares]).mean(),
        }


def _comparison(
    batch: Embedded,
    anchors: Mapping[Modality, Tensor],
    candidates: Mapping[Modality, Tensor],
    direction: tuple[Side, Side],
) -> Comparison:
    """Lay out one direction: rows of several modalities are concatenated, nobody is compared with itself."""
    rows, columns = _modalities(batch, direction[0]), _modalities(batch, direction[1])
    count = len(batch.groups)
    groups_rows, groups_columns = batch.groups.repeat(len(rows)), batch.groups.repeat(len(columns))
    same_group = groups_rows[:, None] == groups_columns[None, :]
    item = torch.arange(count, device=batch.groups.device)
    row_of, column_of = item.repeat(len(rows)), item.repeat(len(columns))
    row_modality = torch.arange(len(rows), device=item.device).repeat_interleave(count)
    column_modality = torch.tensor([rows.index(c) if c in rows else -1 for c in columns], device=item.device)
    within = row_modality[:, None] == column_modality.repeat_interleave(count)[None, :]
    same_item = row_of[:, None] == column_of[None, :]
    myself = within & same_item
    partner = same_item & ~within
    own = torch.where(partner.any(1), partner.int().argmax(1), -1)
    positives = same_group & ~myself if batch.relation == "label" else partner
    relevance = None
    if batch.relevance is not None:
        relevance = torch.cat([torch.cat([batch.relevance(r, c) for c in columns], 1) for r in rows])
    features = batch.features
    return Comparison(
        anchors=torch.cat([anchors[m] for m in rows]),
        candidates=torch.cat([candidates[m] for m in columns]),
        positives=positives,
        negatives=~same_group,
        own=own,
        relevance=relevance,
        guides=batch.guides or {},
        within=within,
        anchor_features=torch.cat([features[m] for m in rows]) if features else None,
        candidate_features=torch.cat([features[m] for m in columns]) if features else None,
        candidate_head=batch.heads[columns[0]] if batch.heads and len(columns) == 1 else None,
        anchor_class=groups_rows,
        candidate_class=groups_columns,
    )


def _modalities(batch: Embedded, side: Side) -> list[Modality]:
    if side == "both":
        return list(batch.vectors)
    if side not in batch.vectors:
        raise InputError(f"directions: no {side} embeddings here; there are {', '.join(batch.vectors)}")
    return [side]
