"""Neighbor lists of a training set, kept over an epoch: every choice the AADML paper leaves open is an option."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Interval
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Choice, OnlyWith
from aadml.proxies.agreement import agreeing_neighbors
from aadml.proxies.exact_sums import SIMILARITIES
from aadml.proxies.graph import NeighborLists, neighbors, random_neighbors

FOUND = OnlyWith("neighbors", "nearest")


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """How lists are made.

    Attributes:
        k: neighbors an anchor (3: best for the triplet losses, AADML Figure 4).
        space: compare "embedding" vectors (Figure 2: within the label space) or "input" features (then once only).
        scope: neighbors from the "bank" (Equation 1: within the training set) or the "batch".
        same_class: neighbors of the anchor's class only (Equation 1), where labels are known.
        similarity: a key of SIMILARITIES.
        graph_modality: compare "within" a modality (Equation 1), anchors with the other one's vectors, "cross" (the
            sentence after Equation 2), or take the lesser cosine of all modalities, "agreeing" (AVID-CMA, CVPR 2021).
        neighbors: the "nearest", or k at "random" (a control).
    """

    k: Annotated[int, Interval(ge=1, le=10_000)] = 3
    space: Annotated[Literal["embedding", "input"], FOUND] = "embedding"
    scope: Literal["bank", "batch"] = "bank"
    same_class: bool = True
    similarity: Annotated[str, Choice(SIMILARITIES), FOUND] = "cosine"
    graph_modality: Annotated[Literal["within", "cross", "agreeing"], FOUND] = "within"
    neighbors: Literal["nearest", "random"] = "nearest"

    def __post_init__(self) -> None:
        if self.space == "input" and self.graph_modality == "cross":
            raise InputError("proxy.graph_modality: cross compares two modalities, whose input spaces differ")
        if self.graph_modality == "agreeing" and self.similarity != "cosine":
            raise InputError("proxy.graph_modality: agreeing compares cosines; leave proxy.similarity at cosine")


class CorrelationGraph:
    """The bank of training embeddings and the neighbor lists of its rows; neither is part of any state.

    Args:
        modalities: that have vectors.
        options: how lists are made.
    """

    def __init__(self, modalities: Sequence[Modality], options: GraphOptions) -> None:
        self.options = options
        self.modalities = tuple(modalities)
        if options.graph_modality == "cross" and len(self.modalities) != 2:
            raise InputError(f"proxy.graph_modality: cross needs two modalities, not {len(self.modalities)}")
        self._bank: Mapping[Modality, Tensor] | None = None
        self._inputs: Mapping[Modality, Tensor] | None = None
        self._labels: Tensor | None = None
        self._groups: Tensor | None = None
        self._generator: torch.Generator | None = None
        self._lists: Mapping[Modality, NeighborLists] | None = None
        self._refreshed = False

    @property
    def bank(self) -> Mapping[Modality, Tensor]:
        """The remembered embeddings: modality -> (n, d).

        Raises:
            InputError: nothing was remembered yet.
        """
        if self._bank is None:
            raise InputError("proxy: there is no bank yet; refresh the proxy with the training embeddings first")
        return self._bank

    def remember(self, bank: Mapping[Modality, Tensor]) -> None:
        """Store embeddings (n, d) of a training set, detached, without making lists."""
        self._bank = {modality: vectors.detach() for modality, vectors in bank.items()}

    def refresh(
        self,
        bank: Mapping[Modality, Tensor],
        labels: Tensor | None,
        inputs: Mapping[Modality, Tensor] | None,
        generator: torch.Generator | None,
        groups: Tensor | None,
    ) -> None:
        """Store embeddings and renew the lists; those of input features are kept while the features are the same ones.

        Args:
            bank: modality -> (n, d) embeddings.
            labels: (n,) classes, or None: lists then know no classes.
            inputs: modality -> (n, f), needed in input space.
            generator: needed for random neighbors.
            groups: (n,) entries of one group are never neighbors; by default every row is its own group.

        Raises:
            InputError: something needed is missing, or no class is large enough for k neighbors.
        """
        options = self.options
        if options.neighbors == "random" and generator is None:
            raise InputError("proxy.neighbors: random needs a generator")
        if options.space == "input" and inputs is None:
            raise InputError("proxy.space: input needs features in memory; these are made batch by batch")
        device = next(iter(bank.values())).device
        labels = None if labels is None or not options.same_class else labels.to(device)
        groups = None if groups is None else groups.to(device)
        kept = self._lists is not None and options.space == "input" and options.neighbors == "nearest"
        kept = kept and _same(self._inputs, inputs) and _equal(self._labels, labels) and _equal(self._groups, groups)
        self.remember(bank)
        self._inputs, self._labels, self._groups, self._generator = inputs, labels, groups, generator
        self._refreshed = True
        if options.scope == "batch" or kept:
            return
        self.check_size(len(next(iter(bank.values()))), labels)
        vectors = self.bank if inputs is None or options.space == "embedding" else inputs
        self._lists = self._made(vectors, labels, groups)

    def lists(self, index: Tensor, embeddings: Mapping[Modality, Tensor]) -> dict[Modality, NeighborLists]:
        """Give the lists of a batch: rows of the bank, or of the batch where that is the scope.

        Args:
            index: (b,) rows of the batch in the training set.
            embeddings: modality -> (b, d), looked at in batch scope only.

        Returns:
            Lists of b anchors for every modality.
        """
        if not self._refreshed:
            raise InputError("proxy: there are no neighbor lists yet; refresh the proxy before each epoch")
        index = index.to(next(iter(self.bank.values())).device)
        if self._lists is not None:
            return {modality: self._lists[modality].take(index) for modality in embeddings}
        inside = self._inputs if self.options.space == "input" else None
        vectors = {
            m: e.detach() if inside is None else inside[m][index.to(inside[m].device)] for m, e in embeddings.items()
        }
        labels = None if self._labels is None else self._labels[index]
        return self._made(vectors, labels, index if self._groups is None else self._groups[index])

    def nearest_in_bank(self, vectors: Tensor, modality: Modality, k: int) -> NeighborLists:
        """List the k bank rows of one modality nearest to new vectors (m, d), knowing no labels."""
        return neighbors(self.bank[modality], vectors, k=k, similarity=self.options.similarity)

    def other(self, modality: Modality) -> Modality:
        """Name the other one of two modalities."""
        first, second = self.modalities
        return second if modality == first else first

    def _made(
        self, vectors: Mapping[Modality, Tensor], labels: Tensor | None, groups: Tensor | None
    ) -> dict[Modality, NeighborLists]:
        if self.options.graph_modality == "agreeing" and self.options.neighbors == "nearest":
            both = agreeing_neighbors(list(vectors.values()), k=self.options.k, labels=labels, groups=groups)
            return dict.fromkeys(vectors, both)
        return {modality: self._directed(vectors, modality, labels, groups) for modality in vectors}

    def _directed(
        self, vectors: Mapping[Modality, Tensor], modality: Modality, labels: Tensor | None, groups: Tensor | None
    ) -> NeighborLists:
        options = self.options
        own = vectors[modality]
        if options.neighbors == "random":
            assert self._generator is not None  # as `refresh` has seen to
            lists = random_neighbors(len(own), k=options.k, labels=labels, groups=groups, generator=self._generator)
            return NeighborLists(*(part.to(own.device) for part in (lists.index, lists.mask, lists.similarity)))
        asked = vectors[self.other(modality)] if options.graph_modality == "cross" else own
        return neighbors(
            asked, own, k=options.k, labels=labels, groups=groups, similarity=options.similarity, exclude_self=True
        )

    def check_size(self, count: int, labels: Tensor | None) -> None:
        """Refuse a k that no anchor could have; smaller classes are masked, as the graph is defined.

        Args:
            count: of the training clips.
            labels: (count,) their classes; None where lists know none.

        Raises:
            InputError: says how large k can be.
        """
        if self.options.scope == "batch" or not count:
            return
        labels = labels if self.options.same_class else None
        largest = count if labels is None else int(torch.unique(labels, return_counts=True)[1].max())
        if self.options.k >= largest:
            whole = "training set" if labels is None else "largest class"
            raise InputError(
                f"proxy.k: {self.options.k} neighbors asked, but the {whole} has {largest} clips;"
                f" k can be {largest - 1} at most"
            )


def _same(kept: Mapping[Modality, Tensor] | None, given: Mapping[Modality, Tensor] | None) -> bool:
    if kept is None or given is None:
        return False
    return kept.keys() == given.keys() and all(kept[m] is given[m] for m in kept)


def _equal(kept: Tensor | None, given: Tensor | None) -> bool:
    if kept is None or given is None:
        return kept is None and given is None
    return kept is given or torch.equal(kept, given)
