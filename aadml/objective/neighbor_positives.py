"""Neighbor positives: additional positives of a contrastive loss, found without labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Literal

import torch
from annotated_types import Interval
from torch import Tensor

from aadml.comparison import pairwise
from aadml.comparison.features import Modality
from aadml.comparison.options import Temperature
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import OnlyWith, OwnSection
from aadml.feature_extraction.ground.options import removing
from aadml.proxies.contract import TrainingSet
from aadml.proxies.correlation import CorrelationGraph, GraphOptions
from aadml.proxies.graph import NeighborLists, random_neighbors, united

FURTHER = OnlyWith("positives", "own", "either", "agreeing", "all")


@removing(own_share=None)
@dataclass(frozen=True, kw_only=True)
class NeighborOptions:
    """The `neighbors` section: positives besides the anchor's partner, and their weights.

    Options that correspond to published methods:

    - AVID-CMA (Morgado et al., CVPR 2021) uses clips that are similar in sound and picture as positives. The
      options are positives "agreeing" and weights "equal".
    - CWCL (Srinivasa et al., NeurIPS 2023) uses every clip as a positive, weighted by its similarity within the
      anchor's modality. The options are positives "all", weights "affine" and the loss supcon. CWCL measures
      similarity with a frozen encoder, as space "input" does.
    - HSC-MAE (2026), with soft top-k InfoNCE, searches neighbors in the space of a teacher, a deep canonical
      correlation analysis (DCCA). The options are positives "own", weights "softmax", space "dcca" and the loss
      supcon.

    Related methods: Robust-xID (Morgado et al., CVPR 2021) also softens targets by similarity. FNAC (Sun et al.,
    CVPR 2023) finds false negatives by similarity. NNCLR (Dwibedi et al., ICCV 2021) replaces the anchor by its
    nearest neighbor.

    Reference: Morgado et al., Audio-visual instance discrimination with cross-modal agreement, CVPR 2021, https://doi.org/10.1109/CVPR46437.2021.01229
    Reference: Srinivasa et al., CWCL: cross-modal transfer with continuously weighted contrastive loss, NeurIPS 2023, https://arxiv.org/abs/2309.14580
    Reference: Zeng et al., Hierarchical semantic correlation-aware masked autoencoder for unsupervised audio-visual
    representation learning, ICME 2026, https://arxiv.org/abs/2604.04229
    Reference: Morgado et al., Robust audio-visual instance discrimination, CVPR 2021, https://doi.org/10.1109/CVPR46437.2021.01274
    Reference: Sun et al., Learning audio-visual source localization via false negative aware contrastive learning, CVPR
    2023, https://arxiv.org/abs/2303.11302
    Reference: Dwibedi et al., With a little help from my friends: nearest-neighbor contrastive learning of visual
    representations, ICCV 2021, https://arxiv.org/abs/2104.14548

    Attributes:
        positives: "none" for only the partner, "all" for all clips, or a choice of the k nearest clips. "own"
            searches the anchor's modality, and "either" searches each modality. "agreeing" compares clips by the
            minimum similarity over modalities.
        k: number of neighbors per list.
        space: vectors among which neighbors are searched. The "embedding" vectors are searched again in each epoch.
            "input" uses features, and "dcca" uses vectors of a DCCA. The DCCA is trained first, only on the
            training clips. Its batches have 200 clips, or all clips if there are fewer than 200.
        control: "random" replaces neighbors by random clips, which receive the weights of the neighbors. "none"
            replaces nothing.
        weights: "equal", "affine" for (1 + s) / 2, or "softmax" for the softmax of s / temperature, where s is the
            similarity of a clip. The anchor's partner counts as a clip of similarity 1.
        temperature: temperature of softmax weights.
        candidates: candidates of an anchor. "batch" uses the clips of the batch, and "bank" uses all training clips
            with their embeddings before the epoch.

    Raises:
        InputError: all clips are positives of equal weight.
    """

    positives: Literal["none", "own", "either", "agreeing", "all"] = "none"
    k: Annotated[int, Interval(ge=1, le=10_000), OnlyWith("positives", "own", "either", "agreeing")] = 10
    space: Annotated[Literal["embedding", "input", "dcca"], FURTHER] = "embedding"
    control: Annotated[Literal["none", "random"], FURTHER] = "none"
    weights: Annotated[Literal["equal", "affine", "softmax"], FURTHER] = "equal"
    temperature: Annotated[Temperature, FURTHER, OnlyWith("weights", "softmax")] = 0.1
    candidates: Literal["batch", "bank"] = "batch"

    def __post_init__(self) -> None:
        if self.positives == "all" and self.weights == "equal":
            raise InputError(
                "neighbors.weights: equal weights do not distinguish clips if all clips are positives; choose affine "
                "or softmax"
            )

    @property
    def alike(self) -> bool:
        """Whether all positives have the same weight."""
        return self.positives == "none" or self.weights == "equal"

    @property
    def graph(self) -> GraphOptions:
        """Options of the correlation graph that computes the lists."""
        across: Literal["within", "agreeing"] = "agreeing" if self.positives == "agreeing" else "within"
        space: Literal["embedding", "input"] = "embedding" if self.space == "embedding" else "input"
        return GraphOptions(k=self.k, space=space, graph_modality=across)


Neighbors = Annotated[NeighborOptions, OwnSection()]
NEIGHBORS = NeighborOptions()


@dataclass(frozen=True)
class Positives:
    """Additional positives of b clips as anchors of one modality, among c candidate clips.

    Attributes:
        mask: (b, c) bool; false at the clip itself and at its duplicates.
        shares: (b, c) weights of the positives, including the anchor's partner; None if all are equal.
    """

    mask: Tensor
    shares: Tensor | None


class NeighborPositives:
    """Source of additional positives: neighbors in a training set, fixed during an epoch.

    Args:
        modalities: modalities of the embeddings.
        options: the `neighbors` section; its `positives` are not "none".
    """

    def __init__(self, modalities: tuple[Modality, ...], options: NeighborOptions) -> None:
        self.options = options
        self.graph = CorrelationGraph(modalities, options.graph)
        self._groups = torch.empty(0, dtype=torch.int64)
        self._inputs: Mapping[Modality, Tensor] = {}
        self._random: dict[int, NeighborLists] = {}
        self._order = torch.empty(0, dtype=torch.int64)

    def check_size(self, count: int) -> None:
        """Check that `count` training clips suffice for k neighbors.

        Raises:
            InputError: there are too few clips.
        """
        if self.options.positives != "all" and self.options.k >= count:
            clips = "is 1 clip" if count == 1 else f"are {count} clips"
            advice = "choose data with more clips" if count == 1 else f"pass at most {count - 1}"
            raise InputError(f"neighbors.k is {self.options.k}, but there {clips}; {advice}")

    def refresh(
        self,
        bank: Mapping[Modality, Tensor],
        inputs: Mapping[Modality, Tensor],
        groups: Tensor,
        generator: torch.Generator,
    ) -> None:
        """Find the neighbors of all clips for the next epoch.

        Args:
            bank: modality -> (n, d) embeddings of the training set.
            inputs: modality -> (n, f) features, or vectors of the teacher if `space` is "dcca".
            groups: (n,) codes; clips of one code are never neighbors.
            generator: generator of the control's draws.

        Raises:
            InputError: k is not below the number of clips, or a vector is not finite.
        """
        self.check_size(len(groups))
        self._groups, self._inputs, self._random = groups, inputs, {}
        if self.options.positives == "all":
            self.graph.remember(bank)
        else:
            self.graph.refresh(TrainingSet(bank, None, inputs, generator, groups))
        if self.options.control == "random":
            self._order = torch.randperm(len(groups), generator=generator).to(groups.device)
            for k in (self.options.k, len(self.graph.modalities) * self.options.k):
                self._random[k] = random_neighbors(len(groups), k=k, groups=groups, generator=generator)

    def among(self, index: Tensor, modality: Modality, columns: Tensor) -> Positives:
        """Return the additional positives of a batch; call `refresh` first.

        Args:
            index: (b,) rows of the anchors in the training set.
            modality: modality of the anchors.
            columns: (c,) rows of the candidates in the training set.
        """
        weighed = self._of_all if self.options.positives == "all" else self._of_lists
        raw, mask = weighed(index, modality, columns)
        return Positives(mask, None if self.options.alike else self._shares(raw, index, columns))

    def _of_lists(self, index: Tensor, modality: Modality, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Return unscaled candidate weights (b, c), and the mask (b, c) of candidates in the neighbor lists.

        Candidates outside the lists have weight 0.
        """
        lists = self._lists(index, modality)
        rows, mask = lists.index, lists.mask
        if self._random:
            drawn = self._random[rows.shape[1]].take(index)
            rows, mask = drawn.index, mask & drawn.mask
        # the last column is for neighbors that are not candidates
        place = columns.new_full((len(self._groups),), len(columns))
        place[columns] = torch.arange(len(columns), device=columns.device)
        column, weights = place[rows.clamp_min(0)].masked_fill(~mask, len(columns)), self._weights(lists.similarity)
        spread = weights.new_zeros(len(index), len(columns) + 1).scatter_(1, column, weights)
        present = torch.zeros_like(spread, dtype=torch.bool).scatter_(1, column, value=True)
        return spread[:, :-1], present[:, :-1]

    def _lists(self, index: Tensor, modality: Modality) -> NeighborLists:
        listed = self.graph.modalities if self.options.positives == "either" else (modality,)
        lists = self.graph.lists(index, listed)
        return reduce(united, (lists[m] for m in listed if m != modality), lists[modality])

    def _of_all(self, index: Tensor, modality: Modality, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Return unscaled candidate weights (b, c) by similarity, and the mask (b, c) of possible positives.

        The mask excludes candidates of the anchor's group, which have weight 0.
        """
        vectors = self.graph.bank[modality] if self.options.space == "embedding" else self._inputs[modality]
        candidates = columns if not len(self._order) else self._order[columns]
        weights = self._weights(pairwise.cosine(vectors[index].double(), vectors[candidates].double()))
        mask = self._groups[index, None] != self._groups[columns][None]
        return weights.masked_fill(~mask, 0), mask

    def _weights(self, similarity: Tensor) -> Tensor:
        """Return weights by similarity; similarity 1 has weight 1."""
        if self.options.weights == "equal":
            return torch.ones_like(similarity)
        if self.options.weights == "affine":
            return (1 + similarity.clamp(-1, 1)) / 2
        return ((similarity.clamp(-1, 1) - 1) / self.options.temperature).exp()

    def _shares(self, raw: Tensor, index: Tensor, columns: Tensor) -> Tensor:
        """Return the weights (b, c) of each anchor's partner and neighbors, as float32 with the sum 1 per anchor."""
        shares = torch.where(index[:, None] == columns[None], 1.0, raw)
        return (shares / shares.sum(1, keepdim=True)).float()
