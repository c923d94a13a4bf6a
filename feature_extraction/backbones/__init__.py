"""Extractors: what turns the sound or the frames of a clip into features. EXTRACTORS is the table, built on demand.

Two steps, two places. `prepare` runs in a decoding process, one clip at a time, where torch is not imported: whatever
is cheap or must shrink what is sent on (resizing, a log-mel front end, a whole weight-free descriptor). `describe` runs
in the main process on several clips at once: the network. A descriptor without weights has no `describe`: what
`prepare` returns is the description.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from feature_extraction.ground.options import completed, lookup, schema
from feature_extraction.media import Frames, Sound

Description = NDArray[np.float32]  # (t, d): one row a patch of sound or a frame


def mean_over_time(description: Description) -> NDArray[np.float32]:
    """Pool a description over time: (t, d) -> (d,), the mean in float64, kept as float32."""
    return np.asarray(description.mean(axis=0, dtype=np.float64), dtype=np.float32)


@dataclass(frozen=True)
class Extractor:
    """One way to turn a decoded clip into features.

    Attributes:
        name: its name in `EXTRACTORS`.
        modality: what it listens to or looks at.
        dimension: d of its descriptions, after `finish` where there is one.
        inputs: what is to be decoded.
        parameters: everything that decides its values, JSON-able: variant, front-end settings, `weights` (SHA-256,
            "untrained" or None for weight-free), versions of the packages it calls. It goes into the feature file and
            into the key of every record of a job.
        prepare: one decoded clip -> an array (t, ...); runs in a decoding process, so it must be picklable (a function
            of a module, or a `functools.partial` of one) and its module should not import torch.
        describe: prepared arrays of several clips -> a description (t, d) for each, in order; runs in the main process.
            A clip's description must not depend on the clips beside it, not in the last bit: a killed job that goes on
            forms other groups. So a network is called on batches of one fixed shape, padded. None: `prepare` gives the
            description itself.
        pool: description (t, d) -> (d,).
        minimum_seconds: a clip with less sound, or less video, is refused as `too-short`; 0 accepts anything of one
            sample or frame.
        batch_clips: at most so many clips are given to `describe` at once.
        finish: descriptions of all clips and their splits -> (n descriptions, named fitted arrays), for what is fitted
            on the training clips (a whitening). None: nothing is fitted.
    """

    name: str
    modality: Literal["audio", "visual"]
    dimension: int
    inputs: Sound | Frames
    parameters: Mapping[str, Any]
    prepare: Callable[[NDArray[Any]], NDArray[Any]]
    describe: Callable[[Sequence[NDArray[Any]]], list[Description]] | None = None
    pool: Callable[[Description], NDArray[np.float32]] = mean_over_time
    minimum_seconds: float = 0.0
    batch_clips: int = 16
    finish: (
        Callable[[list[Description], Sequence[str]], tuple[list[Description], dict[str, NDArray[np.float32]]]] | None
    ) = field(default=None)


# name -> (modality, "module:factory"); a factory takes keyword-only options and returns an Extractor
EXTRACTORS: dict[str, tuple[str, str]] = {
    "log-mel": ("audio", "feature_extraction.backbones.descriptors:log_mel"),
    "hog-color": ("visual", "feature_extraction.backbones.descriptors:hog_color"),
    "vggish": ("audio", "feature_extraction.backbones.vggish:vggish"),
    "vggish-hub": ("audio", "feature_extraction.backbones.vggish_hub:vggish_hub"),
    "inception-v3": ("visual", "feature_extraction.backbones.inception_v3:inception_v3"),
}


def options_of(name: str, modality: str) -> list[str]:
    """Name the options that an extractor takes.

    Raises:
        InputError: no such extractor for that modality.
    """
    return list(schema(_factory(name, modality)))


def extractor(name: str, modality: str, options: Mapping[str, Any] | None = None) -> Extractor:
    """Build an extractor of the table.

    Args:
        name: a key of `EXTRACTORS`.
        modality: `audio` or `visual`; the extractor must be of that modality.
        options: keyword-only options of its factory.

    Returns:
        The extractor, ready to use.

    Raises:
        InputError: no such extractor for that modality, or an option it does not take.
    """
    factory = _factory(name, modality)
    built = factory(**completed(factory, options or {}, name, name=name))
    assert isinstance(built, Extractor)
    return built


def _factory(name: str, modality: str) -> Callable[..., Any]:
    possible = {key: place for key, (kind, place) in EXTRACTORS.items() if kind == modality}
    module, _, function = lookup(possible, name, f"{modality} extractor").partition(":")
    factory: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return factory
