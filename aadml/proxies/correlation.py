"""Neighbor lists of a training set, fixed during an epoch, with options for details that AADML leaves open."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

import torch
from annotated_types import Interval
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import OnlyWith
from aadml.proxies.contract import TrainingSet
from aadml.proxies.graph import NeighborLists, agreeing_neighbors, neighbors, random_neighbors

FOUND = OnlyWith("neighbors", "nearest")


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """Options of the neighbor lists.

    Reference: Morgado et al., Audio-visual instance discrimination with cross-modal agreement, CVPR 2021, https://doi.org/10.1109/CVPR46437.2021.01229

    Attributes:
        k: number of neighbors of an anchor; 3 is best for the triplet losses (AADML, Figure 4).
        space: vectors that are compared. "embedding" compares embeddings (Figure 2: within the label space). "input"
            compares input features, and the lists are then computed only once.
        graph_modality: "within" compares clips in one modality (Equation 1), and "cross" compares anchors with clips in
            the other modality (the sentence after Equation 2). "agreeing" uses the minimum cosine over modalities
            (AVID-CMA, CVPR 2021).
        neighbors: the "nearest" clips, or k "random" clips as a control.

    Raises:
        InputError: a cross graph is searched in input space.
    """

    k: Annotated[int, Interval(ge=1, le=10_000)] = 3
    space: Annotated[Literal["embedding", "input"], FOUND] = "embedding"
    graph_modality: Annotated[Literal["within", "cross", "agreeing"], FOUND] = "within"
    neighbors: Literal["nearest", "random"] = "nearest"

    def __post_init__(self) -> None:
        if self.space == "input" and self.graph_modality == "cross":
            raise InputError(
                "proxy.graph_modality: cross needs a common space, but the input spaces of the modalities differ; set "
                "proxy.space to embedding"
            )


class CorrelationGraph:
    """Bank of training embeddings and the neighbor lists of its rows; neither is saved in a state.

    Neighbors are of the anchor's class (Equation 1), where labels are known.

    Args:
        modalities: modalities of the vectors.
        options: options of the lists.

    Raises:
        InputError: a cross graph does not have exactly two modalities.
    """

    def __init__(self, modalities: Sequence[Modality], options: GraphOptions) -> None:
        self.options = options
        self.modalities = tuple(modalities)
        if options.graph_modality == "cross" and len(self.modalities) != 2:
            raise InputError(
                "proxy.graph_modality: 'cross' needs exactly two modalities, but the data have "
                f"{len(self.modalities)}; choose 'within'"
            )
        self._bank: Mapping[Modality, Tensor] | None = None
        self._train: TrainingSet | None = None
        self._lists: Mapping[Modality, NeighborLists] | None = None

    @property
    def bank(self) -> Mapping[Modality, Tensor]:
        """Training embeddings: modality -> (n, d).

        Raises:
            InputError: no embeddings are stored.
        """
        if self._bank is None:
            raise InputError("proxy: there is no bank yet; call refresh with the training embeddings first")
        return self._bank

    def remember(self, bank: Mapping[Modality, Tensor]) -> None:
        """Store embeddings (n, d) of a training set, detached, without finding neighbors."""
        self._bank = {modality: vectors.detach() for modality, vectors in bank.items()}

    def refresh(self, train: TrainingSet) -> None:
        """Store embeddings and compute the lists; lists of unchanged input features are not computed again.

        Args:
            train: the training set. Without labels, neighbors may be of any class. `space` "input" needs `inputs`, and
                random neighbors need `generator`. Rows of one group are never neighbors.

        Raises:
            InputError: missing `inputs` or `generator` that the options need, too few clips for k neighbors, or a
                vector that is not finite.
        """
        options = self.options
        if options.neighbors == "random" and train.generator is None:
            raise InputError(
                "proxy.neighbors: random neighbors need a generator, but the training set has none; pass a generator"
            )
        if options.space == "input" and train.inputs is None:
            raise InputError(
                "proxy.space: input needs features in memory, but the features are computed batch by batch; choose "
                "embedding"
            )
        device = next(iter(train.bank.values())).device
        labels, groups = (None if codes is None else codes.to(device) for codes in (train.labels, train.groups))
        old, self._train = self._train, replace(train, labels=labels, groups=groups)
        self.remember(train.bank)
        is_input = (options.space, options.neighbors) == ("input", "nearest")
        if self._lists is not None and is_input and old is not None and _same_clips(old, self._train):
            return
        self.check_size(len(next(iter(train.bank.values()))), labels)
        vectors = self.bank if train.inputs is None or options.space == "embedding" else train.inputs
        self._lists = self._computed(vectors, self._train)

    def lists(self, index: Tensor, modalities: Iterable[Modality]) -> dict[Modality, NeighborLists]:
        """Return the neighbor lists of a batch, as rows of the bank.

        Args:
            index: (b,) rows of the batch in the training set.
            modalities: modalities of the anchors.

        Returns:
            Lists of b anchors for every modality.

        Raises:
            InputError: `refresh` was not called.
        """
        if self._lists is None:
            raise InputError("proxy: there are no neighbor lists yet; call refresh before each epoch")
        index = index.to(next(iter(self.bank.values())).device)
        return {modality: self._lists[modality].take(index) for modality in modalities}

    def nearest_in_bank(self, vectors: Tensor, modality: Modality, k: int | None) -> NeighborLists:
        """Return lists of the k bank rows of a modality that are nearest to each of the new vectors (m, d).

        If k is None, the number of neighbors in training is used.

        Raises:
            InputError: no stored embeddings, k below 1, vectors that are not finite, or vectors whose width differs
                from the width of the bank.
        """
        return neighbors(self.bank[modality], vectors, k=self.options.k if k is None else k)

    def other(self, modality: Modality) -> Modality:
        """Return the other of the two modalities."""
        first, second = self.modalities
        return second if modality == first else first

    def _computed(self, vectors: Mapping[Modality, Tensor], train: TrainingSet) -> dict[Modality, NeighborLists]:
        k, labels, groups = self.options.k, train.labels, train.groups
        if self.options.neighbors == "random":
            assert train.generator is not None  # checked by `refresh`
            drawn = partial(random_neighbors, k=k, labels=labels, groups=groups, generator=train.generator)
            return {modality: drawn(len(anchors)).to(anchors.device) for modality, anchors in vectors.items()}
        if self.options.graph_modality == "agreeing":
            return dict.fromkeys(vectors, agreeing_neighbors(list(vectors.values()), k=k, labels=labels, groups=groups))
        if self.options.graph_modality == "cross":
            first = next(iter(vectors.values()))
            groups = torch.arange(len(first), device=first.device) if groups is None else groups
            search = partial(neighbors, k=k, labels=labels, groups=groups)
            return {m: search(vectors[self.other(m)], anchors) for m, anchors in vectors.items()}
        return {m: neighbors(anchors, k=k, labels=labels, groups=groups) for m, anchors in vectors.items()}

    def check_size(self, count: int, labels: Tensor | None) -> None:
        """Check that some anchor can have k neighbors. In classes of at most k clips, the lists are partly masked.

        Args:
            count: number of training clips.
            labels: (count,) classes of the clips; None if there are no classes.

        Raises:
            InputError: no anchor can have k neighbors; an empty training set is accepted.
        """
        if not count:
            return
        largest = count if labels is None else int(torch.unique(labels, return_counts=True)[1].max())
        if self.options.k >= largest:
            source = "training set" if labels is None else "largest class"
            clips = "1 clip" if largest == 1 else f"{largest} clips"
            advice = "choose data with more clips" if largest == 1 else f"pass at most {largest - 1}"
            raise InputError(f"proxy.k is {self.options.k}, but the {source} has {clips}; {advice}")


def _same_clips(old: TrainingSet, new: TrainingSet) -> bool:
    if old.inputs is None or new.inputs is None or old.inputs.keys() != new.inputs.keys():
        return False
    same_inputs = all(old.inputs[m] is new.inputs[m] for m in old.inputs)
    return same_inputs and _equal(old.labels, new.labels) and _equal(old.groups, new.groups)


def _equal(old: Tensor | None, new: Tensor | None) -> bool:
    if old is None or new is None:
        return old is new
    return old is new or torch.equal(old, new)
