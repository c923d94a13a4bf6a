"""Connectors: small networks on frozen features that learn from pairs alone, without labels."""

import math
from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Interval
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.options import Width
from aadml.comparison.types import Clips, Modality
from aadml.losses import LOSSES
from aadml.methods.label_space.regression import need_vectors
from aadml.methods.learned import learned
from aadml.methods.learner import Batch, Epoch, Learner, Player
from aadml.methods.method import Context
from aadml.methods.networks import NETWORK, LabelSpaceEncoder, Network
from aadml.objective import Embedded
from aadml.objective.composition import Space, compose_objective
from aadml.objective.objective import Directions, Relation
from aadml.objective.sections import Section, named
from aadml.processes import group
from feature_extraction.ground.options import schema

LARGEST_SCALE = math.log(100)


class PairLearner(Learner):
    """Match clips with their own partners by any loss of pairs, on small networks of each modality's features.

    With the default loss this is the symmetric contrastive objective of ConVIRT (Zhang et al., MLHC 2022) and CLIP
    (Radford et al., ICML 2021), its temperature learned. A clip's own partner is its only positive; all other clips of
    the batch are negatives, but for those that are the same clip again.

    Args:
        context: dimensions of the modalities.
        network: the section of that name: hidden layers, dropout and input noise of each modality's network.
        dimension: size of the embedding.
        average: share that a running average of the networks, which is what embeds, keeps at each step; 0 for none.
        learn_temperature: train the temperature of a loss that has one, from where the loss's option begins.
        duplicates: of clips that share their features with another in some modality: "mask" keeps them from being each
            other's negatives, "keep" does not.
        label_aware: whether labels say who matches, instead of pairs alone.
        loss: the section of that name, as the two that follow.
        selection: of the pairs that count.
        directions: who meets whom; "all" ordered pairs of modalities by default.
    """

    takes_missing = True
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
        directions: Directions = ("all",),
    ) -> None:
        super().__init__()
        need_vectors(context, "pairs")
        self.encoders = nn.ModuleDict(
            {m: LabelSpaceEncoder(size, dimension, network) for m, size in context.dimensions.items()}
        )
        self.average = average
        self.averaged = deepcopy(self.encoders).requires_grad_(requires_grad=False) if average else None
        self.label_aware = label_aware and bool(context.need_classes("method.label_aware"))
        self.masked = duplicates == "mask"
        self.objective = compose_objective(
            Space(context.modalities, dimension, (0, *network.hidden)[-1], context.classes),
            loss=loss, selection=selection, directions=directions,
        )  # fmt: skip
        start = _temperature(loss) if learn_temperature else None
        self.log_scale = None if start is None else nn.Parameter(torch.tensor(-math.log(start)))
        if self.log_scale is not None:
            self.objective.losses = tuple(partial(self._tempered, one) for one in self.objective.losses)
        self._groups = torch.empty(0, dtype=torch.int64)

    def players(self) -> Mapping[str, Player]:
        """Train networks and temperature for one loss."""
        return {"all": Player([one for one in self.parameters() if one.requires_grad], self._loss)}

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Find the clips that stand in the training set more than once, before the first epoch."""
        if len(self._groups) != len(train):
            self._groups = same_clips(train) if self.masked else torch.arange(len(train))

    def calibrate(self, valid: Clips) -> None:
        """Take the last step into the average, before it is scored."""
        self._take_in()

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Map a batch onto the unit sphere (b, d) -> (b, dimension)."""
        networks = self.encoders if self.averaged is None else self.averaged
        return F.normalize(networks[modality](features), dim=1)

    def _take_in(self) -> None:
        """Move the average towards the networks as the last step left them."""
        if self.averaged is not None:
            with torch.no_grad():
                for kept, now in zip(self.averaged.parameters(), self.encoders.parameters(), strict=True):
                    kept.lerp_(now, 1 - self.average)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        self._take_in()
        if self.log_scale is not None:
            with torch.no_grad():  # the bound is held by resetting, as a clamp in the graph would have no way back
                self.log_scale.clamp_(0, LARGEST_SCALE)
        hidden = group.together(
            len(batch.labels), lambda: {m: self._encoder(m).features(values) for m, values in batch.features.items()}
        )
        heads = {m: self._encoder(m).predicted for m in hidden}
        vectors = {m: F.normalize(heads[m](values), dim=1) for m, values in hidden.items()}
        groups = batch.labels if self.label_aware else self._groups.to(batch.index.device)[batch.index]
        relation: Relation = "label" if self.label_aware else "id"
        embedded = Embedded(vectors, groups, batch.index, relation, features=hidden, heads=heads, present=batch.present)
        parts = self.objective(embedded, batch.generator)
        return parts if self.log_scale is None else {**parts, "scale": group.portion(self.log_scale.exp())}

    def _tempered(self, loss: Any, comparison: Any) -> Any:
        assert self.log_scale is not None
        return loss(comparison, temperature=torch.exp(-self.log_scale))

    def _encoder(self, modality: Modality) -> LabelSpaceEncoder:
        encoder = self.encoders[modality]
        assert isinstance(encoder, LabelSpaceEncoder)
        return encoder


def same_clips(clips: Clips) -> Tensor:
    """Number clips (n,) so that those that share their features with another in some modality have one number."""
    count = len(clips)
    owners = [clips.rows(m).cpu().numpy() for m in clips.modalities]
    codes = [
        np.unique(clips.matrix(m).cpu().numpy()[own], axis=0, return_inverse=True)[1]
        for m, own in zip(clips.modalities, owners, strict=True)
    ]
    nodes = np.concatenate([code.reshape(-1) + number * count for number, code in enumerate(codes)])
    clip = np.concatenate(owners)
    size = count * (len(codes) + 1)  # a node for each clip, and for each distinct vector of each modality
    edges = coo_array((np.ones(len(nodes), dtype=bool), (clip, count + nodes)), shape=(size, size))
    found = connected_components(edges, directed=False)[1][:count]
    return torch.from_numpy(found.astype(np.int64))


def _temperature(section: Section) -> float | None:
    """Give the temperature that a loss begins with; None where it has none."""
    chosen = named(section)
    options = schema(LOSSES[chosen.name])
    if "temperature" not in options:
        return None
    value = chosen.options.get("temperature", options["temperature"].default)
    assert isinstance(value, int | float)
    return float(value)


pairs = learned(PairLearner)
