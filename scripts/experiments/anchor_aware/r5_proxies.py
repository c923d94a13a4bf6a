"""Proxies that lack one of the parts that may explain reading R5, by docs/lab/experiments/r5_plan.md."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor

from aadml.comparison.features import Modality
from aadml.comparison.options import Share
from aadml.proxies.anchor_aware import AnchorAware
from aadml.proxies.attention import Attention
from aadml.proxies.contract import Encode, TrainingSet
from aadml.proxies.mixture import MIXTURE, MixtureOptions
from aadml.proxies.readings import Keys, batch_mixing
from aadml.proxies.unchanged import Unchanged


class OnClass(AnchorAware):
    """R5 in which an anchor attends to a part of the batch, chosen by class."""

    prefix = "on-class-"

    def refresh(self, train: TrainingSet) -> None:
        """Read the training set and its labels (n,)."""
        super().refresh(train)
        assert train.labels is not None  # all sets of the experiment have classes
        self._labels = train.labels

    def forward(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of a batch."""
        labels = self._labels[index]
        self._same = labels[:, None] == labels
        return super().forward(embeddings, index, encode)

    def attended(self, attention: Attention, inputs: Keys) -> Tensor:
        """Attend to the allowed clips of the batch."""
        return mixing(attention, inputs, self.allowed(self._same))

    def allowed(self, same: Tensor) -> Tensor:
        """Return which clips an anchor attends to (b, b), from whether two clips share their class (b, b)."""
        raise NotImplementedError


class OwnClass(OnClass):
    """R5 with the values of other classes masked out before the softmax."""

    prefix = "own-class-"

    def allowed(self, same: Tensor) -> Tensor:
        """Allow the clips of the anchor's class."""
        return same


class OtherClasses(OnClass):
    """R5 with the values of the own class masked out before the softmax, except for the clip itself."""

    prefix = "other-classes-"

    def allowed(self, same: Tensor) -> Tensor:
        """Allow the anchor and the clips of other classes."""
        return ~same | torch.eye(len(same), dtype=torch.bool, device=same.device)


class ShuffledValues(AnchorAware):
    """R5 with the values permuted over the batch; the weights are those of the unpermuted batch."""

    prefix = "shuffled-values-"

    def attended(self, attention: Attention, inputs: Keys) -> Tensor:
        """Attend to permuted values."""
        return batch_mixing(attention, replace(inputs, anchors=inputs.anchors[torch.randperm(len(inputs.anchors))]))


class NoKeys(AnchorAware):
    """R5 with uniform weights: all keys are equal."""

    prefix = "no-keys-"

    def attended(self, attention: Attention, inputs: Keys) -> Tensor:
        """Attend to the whole batch evenly."""
        return batch_mixing(attention, replace(inputs, keys=torch.zeros_like(inputs.keys)))


class Shrinkage(Unchanged):
    """Mixture of a clip and the mean of the batch, with one weight for all clips.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
        mixture: options of R5's mixture, see `MixtureOptions`.
        weight: weight of the mean.
    """

    prefix = "shrinkage-"

    def __init__(
        self,
        dimension: int,
        modalities: tuple[Modality, ...],
        *,
        mixture: MixtureOptions = MIXTURE,
        weight: Share = 0.5,
    ) -> None:
        super().__init__(dimension, modalities)
        self._mixture, self.aa_on, self.aa_mix, self._weight = mixture, mixture.aa_on, mixture.aa_mix, weight

    def forward(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of a batch."""
        return {m: self._mixture.joined(x, torch.lerp(x, x.mean(0), self._weight)) for m, x in embeddings.items()}


class Noise(Unchanged):
    """Clip plus Gaussian noise.

    Args:
        dimension: d of the embeddings.
        modalities: modalities of the embeddings.
        mixture: options of R5's mixture; `residual` has no effect.
        relative: root mean square of the noise, relative to that of the clips of the batch.
    """

    prefix = "noise-"

    def __init__(
        self,
        dimension: int,
        modalities: tuple[Modality, ...],
        *,
        mixture: MixtureOptions = MIXTURE,
        relative: Annotated[float, Interval(ge=0, le=100)] = 1.0,
    ) -> None:
        super().__init__(dimension, modalities)
        self.aa_on, self.aa_mix, self._relative = mixture.aa_on, mixture.aa_mix, relative

    def forward(
        self, embeddings: Mapping[Modality, Tensor], index: Tensor, encode: Encode | None = None
    ) -> dict[Modality, Tensor]:
        """Compute the proxies of a batch."""
        sizes = {m: self._relative * x.detach().square().mean().sqrt() for m, x in embeddings.items()}
        return {m: x + sizes[m] * torch.randn_like(x) for m, x in embeddings.items()}


def mixing(attention: Attention, inputs: Keys, allowed: Tensor) -> Tensor:
    """Return R5 in which anchor i attends to clip n only where `allowed` (b, b) is true at (i, n)."""
    count, width = inputs.anchors.shape
    values = inputs.anchors.expand(count, count, width)
    calls = []
    for j in range(inputs.keys.shape[1]):
        keys, mask = inputs.keys[:, j].expand(count, count, width), inputs.mask[:, j] & allowed
        calls.append(attention(inputs.queries, keys, values, mask)[:, 0])
    used = inputs.mask.any(0).to(inputs.anchors.dtype)
    return (torch.stack(calls) * used[:, None, None]).sum(0) / used.sum().clamp_min(1)
