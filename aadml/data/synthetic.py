"""Synthetic audio-visual features: class-conditional, the modalities independent given the class or not, seeded."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from aadml.data.ave import AVE15
from aadml.feature_extraction.feature_file import DRAWN, FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.manifest import SPLITS


class Shape(TypedDict):
    """The size of a data set, and what its modalities share; see `synthetic`."""

    classes: int
    train: int | Sequence[int]
    valid: int | Sequence[int]
    test: int | Sequence[int]
    dimensions: NotRequired[tuple[int, int]]
    shared: NotRequired[float]


_TRAIN, _VALID, _TEST = zip(*AVE15.values(), strict=True)
SHAPES: dict[str, Shape] = {
    "vegas": {"classes": 10, "train": 20_234, "valid": 2_248, "test": 5_621},
    "ave": {"classes": len(AVE15), "train": _TRAIN, "valid": _VALID, "test": _TEST},
    "pairs": {"classes": 10, "train": 1000, "valid": 200, "test": 400, "dimensions": (64, 64), "shared": 0.5},
}
"""Arguments of `synthetic` by name: the sizes of published data sets, and pairs that share more than their class."""

_NUMBERS = {"shared": float, "difficulty": float, "seed": int}
"""What may be set behind a name of `SHAPES`."""

_LATENT = 24  # directions in which clips of one modality differ


@dataclass(frozen=True)
class _Plan:
    labels: NDArray[np.int64]
    splits: tuple[str, ...]


def synthetic(
    *,
    classes: int = 10,
    train: int | Sequence[int] = 1000,
    valid: int | Sequence[int] = 100,
    test: int | Sequence[int] = 200,
    dimensions: tuple[int, int] = (128, 1024),
    difficulty: float = 0.5,
    shared: float = 0.0,
    seed: int = 0,
) -> FeatureFile:
    """Draw a data set: a class sets a mean in each modality, and each modality adds its own spread to it.

    A clip of class y is, in modality m, `mixing_m (mean_m[y] + difficulty-scaled spread) + noise`. The spread is drawn
    for each modality alone, so audio and visual features of one clip share nothing but the class, or a share of its
    variance is drawn once for both: that is what tells a clip's partner from the others of its class. Two of three
    classes have two means, so that no single straight line parts them.

    Args:
        classes: how many, C.
        train: how many clips to fit on, spread evenly over the classes, or C counts.
        valid: the same for validation.
        test: the same for test.
        dimensions: of the audio and the visual features.
        difficulty: 0 (classes far apart) to 1 (hardly apart).
        shared: share of the variance within a class that both modalities of a clip have in common, 0 to 1.
        seed: same seed, same values.

    Returns:
        Features of "audio" (n, d_audio) and "visual" (n, d_visual), rows in shuffled order.

    Raises:
        InputError: fewer than one class, a dimension below one, counts that do not fit the classes.
    """
    if classes < 1 or min(dimensions) < 1:
        raise InputError(f"synthetic: classes {classes} and dimensions {dimensions} given; all must be positive")
    if not 0 <= difficulty <= 1:
        raise InputError(f"synthetic: difficulty {difficulty:g} given; 0 to 1 is possible")
    if not 0 <= shared <= 1 or seed < 0:
        raise InputError(f"synthetic: shared {shared:g}, seed {seed} given; 0 to 1, and 0 or more, are possible")
    *children, last = np.random.SeedSequence(seed).spawn(4)
    counts = {"train": train, "valid": valid, "test": test}
    plan = _plan(
        {split: _counts(counts[split], classes, split) for split in SPLITS}, np.random.default_rng(children[0])
    )
    if not len(plan.labels):
        raise InputError("synthetic: no clips asked for")
    common = np.random.default_rng(last).standard_normal((len(plan.labels), _LATENT), dtype=np.float32)
    spread = _Spread(0.35 + 1.9 * difficulty, shared, common)
    parameters = {"difficulty": difficulty, "seed": seed, **({"shared": shared} if shared else {})}
    return FeatureFile(
        features={
            modality: _draw(plan.labels, classes, dimension, spread, np.random.default_rng(child))
            for modality, dimension, child in zip(("audio", "visual"), dimensions, children[1:], strict=True)
        },
        labels=plan.labels,
        ids=tuple(f"synthetic-{number:06d}" for number in range(len(plan.labels))),
        splits=plan.splits,
        class_names=tuple(f"class {number}" for number in range(classes)),
        provenance={modality: {"extractor": DRAWN, "parameters": parameters} for modality in ("audio", "visual")},
    )


def _counts(wanted: int | Sequence[int], classes: int, split: str) -> tuple[int, ...]:
    if isinstance(wanted, int):
        return tuple(wanted // classes + (number < wanted % classes) for number in range(classes))
    if len(wanted) != classes or min(wanted) < 0:
        raise InputError(f"synthetic: {split} holds {len(wanted)} counts for {classes} classes; none may be negative")
    return tuple(wanted)


def _plan(counts: Mapping[str, tuple[int, ...]], generator: np.random.Generator) -> _Plan:
    labels = np.concatenate([np.repeat(np.arange(len(row)), row) for row in counts.values()]).astype(np.int64)
    splits = np.repeat(list(counts), [sum(row) for row in counts.values()])
    order = generator.permutation(len(labels))
    return _Plan(labels[order], tuple(splits[order].tolist()))


def synthetic_by_name(name: str) -> FeatureFile:
    """Draw the data set of a name: "ave", "pairs", or "pairs:shared=0.8,difficulty=0.3,seed=1".

    Raises:
        InputError: no such name, or no such number.
    """
    shape, _, settings = name.partition(":")
    drawn = partial(synthetic, **lookup(SHAPES, shape, "synthetic data"))
    numbers: dict[str, Any] = {}
    for setting in filter(None, settings.split(",")):
        key, _, value = setting.partition("=")
        kind = lookup(_NUMBERS, key, f"number of synthetic:{shape}")
        try:
            numbers[key] = kind(value)
        except ValueError:
            raise InputError(f"synthetic:{name}: {key} is '{value}'; a number is needed, as in {key}=0") from None
    return drawn(**numbers)


@dataclass(frozen=True)
class _Spread:
    """How clips of a class differ: by how much, and which share of the variance is `common` (n, latent) to both."""

    scale: float
    shared: float
    common: NDArray[np.float32]

    def of(self, own: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mix what a modality has alone (n, l) with what all have."""
        if self.shared:
            own = math.sqrt(1 - self.shared) * own + math.sqrt(self.shared) * self.common[:, : own.shape[1]]
        return np.asarray(np.float32(self.scale) * own)


def _draw(
    labels: NDArray[np.int64], classes: int, dimension: int, spread: _Spread, generator: np.random.Generator
) -> NDArray[np.float32]:
    latent = min(_LATENT, dimension)
    means = generator.standard_normal((classes, 2, latent), dtype=np.float32)
    means[::3, 1] = means[::3, 0]
    mixing = generator.standard_normal((latent, dimension), dtype=np.float32) / np.float32(np.sqrt(latent))
    sides = generator.integers(2, size=len(labels))
    points = means[labels, sides] + spread.of(generator.standard_normal((len(labels), latent), dtype=np.float32))
    noise = generator.standard_normal((len(labels), dimension), dtype=np.float32)
    return np.asarray(np.tanh(points / 2) @ mixing + np.float32(0.2) * noise, dtype=np.float32)
