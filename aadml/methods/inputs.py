"""Scaling of input features by statistics of the training clips alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.types import Clips, Features, Modality
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.markers import Choice, Tuning
from feature_extraction.ground.tables import lookup

_NUMBERS_AT_ONCE = 1 << 24
"""Of which statistics are taken in double precision: 128 MiB."""


@dataclass(frozen=True)
class Scaling:
    """x -> (x - shift) / scale, clamped; then, for "l2", each item divided by its length.

    Attributes:
        shift: modality -> (d,).
        scale: modality -> (d,), positive.
        clamp: largest absolute value let through; 0 lets everything through.
        unit: whether items are brought to length 1.
    """

    shift: Mapping[Modality, Tensor]
    scale: Mapping[Modality, Tensor]
    clamp: float = 0.0
    unit: bool = False

    def features(self, features: Features, modality: Modality) -> Features:
        """Scale the features (n, d) of one modality; what is made batch by batch passes unchanged."""
        if not isinstance(features, Tensor):
            return features
        if modality not in self.shift:
            scaled = features.clamp(-self.clamp, self.clamp) if self.clamp else features
        else:  # in the place of one copy: a million clips are gigabytes
            scaled = (features - self.shift[modality]).div_(self.scale[modality])
            scaled = scaled.clamp_(-self.clamp, self.clamp) if self.clamp else scaled
        return F.normalize(scaled, dim=1) if self.unit else scaled

    def clips(self, clips: Clips) -> Clips:
        """Scale every modality of `clips`."""
        return replace(clips, features={m: self.features(f, m) for m, f in clips.features.items()})

    def state(self) -> dict[str, Tensor]:
        """Return the fitted statistics as tensors."""
        shift = {f"shift.{m}": value for m, value in self.shift.items()}
        return shift | {f"scale.{m}": value for m, value in self.scale.items()}


def _none(values: Tensor) -> tuple[Tensor, Tensor]:
    return torch.zeros(values.shape[1]), torch.ones(values.shape[1])


def _standard(values: Tensor) -> tuple[Tensor, Tensor]:
    columns = max(1, _NUMBERS_AT_ONCE // max(1, len(values)))
    parts = [_standard_of(part.double()) for part in values.split(columns, 1)]
    return torch.cat([mean for mean, _ in parts]), torch.cat([deviation for _, deviation in parts])


def _standard_of(exact: Tensor) -> tuple[Tensor, Tensor]:
    deviation = exact.std(0, correction=0)
    # a constant column carries nothing and must not be blown up by rounding
    floor = 1e-6 * exact.abs().amax(0).clamp_min(1e-12)
    return exact.mean(0).float(), torch.where(deviation > floor, deviation, torch.ones_like(deviation)).float()


def _minmax(values: Tensor) -> tuple[Tensor, Tensor]:
    low, high = values.amin(0), values.amax(0)
    return low, torch.where(high > low, high - low, torch.ones_like(high))


SCALINGS: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "none": _none,
    "standard": _standard,
    "minmax": _minmax,
    "l2": _none,
}
ScalingName = Annotated[str, Choice(SCALINGS), Tuning("none", "standard")]
Clamp = Annotated[float, Interval(ge=0, le=1e6)]


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The `inputs` section of a config.

    Attributes:
        scaling: "none", "standard" (mean 0, deviation 1; a constant column becomes 0), "minmax" (to 0..1), "l2".
        clamp: with "standard", the largest number of standard deviations let through; 0 for no limit.
    """

    scaling: ScalingName = "standard"
    clamp: Clamp = 5.0


STANDARD = Inputs()


def fit_scaling(train: Clips, inputs: Inputs = STANDARD) -> Scaling:
    """Fit the scaling of the inputs on the training clips.

    Args:
        train: the clips to take statistics from.
        inputs: which scaling.

    Returns:
        The scaling, to be applied to any split.
    """
    statistics = lookup(SCALINGS, inputs.scaling, "scaling")
    fitted = {m: statistics(_there(train, m)) for m in train.modalities if isinstance(train[m], Tensor)}
    shift = {m: values[0] for m, values in fitted.items()}
    scale = {m: values[1] for m, values in fitted.items()}
    return _scaling(shift, scale, inputs)


def _there(train: Clips, modality: Modality) -> Tensor:
    """Give the features (m, d) of the clips that have a modality.

    Raises:
        InputError: none has.
    """
    rows = train.rows(modality)
    if not len(rows):
        raise InputError(f"no training clip has {modality}; leave it out (--modalities)")
    return train.matrix(modality) if len(rows) == len(train) else train.matrix(modality)[rows]


def load_scaling(state: Mapping[str, Tensor], inputs: Inputs) -> Scaling:
    """Rebuild a scaling from `Scaling.state` and the options it was fitted with."""
    shift, scale = (
        {key.removeprefix(f"{part}."): value for key, value in state.items() if key.startswith(f"{part}.")}
        for part in ("shift", "scale")
    )
    return _scaling(shift, scale, inputs)


def _scaling(shift: Mapping[Modality, Tensor], scale: Mapping[Modality, Tensor], inputs: Inputs) -> Scaling:
    return Scaling(shift, scale, inputs.clamp if inputs.scaling == "standard" else 0.0, inputs.scaling == "l2")
