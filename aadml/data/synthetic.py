"""Synthetic audio-visual features: class-conditional, with modalities independent or correlated given the class."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from aadml.comparison.options import Seed
from aadml.data.ave import AVE15
from aadml.feature_extraction.feature_file.content import DRAWN, FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import schema
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.ground.validation import checked
from aadml.feature_extraction.manifest import SPLITS

_NUMBERS = {"shared": float, "difficulty": float, "seed": int}
"""Name of a number that may follow a name of `SHAPES` -> its type."""

_LATENT = 24  # dimensions of the latent values of a modality


Share = Annotated[float, Interval(ge=0, le=1)]


def synthetic(
    *,
    classes: int = 10,
    train: int | Sequence[int] = 1000,
    valid: int | Sequence[int] = 100,
    test: int | Sequence[int] = 200,
    dimensions: tuple[int, int] = (128, 1024),
    difficulty: Share = 0.5,
    shared: Share = 0.0,
    seed: Seed = 0,
) -> FeatureFile:
    """Draw a synthetic data set of audio and visual features that depend on the class of a clip.

    The features of a clip of class y in modality m are

        tanh((mean_m[y] + (0.35 + 1.9 difficulty) spread) / 2) mixing_m + 0.2 noise

    with normally distributed means, spread, mixing and noise. By default, the spread is drawn separately for each
    modality, so that audio and visual features of a clip share only the class. With `shared`, that share of the
    variance of the spread is common to the two modalities, so that clips of a class can be matched. Two of three
    classes have two means per modality, so that the classes are not linearly separable.

    Args:
        classes: number of classes, C.
        train: number of train clips, divided evenly among the classes, or C counts.
        valid: number of validation clips, as for `train`.
        test: number of test clips, as for `train`.
        dimensions: dimensions of the audio and the visual features.
        difficulty: 0 (classes far apart) to 1 (classes hardly apart).
        shared: share of the variance within a class that is common to both modalities of a clip, 0 to 1.
        seed: seed of all draws; equal seeds produce equal values.

    Returns:
        Features of "audio" (n, d_audio) and "visual" (n, d_visual), with the rows in random order.
    """
    *children, last = np.random.SeedSequence(seed).spawn(4)
    rows = [_counts(count, classes) for count in (train, valid, test)]
    labels = np.concatenate([np.repeat(np.arange(classes), row) for row in rows]).astype(np.int64)
    order = np.random.default_rng(children[0]).permutation(len(labels))
    splits = np.repeat(SPLITS, [sum(row) for row in rows])[order]
    labels = labels[order]
    common = shared, np.random.default_rng(last).standard_normal((len(labels), _LATENT), dtype=np.float32)
    scale = 0.35 + 1.9 * difficulty
    parameters = {"difficulty": difficulty, "seed": seed, **({"shared": shared} if shared else {})}
    return FeatureFile(
        features={
            modality: _draw(labels, classes, dimension, scale, common, np.random.default_rng(child))
            for modality, dimension, child in zip(("audio", "visual"), dimensions, children[1:], strict=True)
        },
        labels=labels,
        ids=tuple(f"synthetic-{number:06d}" for number in range(len(labels))),
        splits=tuple(splits.tolist()),
        class_names=tuple(f"class {number}" for number in range(classes)),
        provenance={modality: {"extractor": DRAWN, "parameters": parameters} for modality in ("audio", "visual")},
    )


_TRAIN, _VALID, _TEST = zip(*AVE15.values(), strict=True)
SHAPES = {
    "vegas": partial(synthetic, classes=10, train=20_234, valid=2_248, test=5_621),
    "ave": partial(synthetic, classes=len(AVE15), train=_TRAIN, valid=_VALID, test=_TEST),
    "pairs": partial(synthetic, classes=10, train=1000, valid=200, test=400, dimensions=(64, 64), shared=0.5),
}
"""Name -> function that draws a data set of the size of a published data set, or pairs (see `shared`)."""


def _counts(count: int | Sequence[int], classes: int) -> list[int]:
    if isinstance(count, int):
        return [count // classes + (number < count % classes) for number in range(classes)]
    return list(count)


def synthetic_by_name(name: str) -> FeatureFile:
    """Draw a data set by name ("ave", "pairs"), with optional settings ("pairs:shared=0.8,difficulty=0.3,seed=1").

    Raises:
        InputError: the data set or a setting is unknown, or the value of a setting is invalid or out of its range.
    """
    shape, _, settings = name.partition(":")
    drawn = lookup(SHAPES, shape, "synthetic data")
    for setting in filter(None, settings.split(",")):
        key, _, value = setting.partition("=")
        kind = lookup(_NUMBERS, key, f"number of synthetic:{shape}")
        try:
            number = kind(value)
        except ValueError:
            raise InputError(
                f"synthetic:{name}: {key} is '{value}'; pass a {'whole ' * (kind is int)}number, as in {key}=0"
            ) from None
        drawn = partial(drawn, **{key: checked(schema(synthetic)[key].kind, number, f"synthetic:{name}: {key}")})
    return drawn()


def _draw(
    labels: NDArray[np.int64],
    classes: int,
    dimension: int,
    scale: float,
    common: tuple[float, NDArray[np.float32]],
    generator: np.random.Generator,
) -> NDArray[np.float32]:
    """Draw the features (n, dimension) of a modality.

    Args:
        labels: (n,) classes.
        classes: number of classes.
        dimension: dimension of the features.
        scale: scale of the spread within a class.
        common: share of the variance that all modalities have in common, and the common values (n, latent).
        generator: source of the randomness.
    """
    latent = min(_LATENT, dimension)
    means = generator.standard_normal((classes, 2, latent), dtype=np.float32)
    means[::3, 1] = means[::3, 0]
    mixing = generator.standard_normal((latent, dimension), dtype=np.float32) / np.float32(np.sqrt(latent))
    sides = generator.integers(2, size=len(labels))
    spread = generator.standard_normal((len(labels), latent), dtype=np.float32)
    shared, values = common
    if shared:
        spread = math.sqrt(1 - shared) * spread + math.sqrt(shared) * values[:, :latent]
    points = means[labels, sides] + np.float32(scale) * spread
    noise = generator.standard_normal((len(labels), dimension), dtype=np.float32)
    return np.asarray(np.tanh(points / 2) @ mixing + np.float32(0.2) * noise, dtype=np.float32)
