"""Small networks on frozen features, trained only on pairs, without labels."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from annotated_types import Interval
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Width
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.options import removing
from aadml.methods.method import Context
from aadml.methods.networks import NETWORK, Network, encoders
from aadml.methods.pairwise.matching import Matching, on_sphere
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Player
from aadml.objective.composition import ALL_PAIRS, IDENTITY, LossSection, ProxySection, SelectionSection, Space
from aadml.objective.left_out import is_rebuilding
from aadml.objective.neighbor_positives import NEIGHBORS, Neighbors
from aadml.objective.objective import Directions
from aadml.proxies.contract import Proxy

NT_XENT = LossSection.of("nt-xent")
WARM_UP = 9
"""The decay at step t is at most (1 + t) / (1 + t + WARM_UP), so that the initial weights do not remain."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions:
    """Options of the embeddings of `pairs`.

    Attributes:
        dimension: size of the embedding.
        average: decay of a running average of the networks; 0 for no average. The decay is lower in the first steps
            (see WARM_UP). If there is an average, the averaged networks compute the embeddings.
    """

    dimension: Width = 64
    average: Annotated[float, Interval(ge=0, lt=1)] = 0.0


EMBEDDING = EmbeddingOptions()


@removing(learn_temperature=True, duplicates="mask", label_aware=False)
class PairLearner(Learner):
    """A network for each modality's features, trained to match partners by any loss of pairs.

    The default loss is the symmetric contrastive objective of ConVIRT (Zhang et al., MLHC 2022) and CLIP (Radford et
    al., ICML 2021), with a learned temperature. A clip's partner is its only positive, besides the positives of
    `neighbors`. All other clips of the batch are negatives, except for duplicates.

    Reference: Zhang et al., Contrastive learning of medical visual representations from paired images and text, MLHC
    2022, https://arxiv.org/abs/2010.00747
    Reference: Radford et al., Learning transferable visual models from natural language supervision, ICML 2021, https://arxiv.org/abs/2103.00020

    Args:
        context: dimensions of the modalities.
        network: the `network` section: hidden layers, dropout and input noise of each modality's network.
        embedding: see `EmbeddingOptions`.
        loss: the `loss` section; the next four arguments are sections too.
        selection: selection of the pairs in the loss.
        proxy: proxies that replace clips in training. Anchor-aware proxies use no labels in this method.
        neighbors: positives besides a clip's partner, determined without labels, and their weights.
        directions: (anchors, candidates); "all" ordered pairs of modalities by default.

    Raises:
        InputError: features other than vectors, only one modality, a loss that needs classes or features of a last
            layer, or sections that contradict each other (see `Matching`).
    """

    divides_batches = True

    def __init__(
        self,
        context: Context,
        *,
        network: Network = NETWORK,
        embedding: EmbeddingOptions = EMBEDDING,
        loss: LossSection = NT_XENT,
        selection: SelectionSection = ALL_PAIRS,
        proxy: ProxySection = IDENTITY,
        neighbors: Neighbors = NEIGHBORS,
        directions: Directions = ("all",),
    ) -> None:
        super().__init__()
        dimension, self.average = embedding.dimension, embedding.average
        self.encoders = encoders(context, "pairs", dimension, network)
        self.averaged = deepcopy(self.encoders).requires_grad_(requires_grad=False) if self.average else None
        self.average_steps: Tensor
        self.register_buffer("average_steps", torch.zeros((), dtype=torch.int64) if self.average else None)
        # models of earlier versions contain losses that are not trainable here
        untrained = ((0, *network.hidden)[-1], context.classes) if is_rebuilding() else ()
        self.matching = Matching(
            Space(context.modalities, dimension, *untrained),
            loss=loss, selection=selection, proxy=proxy, directions=directions, neighbors=neighbors, seed=context.seed,
        )  # fmt: skip
        self.needs_same_texts = self.matching.needs_same_texts
        self.takes_missing = self.matching.of_batch_alone  # bank, proxies and neighbors need all modalities

    def check_clips(self, train: Clips) -> None:
        """Raise InputError if there are too few training clips for the number of neighbors in the options."""
        self.matching.check_clips(train)

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Refresh duplicates, bank, neighbors and proxies, as far as the options need these (see `Matching`)."""
        self.matching.refresh(train, lambda clips, modality: self.embed_all(clips[modality], modality))

    def players(self) -> Mapping[str, Player]:
        """Return one player of all trainable parameters, which updates the average of the networks after each step."""
        return {name: replace(player, after_step=self._update_average) for name, player in super().players().items()}

    def proxy(self) -> Proxy | None:
        """Return the proxy of the loss of pairs; None if clips represent themselves."""
        return self.matching.objective.proxy

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Return unit-length embeddings (b, dimension) of features (b, d)."""
        networks = self.encoders if self.averaged is None else self.averaged
        return on_sphere(networks[modality](features))

    def _update_average(self) -> None:
        if self.averaged is not None:
            self.average_steps += 1
            share = (WARM_UP / (WARM_UP + 1 + self.average_steps)).clamp_min(1 - self.average)
            with torch.no_grad():
                for mean, current in zip(self.averaged.parameters(), self.encoders.parameters(), strict=True):
                    mean.lerp_(current, share.to(mean.dtype))

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        if self.average:  # models of earlier versions have no number of steps
            state_dict.setdefault(f"{prefix}average_steps", self.average_steps)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        features = batch.features
        vectors = group.together(len(batch.labels), lambda: {m: self._encode(f, m) for m, f in features.items()})
        return self.matching(vectors, batch, self._encode)

    def _encode(self, features: Any, modality: Modality) -> Tensor:
        return on_sphere(self.encoders[modality](features))


pairs = learned(PairLearner)
