"""Comparison, the only input of a loss: anchors, candidates, and masks of positive and of negative pairs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison import pairwise
from aadml.comparison.masks import Mask, MaskCodes, RowsOfMask, rows_of, stored
from aadml.comparison.opposites import SharedResults
from aadml.feature_extraction.ground.errors import InputError

SCORES_KEPT = ("squared_distance", "distance", "dot", "cosine")
"""Scores of a comparison that are computed on first access."""
MASKS = ("positives", "negatives", "within")
_PER_PAIR = ("positives", "negatives", "relevance", "shares")


class Terms:
    """Sums and counts of the terms of a loss, per anchor; `Objective` reduces the terms to one number.

    Args:
        total: (a,) sum of the terms of each anchor, differentiable.
        active: (a,) number of terms that are not zero; None if every anchor has one term, whose value is `total`.
        possible: (a,) number of terms; None if every anchor has one term.
        penalty: scalar that belongs to no anchor (such as the L2 term of N-pair); None if the loss has no penalty.

    Attributes:
        one_each: whether every anchor has one term.
    """

    def __init__(
        self, total: Tensor, active: Tensor | None = None, possible: Tensor | None = None, penalty: Tensor | None = None
    ) -> None:
        self.total, self.penalty = total, penalty
        self.one_each = active is None and possible is None
        self._active, self._possible = active, possible

    @property
    def active(self) -> Tensor:
        """Number of terms that are not zero, (a,)."""
        return (self.total > 0).long() if self._active is None else self._active

    @property
    def possible(self) -> Tensor:
        """Number of terms, (a,)."""
        return torch.ones_like(self.total, dtype=torch.int64) if self._possible is None else self._possible


@dataclass(frozen=True)
class Comparison:
    """Comparison of `a` anchors with `c` candidates: vectors, masks of pairs, and inputs of some losses.

    A pair in neither mask is ignored. `negatives` need not be the complement of `positives`: a selection may remove
    pairs from either mask. Scores are computed once, on first access, in float32 or better (also under autocast). A
    mask may be set to a function that computes rows of the mask (see `MaskCodes`). The entire mask is then computed
    only on first access. Blocks of rows are computed without the entire mask.

    Attributes:
        anchors: (a, d) vectors.
        candidates: (c, d) vectors.
        positives: (a, c) bool.
        negatives: (a, c) bool, disjoint from `positives`.
        own: (a,) int64, column of the anchor's partner, a candidate of the same clip; -1 without a partner.
        relevance: (a, c) scores that replace `cosine` and `dot`, such as frame-word relevance. None computes
            `cosine` and `dot` from the vectors.
        shares: (a, c) weight of each positive among the positives of its anchor; None for equal weights. Only
            losses in WEIGHS_POSITIVES use the weights.
        guides: name -> (a, c) detached scores that a selection may use, such as similarities within a modality.
        within: (c,) or (a, c) bool, candidates of the anchor's own modality, for the loss CrossCLR.
        anchor_features: (a, f) features of the anchors from the penultimate layer of the encoder, for DAML and
            HDML.
        candidate_features: (c, f) features of the candidates from the penultimate layer, for DAML and HDML.
        candidate_head: last layer of the candidates, features (m, f) -> vectors (m, d), for synthetic features of
            DAML and HDML.
        anchor_class: (a,) int64 classes of the anchors, for losses and proxies that need classes.
        candidate_class: (c,) int64 classes of the candidates.
        shared: results that a comparison in the opposite direction reuses (see `share_results`); None in a new
            comparison.
    """

    anchors: Tensor
    candidates: Tensor
    positives: Mask[Tensor] = Mask()  # noqa: RUF009
    negatives: Mask[Tensor] = Mask()  # noqa: RUF009
    own: Tensor  # type: ignore[misc]  # the masks above have no default, despite the assignment
    relevance: Tensor | None = None
    shares: Tensor | None = None
    guides: Mapping[str, Tensor] = field(default_factory=dict)
    within: Mask[Tensor | None] = Mask(optional=True)  # noqa: RUF009
    anchor_features: Tensor | None = None
    candidate_features: Tensor | None = None
    candidate_head: nn.Module | None = None
    anchor_class: Tensor | None = None
    candidate_class: Tensor | None = None
    shared: SharedResults | None = field(default=None, init=False, repr=False, compare=False)

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
        """Build the comparison by class: candidates of the anchor's class are positives, all others are negatives.

        Args:
            anchors: (a, d).
            candidates: (c, d).
            labels: (a,) classes of the anchors.
            candidate_labels: (c,) classes of the candidates.
            own: (a,) column of each anchor's partner, or -1. By default, with equal numbers of anchors and candidates
                and no `itself`, candidate i is the partner of anchor i; otherwise no anchor has a partner.
            itself: (a,) column of the anchor itself or -1; this candidate is neither a positive nor a negative.

        Raises:
            InputError: vectors or classes of other shapes, or vectors of different widths.
        """
        _check_shapes(anchors, candidates, labels, candidate_labels)
        codes = MaskCodes((labels, candidate_labels), itself=itself)
        row = torch.arange(len(labels), device=labels.device)
        by_row = row if len(labels) == len(candidate_labels) and itself is None else torch.full_like(row, -1)
        return cls(
            anchors, candidates, codes.positives, codes.negatives, by_row if own is None else own,
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
        """Build the comparison of pairs: the anchor's partner as positive, candidates of other clips as negatives.

        Other candidates of the anchor's own clip are ignored.

        Args:
            anchors: (a, d).
            candidates: (c, d).
            groups: (a,) codes of the clips of the anchors.
            candidate_groups: (c,) codes of the clips of the candidates.
            own: (a,) column of each anchor's partner, or -1; by default, candidate i is the partner of anchor i.

        Raises:
            InputError: vectors or codes of other shapes, or vectors of different widths.
        """
        _check_shapes(anchors, candidates, groups, candidate_groups)
        partners = torch.arange(len(groups), device=groups.device) if own is None else own
        clips = torch.arange(len(candidate_groups), device=groups.device)
        codes = MaskCodes((groups, candidate_groups), (partners, clips))
        return cls(anchors, candidates, codes.positives, codes.negatives, partners)

    def with_vectors(self, anchors: Tensor, candidates: Tensor) -> "Comparison":
        """Return the comparison with its vectors replaced by `anchors` (a, d) and `candidates` (c, d)."""
        masks: Any = self._masks()  # functions that compute rows are not called
        return replace(self, anchors=anchors, candidates=candidates, **masks)

    def rows_of(self, mask: str, rows: slice, kind: torch.dtype) -> Tensor | None:
        """Return rows (r, c) of a mask as type `kind`; None if the mask is None.

        Args:
            mask: "positives", "negatives" or "within".
            rows: range of anchors.
            kind: type of the result.
        """
        value = stored(self, mask)
        return None if value is None else rows_of(value, rows, kind)

    def codes_of_all_pairs(self) -> MaskCodes | None:
        """Return the codes of the masks if the codes make every pair a positive or a negative, else None."""
        codes = self.codes_of_masks()
        return codes if codes is not None and codes.cover_all_pairs() else None

    def codes_of_both(self) -> Tensor | None:
        """Return the codes (a,) that anchors and candidates share if they define every pair, else None."""
        codes = self.codes_of_all_pairs()
        return codes.groups[0] if codes is not None and codes.groups[0] is codes.groups[1] else None

    def codes_of_masks(self) -> MaskCodes | None:
        """Return the codes of `positives` and `negatives`; None unless both masks are functions of the same codes."""
        codes = getattr(stored(self, "positives"), "__self__", None)
        alike = codes is getattr(stored(self, "negatives"), "__self__", None)
        return codes if alike and isinstance(codes, MaskCodes) else None

    def _masks(self) -> dict[str, Tensor | RowsOfMask | None]:
        return {name: stored(self, name) for name in MASKS}

    def narrow(
        self, positives: Tensor | None = None, negatives: Tensor | None = None, rows: Tensor | None = None
    ) -> "Comparison":
        """Return the comparison with other masks or fewer anchors; scores that are already computed are kept.

        Args:
            positives: (a, c) bool that replaces `positives`; None keeps the mask.
            negatives: (a, c) bool that replaces `negatives`; None keeps the mask.
            rows: (m,) int64 indices of the anchors to keep; the rows of the new masks are selected too. None keeps
                all anchors.
        """
        positives = self.positives if positives is None else positives
        negatives = self.negatives if negatives is None else negatives
        narrowed = replace(self, positives=positives, negatives=negatives)
        scores = {f"_{name}": self.__dict__[f"_{name}"] for name in SCORES_KEPT if f"_{name}" in self.__dict__}
        if rows is not None:
            narrowed = narrowed._at_rows(rows)
            scores = {name: score[rows] for name, score in scores.items()}
        narrowed.__dict__.update(scores)
        return narrowed

    def among(self, columns: Tensor) -> "Comparison":
        """Return the comparison with some of the candidates.

        Args:
            columns: (k,) int64 indices of the remaining candidates, ascending.
        """
        place = torch.full((len(self.candidates),), -1, device=self.own.device)
        place[columns] = torch.arange(len(columns), device=self.own.device)
        per_pair = self._selected((*_PER_PAIR, "within"), (..., columns))
        per_candidate = self._selected(("candidates", "candidate_features", "candidate_class"), columns)
        return replace(
            self,
            own=torch.where(self.own >= 0, place[self.own], self.own),
            guides={name: guide[:, columns] for name, guide in self.guides.items()},
            **per_pair,
            **per_candidate,
        )

    def _at_rows(self, rows: Tensor) -> "Comparison":
        per_anchor = self._selected(("anchors", *_PER_PAIR, "own", "anchor_features", "anchor_class"), rows)
        within = self.within[rows] if self.within is not None and self.within.ndim == 2 else self.within
        guides = {name: guide[rows] for name, guide in self.guides.items()}
        return replace(self, within=within, guides=guides, **per_anchor)

    def _selected(self, names: Sequence[str], index: Any) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in names}
        return {name: None if value is None else value[index] for name, value in fields.items()}

    @property
    def squared_distance(self) -> Tensor:
        """Squared Euclidean distance (a, c).

        Raises:
            InputError: the comparison has relevance scores instead of vectors.
        """
        return self._kept("squared_distance", lambda: pairwise.squared_distance(*self.vectors("squared distance")))

    @property
    def distance(self) -> Tensor:
        """Euclidean distance (a, c); its gradient is finite where two vectors coincide.

        Raises:
            InputError: the comparison has relevance scores instead of vectors.
        """
        return self._kept("distance", lambda: (self.squared_distance + pairwise.TINY).sqrt())

    @property
    def dot(self) -> Tensor:
        """Inner product (a, c), or the relevance that replaces it."""
        if self.relevance is not None:
            return pairwise.at_least_float32(self.relevance)
        return self._kept("dot", lambda: pairwise.dot(*self.vectors("dot")))

    @property
    def cosine(self) -> Tensor:
        """Cosine similarity (a, c), or the relevance that replaces it."""
        if self.relevance is not None:
            return pairwise.at_least_float32(self.relevance)
        return self._kept("cosine", lambda: pairwise.cosine(*self.vectors("cosine")))

    def _kept(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """Return a score, computed on first access, and stored under a name without a descriptor (see `stored`).

        `torch.compile` cannot follow a `cached_property` of Python 3.11.
        """
        scores: dict[str, Tensor] = self.__dict__
        if f"_{name}" not in scores:
            scores[f"_{name}"] = compute()
        return scores[f"_{name}"]

    def need(self, name: str, loss: str) -> Tensor:
        """Return the tensor of an optional field that a loss needs; see `Comparison` for the shape of the field.

        Args:
            name: name of a field that holds a tensor, such as "within" or "anchor_features".
            loss: name of the loss, for the message.

        Raises:
            InputError: the field is absent.
        """
        self.require(name, loss)
        value = getattr(self, name)
        assert isinstance(value, Tensor)
        return value

    def require(self, name: str, loss: str) -> None:
        """Raise the error of `need` if an optional field is absent; a mask is not computed."""
        if (stored(self, name) if name in MASKS else getattr(self, name)) is None:
            raise InputError(
                f"{loss} needs '{name}', which this comparison does not have; pass {name}=... to Comparison, or choose "
                "another loss, proxy or direction in a config"
            )

    def vectors(
        self, user: str, advice: str = "choose a score or loss that uses only dot or cosine"
    ) -> tuple[Tensor, Tensor]:
        """Return anchors (a, d) and candidates (c, d), in float32 or better.

        Args:
            user: name of the score or loss that needs the vectors, for the message.
            advice: end of the message.

        Raises:
            InputError: the comparison has relevance scores instead of vectors.
        """
        if self.relevance is not None:
            raise InputError(f"{user} needs vectors, but this comparison has relevance scores instead; {advice}")
        return pairwise.at_least_float32(self.anchors), pairwise.at_least_float32(self.candidates)


def _check_shapes(anchors: Tensor, candidates: Tensor, codes: Tensor, candidate_codes: Tensor) -> None:
    for side, vectors, of_side in (("anchors", anchors, codes), ("candidates", candidates, candidate_codes)):
        if vectors.ndim != 2 or not isinstance(of_side, Tensor) or of_side.shape != vectors.shape[:1]:
            layout = tuple(of_side.shape) if isinstance(of_side, Tensor) else type(of_side).__name__
            raise InputError(
                f"{side}: the vectors have shape {tuple(vectors.shape)}, and the classes or clips are {layout}; pass "
                "Tensors of shapes (n, d) and (n,)"
            )
    if anchors.shape[1] != candidates.shape[1]:
        raise InputError(
            f"anchors have {anchors.shape[1]} dimensions, but candidates have {candidates.shape[1]}; pass vectors of "
            "the same dimension"
        )
