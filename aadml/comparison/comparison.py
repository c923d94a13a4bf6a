"""The one thing a loss sees: anchors against candidates, who is a positive, who is a negative."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison import pairwise
from aadml.comparison.masks import Mask, MaskCodes, RowsOfMask, rows_of
from aadml.feature_extraction.ground.errors import InputError

SCORES_KEPT = ("squared_distance", "distance", "dot", "cosine")
"""The scores of a comparison that are computed when first asked for."""
MASKS = ("positives", "negatives", "within")


@dataclass(frozen=True)
class Terms:
    """What a loss says of each anchor; `Objective` alone decides how anchors are reduced to one number.

    Attributes:
        total: (a,) the sum of the anchor's terms, differentiable.
        active: (a,) how many of its terms are not zero.
        possible: (a,) how many terms it has.
        penalty: an optional scalar that belongs to no anchor (N-pair's L2).
    """

    total: Tensor
    active: Tensor
    possible: Tensor
    penalty: Tensor | None = None


@dataclass(frozen=True)
class Comparison:
    """a anchors against c candidates; a loss never sees labels, modalities, models or config.

    An entry in neither mask is ignored. `negatives` is what a selection leaves, not the complement of `positives`.
    Scores are computed once, in float32 or better (also under autocast), when first asked for. A mask may be given by
    what makes its rows (see `MaskCodes`): it is then made when first read, and never where blocks of rows are enough.

    Attributes:
        anchors: (a, d) vectors.
        candidates: (c, d) vectors.
        positives: (a, c) bool.
        negatives: (a, c) bool, disjoint from `positives`.
        own: (a,) int64, the candidate that is the anchor's partner (same clip), or -1.
        relevance: (a, c) a score that is not of two vectors (frame/word relevance); it then *is* `cosine` and `dot`.
        shares: (a, c) how much each positive counts beside the others of its anchor; None where all count alike. Only
            the losses named in WEIGHS_POSITIVES look at it.
        guides: name -> (a, c) detached scores that a selection may follow (within-modality similarity).
        within: (c,) or (a, c) bool, candidates of the anchor's own modality (CrossCLR).
        anchor_features: (a, f) the encoder's penultimate features (DAML, HDML).
        candidate_features: (c, f) likewise.
        candidate_head: the candidates' last layer, features (m, f) -> vectors (m, d): for what DAML and HDML make up.
        anchor_class: (a,) int64 classes, only for losses that own parameters per class.
        candidate_class: (c,) likewise.
    """

    anchors: Tensor
    candidates: Tensor
    positives: Mask[Tensor] = Mask()  # noqa: RUF009
    negatives: Mask[Tensor] = Mask()  # noqa: RUF009
    own: Tensor  # type: ignore[misc]  # the masks before it have no default, though they look as if they had
    relevance: Tensor | None = None
    shares: Tensor | None = None
    guides: Mapping[str, Tensor] = field(default_factory=dict)
    within: Mask[Tensor | None] = Mask(optional=True)  # noqa: RUF009
    anchor_features: Tensor | None = None
    candidate_features: Tensor | None = None
    candidate_head: nn.Module | None = None
    anchor_class: Tensor | None = None
    candidate_class: Tensor | None = None

    @classmethod
    def of_labels(
        cls,
        anchors: Tensor,
        candidates: Tensor,
        labels: Tensor,
        candidate_labels: Tensor,
        *,
        own: Tensor | None = None,
        itself: Tensor | None = None,
    ) -> "Comparison":
        """Compare by class: everything of the anchor's class is a positive, everything else a negative.

        Args:
            anchors: (a, d).
            candidates: (c, d).
            labels: (a,) classes of the anchors.
            candidate_labels: (c,) classes of the candidates.
            own: (a,) each anchor's partner or -1; by default row i of both sides where the counts agree, else none.
            itself: (a,) the column that holds the anchor itself or -1; it is neither a positive nor a negative.
        """
        codes = MaskCodes((labels, candidate_labels), itself=itself)
        if own is None:
            row = torch.arange(len(labels), device=labels.device)
            own = row if len(labels) == len(candidate_labels) and itself is None else torch.full_like(row, -1)
        return cls(
            anchors, candidates, codes.positives, codes.negatives, own,
            anchor_class=labels, candidate_class=candidate_labels,
        )  # fmt: skip

    @classmethod
    def of_ids(
        cls,
        anchors: Tensor,
        candidates: Tensor,
        groups: Tensor,
        candidate_groups: Tensor,
        *,
        own: Tensor | None = None,
    ) -> "Comparison":
        """Compare pairs: an anchor's partner alone is its positive; others of the same clip are neither.

        Args:
            anchors: (a, d).
            candidates: (c, d).
            groups: (a,) codes of the clips the anchors come from.
            candidate_groups: (c,) likewise for the candidates.
            own: (a,) each anchor's partner or -1; by default candidate i of anchor i.
        """
        own = torch.arange(len(groups), device=groups.device) if own is None else own
        clips = torch.arange(len(candidate_groups), device=groups.device)
        codes = MaskCodes((groups, candidate_groups), (own, clips))
        return cls(anchors, candidates, codes.positives, codes.negatives, own)

    def seen_as(self, anchors: Tensor, candidates: Tensor) -> "Comparison":
        """Put other vectors, anchors (a, d) and candidates (c, d), in place of the present ones."""
        made: Any = self._masks()  # what gives rows stays what it is
        return replace(self, anchors=anchors, candidates=candidates, **made)

    def rows_of(self, mask: str, rows: slice, kind: torch.dtype) -> Tensor | None:
        """Give some rows (r, c) of "positives", "negatives" or "within" as zeros and ones; None where it is absent."""
        kept = self._masks()[mask]
        return None if kept is None else rows_of(kept, rows, kind)

    def is_whole(self) -> bool:
        """Say whether every pair is known, without a look at masks, to be either a positive or a negative."""
        masks = self._masks()
        codes, others = (getattr(masks[name], "__self__", None) for name in ("positives", "negatives"))
        return codes is others and isinstance(codes, MaskCodes) and codes.leave_nobody_out()

    def _masks(self) -> dict[str, Tensor | RowsOfMask | None]:
        """Give the masks as they are kept."""
        return {name: self.__dict__[name] for name in MASKS}

    def narrow(
        self, positives: Tensor | None = None, negatives: Tensor | None = None, rows: Tensor | None = None
    ) -> "Comparison":
        """Keep fewer anchors, positives or negatives; scores that were computed are kept, not computed again.

        Args:
            positives: (a, c) bool in place of the present ones.
            negatives: (a, c) bool likewise.
            rows: int64 indices of the anchors that stay (taken from the given masks too); all by default.
        """
        positives = self.positives if positives is None else positives
        negatives = self.negatives if negatives is None else negatives
        narrowed = replace(self, positives=positives, negatives=negatives)
        scores = {name: self.__dict__[name] for name in SCORES_KEPT if name in self.__dict__}
        if rows is not None:
            narrowed = narrowed._at_rows(rows)
            scores = {name: score[rows] for name, score in scores.items()}
        narrowed.__dict__.update(scores)
        return narrowed

    def among(self, columns: Tensor) -> "Comparison":
        """Keep some candidates.

        Args:
            columns: int64 indices of the candidates that stay, rising.
        """

        def taken(value: Tensor | None) -> Tensor | None:
            return None if value is None else value[..., columns]

        place = torch.full((len(self.candidates),), -1, device=self.own.device)
        place[columns] = torch.arange(len(columns), device=self.own.device)
        return replace(
            self,
            candidates=self.candidates[columns],
            positives=self.positives[:, columns],
            negatives=self.negatives[:, columns],
            own=torch.where(self.own >= 0, place[self.own], self.own),
            relevance=taken(self.relevance),
            shares=taken(self.shares),
            guides={name: guide[:, columns] for name, guide in self.guides.items()},
            within=taken(self.within),
            candidate_features=None if self.candidate_features is None else self.candidate_features[columns],
            candidate_class=taken(self.candidate_class),
        )

    def _at_rows(self, rows: Tensor) -> "Comparison":
        def taken(value: Tensor | None) -> Tensor | None:
            return None if value is None else value[rows]

        return replace(
            self,
            anchors=self.anchors[rows],
            positives=self.positives[rows],
            negatives=self.negatives[rows],
            own=self.own[rows],
            relevance=taken(self.relevance),
            shares=taken(self.shares),
            guides={name: guide[rows] for name, guide in self.guides.items()},
            within=taken(self.within) if self.within is not None and self.within.ndim == 2 else self.within,
            anchor_features=taken(self.anchor_features),
            anchor_class=taken(self.anchor_class),
        )

    @cached_property
    def squared_distance(self) -> Tensor:
        """Squared Euclidean distance (a, c)."""
        return pairwise.squared_distance(*self.vectors("squared distance"))

    @cached_property
    def distance(self) -> Tensor:
        """Euclidean distance (a, c); its gradient is finite where two vectors coincide."""
        return (self.squared_distance + pairwise.TINY).sqrt()

    @cached_property
    def dot(self) -> Tensor:
        """Inner product (a, c), or the relevance that stands in its place."""
        return (
            pairwise.at_least_float32(self.relevance)
            if self.relevance is not None
            else pairwise.dot(*self.vectors("dot"))
        )

    @cached_property
    def cosine(self) -> Tensor:
        """Cosine similarity (a, c), or the relevance that stands in its place."""
        return (
            pairwise.at_least_float32(self.relevance)
            if self.relevance is not None
            else pairwise.cosine(*self.vectors("cosine"))
        )

    def need(self, name: str, loss: str) -> Tensor:
        """Return an optional field.

        Args:
            name: "within", "anchor_features", ...
            loss: who asks, for the message.

        Raises:
            InputError: the field is absent.
        """
        value = getattr(self, name)
        if value is None:
            raise InputError(f"{loss} needs '{name}', which this comparison does not carry")
        assert isinstance(value, Tensor)
        return value

    def vectors(self, who: str) -> tuple[Tensor, Tensor]:
        """Return anchors (a, d) and candidates (c, d), in float32 or better.

        Args:
            who: what needs them, for the message.

        Raises:
            InputError: a relevance score stands in their place.
        """
        if self.relevance is not None:
            raise InputError(f"{who} needs vectors; this comparison carries a relevance score instead")
        return pairwise.at_least_float32(self.anchors), pairwise.at_least_float32(self.candidates)
