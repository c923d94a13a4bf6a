"""Scaling of input features by statistics of only the training clips."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Matrix, Modality
from aadml.comparison.moments import moments, parts
from aadml.comparison.stored_rows import StoredRows
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Choice, OnlyWith, Tuning
from aadml.feature_extraction.ground.registry import lookup


def _none(values: Matrix) -> tuple[Tensor, Tensor]:
    return torch.zeros(values.shape[1]), torch.ones(values.shape[1])


def _standard(values: Matrix) -> tuple[Tensor, Tensor]:
    statistics = moments(values)
    # a constant column has no information, and its rounding errors must not be scaled up
    floor, deviation = 1e-6 * statistics.largest.clamp_min(1e-12), statistics.deviation
    return statistics.mean.float(), torch.where(deviation > floor, deviation, torch.ones_like(deviation)).float()


def _minmax(values: Matrix) -> tuple[Tensor, Tensor]:
    both = torch.stack([torch.stack([part.amin(0), part.amax(0)]) for part in parts(values)])
    low, high = both[:, 0].amin(0), both[:, 1].amax(0)
    return low, torch.where(high > low, high - low, torch.ones_like(high))


SCALINGS: dict[str, Callable[[Matrix], tuple[Tensor, Tensor]]] = {
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
        scaling: "none" leaves the features unchanged. "standard" scales each column to mean 0 and standard
            deviation 1 over the training clips; of a constant column, only the mean is subtracted. "minmax" scales
            each column of the training clips to the range from 0 to 1. "l2" scales every item to length 1.
        clamp: largest absolute value of a scaled feature, for "standard"; 0 for no limit.
    """

    scaling: ScalingName = "standard"
    clamp: Annotated[Clamp, OnlyWith("scaling", "standard")] = 5.0


STANDARD, UNSCALED = Inputs(), Inputs(scaling="none")


@dataclass(frozen=True)
class Scaling:
    """Scaling x -> (x - shift) / scale, clamped or divided by the norm of the item as `inputs` defines.

    Attributes:
        shift: modality -> (d,).
        scale: modality -> (d,), positive.
        inputs: options of the scaling.
    """

    shift: Mapping[Modality, Tensor]
    scale: Mapping[Modality, Tensor]
    inputs: Inputs = UNSCALED

    def features(self, features: Features, modality: Modality) -> Features:
        """Scale the features (n, d) of one modality; features computed batch by batch are not changed.

        Rows outside memory are scaled when they are read.
        """
        if isinstance(features, StoredRows):
            return features.changed(partial(self.scaled, modality=modality))
        return self.scaled(features, modality) if isinstance(features, Tensor) else features

    def scaled(self, features: Tensor, modality: Modality) -> Tensor:
        """Scale the features (n, d) of one modality."""
        # in place, for the memory of a single copy: a million clips are gigabytes
        scaled = (features - self.shift[modality]).div_(self.scale[modality])
        clamp = self.inputs.clamp if self.inputs.scaling == "standard" else 0.0
        scaled = scaled.clamp_(-clamp, clamp) if clamp else scaled
        return F.normalize(scaled, dim=1) if self.inputs.scaling == "l2" else scaled

    def clips(self, clips: Clips) -> Clips:
        """Return `clips` with scaled features; features computed batch by batch are not changed."""
        return replace(clips, features={m: self.features(f, m) for m, f in clips.features.items()})

    def state(self) -> dict[str, Tensor]:
        """Return the tensors (d,) "shift.MODALITY" and "scale.MODALITY" of every modality with fitted statistics."""
        shift = {f"shift.{m}": value for m, value in self.shift.items()}
        return shift | {f"scale.{m}": value for m, value in self.scale.items()}


def fit_scaling(train: Clips, inputs: Inputs = STANDARD) -> Scaling:
    """Fit the scaling of the inputs on the training clips.

    Args:
        train: clips whose statistics are computed.
        inputs: options of the scaling.

    Returns:
        The scaling, for any split.

    Raises:
        InputError: no training clip has features of one of the modalities, or the name of the scaling is unknown.
    """
    statistics = lookup(SCALINGS, inputs.scaling, "scaling")
    fitted = {m: statistics(_present(train, m)) for m in train.modalities if isinstance(train[m], Matrix)}
    shift = {m: values[0] for m, values in fitted.items()}
    scale = {m: values[1] for m, values in fitted.items()}
    return Scaling(shift, scale, inputs)


def _present(train: Clips, modality: Modality) -> Matrix:
    """Return the features (m, d) of the m clips that have the modality.

    Raises:
        InputError: no clip has the modality.
    """
    rows = train.rows(modality)
    if not len(rows):
        raise InputError(
            f"no training clip has {modality} features; omit the modality (list the others: --set modalities=A,B), or "
            f"pass training clips with {modality} features"
        )
    features = train.vectors(modality)
    if len(rows) == len(train):
        return features
    return features[rows] if isinstance(features, Tensor) else features.select(rows)


def load_scaling(state: Mapping[str, Tensor], inputs: Inputs) -> Scaling:
    """Build a scaling from the result of `Scaling.state` and the `inputs` section."""
    shift, scale = (
        {key.removeprefix(f"{part}."): value for key, value in state.items() if key.startswith(f"{part}.")}
        for part in ("shift", "scale")
    )
    return Scaling(shift, scale, inputs)
