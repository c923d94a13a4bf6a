"""Connectors: small networks on frozen features that learn from pairs alone, without labels."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Annotated, Any, Literal

import torch
from annotated_types import Interval
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Width
from aadml.comparison.processes import group
from aadml.methods.method import Context
from aadml.methods.networks import NETWORK, LabelSpaceEncoder, Network
from aadml.methods.pairwise.matching import Matching, on_sphere
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Player
from aadml.objective.composition import Space
from aadml.objective.neighbor_positives import NEIGHBORS, Neighbors
from aadml.objective.objective import Directions
from aadml.objective.sections import Section


class PairLearner(Learner):
    """Match clips with their own partners by any loss of pairs, on small networks of each modality's features.

    With the default loss this is the symmetric contrastive objective of ConVIRT (Zhang et al., MLHC 2022) and CLIP
    (Radford et al., ICML 2021), its temperature learned. A clip's own partner is its only positive, but for those that
    `neighbors` adds; all other clips of the batch are negatives, but for those that are the same clip again.

    Args:
        context: dimensions of the modalities.
        network: the section of that name: hidden layers, dropout and input noise of each modality's network.
        dimension: size of the embedding.
        average: share that a running average of the networks, which is what embeds, keeps at each step; 0 for none.
        learn_temperature: train the temperature of a loss that has one, from where the loss's option begins.
        duplicates: of clips that share their features with another in some modality: "mask" keeps them from being each
            other's negatives, "keep" does not.
        label_aware: whether labels say who matches, instead of pairs alone.
        loss: the section of that name, as the four that follow.
        selection: of the pairs that count.
        proxy: as whom clips are seen while training: anchor-aware proxies know no labels here.
        neighbors: which clips besides the own partner are positives, found without labels, and how much each counts.
        directions: who meets whom; "all" ordered pairs of modalities by default.
    """

    divides_batches = True

    def __init__(
        self,
        context: Context,
        *,
        network: Network = NETWORK,
        dimension: Width = 64,
        average: Annotated[float, Interval(ge=0, lt=1)] = 0.0,
        learn_temperature: bool = True,
        duplicates: Literal["mask", "keep"] = "mask",
        label_aware: bool = False,
        loss: Section = "nt-xent",
        selection: Section = "all",
        proxy: Section = "identity",
        neighbors: Neighbors = NEIGHBORS,
        directions: Directions = ("all",),
    ) -> None:
        super().__init__()
        context.need_vectors("pairs")
        self.encoders = nn.ModuleDict(
            {m: LabelSpaceEncoder(size, dimension, network) for m, size in context.dimensions.items()}
        )
        self.average = average
        self.averaged = deepcopy(self.encoders).requires_grad_(requires_grad=False) if average else None
        by_label = label_aware and bool(context.need_classes("method.label_aware"))
        self.matching = Matching(
            Space(context.modalities, dimension, (0, *network.hidden)[-1], context.classes),
            loss=loss, selection=selection, proxy=proxy, directions=directions, neighbors=neighbors,
            learn_temperature=learn_temperature, masked=duplicates == "mask", relation="label" if by_label else "id",
            seed=context.seed,
        )  # fmt: skip

    @property
    def takes_missing(self) -> bool:
        """Tell whether clips may lack a modality: not where a bank, proxies or neighbors are made of all of them."""
        return self.matching.of_batch_alone

    @property
    def needs_same_texts(self) -> str:
        """Say why the texts of its training clips may not change from epoch to epoch; "" where they may."""
        return self.matching.needs_same_texts

    def check_clips(self, train: Clips) -> None:
        """Refuse training clips of which none has as many neighbors as are asked for."""
        self.matching.check_clips(train)

    def players(self) -> Mapping[str, Player]:
        """Train networks and temperature for one loss."""
        return {"all": Player([one for one in self.parameters() if one.requires_grad], self._loss)}

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Find the clips that stand in the training set more than once, and everybody's neighbors."""
        self.matching.refresh(train, lambda clips, modality: self.embed_all(clips[modality], modality))

    def calibrate(self, valid: Clips) -> None:
        """Take the last step into the average, before it is scored."""
        self._take_in()

    def proxy(self) -> nn.Module | None:
        """Give the proxy as which clips are seen."""
        return self.matching.objective.proxy

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Map a batch onto the unit sphere (b, d) -> (b, dimension)."""
        networks = self.encoders if self.averaged is None else self.averaged
        return on_sphere(networks[modality](features))

    def _take_in(self) -> None:
        """Move the average towards the networks as the last step left them."""
        if self.averaged is not None:
            with torch.no_grad():
                for kept, now in zip(self.averaged.parameters(), self.encoders.parameters(), strict=True):
                    kept.lerp_(now, 1 - self.average)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        self._take_in()
        hidden = group.together(
            len(batch.labels), lambda: {m: self._encoder(m).features(values) for m, values in batch.features.items()}
        )
        heads = {m: self._encoder(m).predicted for m in hidden}
        vectors = {m: on_sphere(heads[m](values)) for m, values in hidden.items()}
        parts: dict[str, Tensor] = self.matching(vectors, batch, self._encode, features=hidden, heads=heads)
        return parts

    def _encode(self, features: Any, modality: Modality) -> Tensor:
        return on_sphere(self._encoder(modality)(features))

    def _encoder(self, modality: Modality) -> LabelSpaceEncoder:
        encoder = self.encoders[modality]
        assert isinstance(encoder, LabelSpaceEncoder)
        return encoder


pairs = learned(PairLearner)
