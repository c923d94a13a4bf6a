"""Extractors of features from the sound, the frames or the text of a clip. EXTRACTORS lists extractors by name.

An extractor has two steps. `prepare` runs in a decoding process on one clip, without torch. This step consists of
cheap computations, and of computations that reduce the data, such as resizing, a log-mel front end or a complete
descriptor without weights. `describe` runs the network in the main process on several clips. In an extractor
without `describe`, `prepare` returns the features over time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Protocol

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from aadml.feature_extraction.ground.contracts import require_result
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.options import OptionValues, keywords, schema
from aadml.feature_extraction.ground.registry import Registry, lookup
from aadml.feature_extraction.ground.validation import checked_options
from aadml.feature_extraction.media import Frames, Sound, Text
from aadml.feature_extraction.weights.hub_names import expanded

Description = NDArray[np.float32]  # features over time (t, d): one row per patch of sound or frame
FrameRate = Annotated[float, Interval(gt=0, le=1000)]
"""Frames per second that visual extractors use."""


def every(step: float, rows: int, _: float) -> NDArray[np.float64]:
    """Compute the start times (rows,), in seconds, of rows at intervals of `step` seconds; the first time is 0.

    Extractors with a fixed step use this function for `Extractor.begins`.
    """
    return np.arange(rows, dtype=np.float64) * np.float64(step)


def mean_over_time(description: Description) -> NDArray[np.float32]:
    """Compute the mean (d,) of features (t, d) over time, in float64, and return the mean as float32."""
    return np.asarray(description.mean(axis=0, dtype=np.float64), dtype=np.float32)


class Fit(Protocol):
    """Transformation that is fitted to the features of the training clips and applied to the features of all clips."""

    def arrays(self, train: Iterable[Description]) -> dict[str, NDArray[np.float32]]:
        """Fit the transformation to the features of the training clips and return the fitted arrays by name.

        Args:
            train: features (t_i, d) of each training clip; read once.
        """
        ...

    def transformation(self, arrays: Mapping[str, NDArray[np.float32]]) -> Callable[[Description], Description]:
        """Return the function from features (t, d) to transformed features (t, k).

        Args:
            arrays: result of the method `arrays`.
        """
        ...


@dataclass(frozen=True)
class Extractor:
    """Method that computes the features of a decoded clip.

    Attributes:
        name: name of the extractor in `EXTRACTORS`, or its import path.
        modality: audio, visual or text.
        dimension: dimension of the features, after `fit` if `fit` is not None.
        inputs: kind of data to decode.
        parameters: all settings that determine the values, as JSON, such as variant, front end and precision.
            The entry `weights` is a SHA-256, "untrained", or None if there are no weights. Name and parameters
            identify the features that a model is trained on.
        about: further provenance that does not change the features: versions of packages, names of weight files.
            `parameters` and `about` are stored in the feature file and are part of the key of every record of a
            job. The entry `source` of `about`, if present, contains options for building the extractor of a trained
            model again.
        prepare: function from one decoded clip to an array (t, ...). The function runs in a decoding process and
            must therefore be picklable: a module-level function, or a `functools.partial` of such a function. The
            module of the function should not import torch.
        describe: function from the prepared arrays of several clips to the features over time (t, d) of each clip,
            in order. The function runs in the main process. The features of a clip must not depend on other clips,
            to the last bit, because a resumed job divides its clips differently into batches. Networks are
            therefore called on padded batches of one fixed shape. None if `prepare` returns the features.
        pool: function from features over time (t, d) to features of the clip (d,). Without `describe`, the function
            runs in a decoding process, like `prepare`, unless features over time are kept.
        begins: function from the number of rows and the seconds of the clip to the start times (rows,), in seconds
            after the first sample or frame of the clip. If None, the rows start at the times of the frames, or of
            equal parts of the sound.
        minimum_seconds: shortest accepted sound or video, in seconds; shorter clips fail with `too-short`. 0
            accepts one sample or frame.
        batch_clips: maximum number of clips in a call of `describe`.
        fit: transformation that is fitted to the features of the training clips and applied to all clips, such as
            a whitening; None for no transformation.
    """

    name: str
    modality: str
    dimension: int
    inputs: Sound | Frames | Text
    parameters: JsonObject
    prepare: Callable[[NDArray[Any]], NDArray[Any]]
    describe: Callable[[Sequence[NDArray[Any]]], list[Description]] | None = None
    pool: Callable[[Description], NDArray[np.float32]] = mean_over_time
    begins: Callable[[int, float], NDArray[np.float64]] | None = None
    minimum_seconds: float = 0.0
    batch_clips: int = 16
    about: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    fit: Fit | None = None

    def times(self, rows: int, seconds: float) -> NDArray[np.float64]:
        """Compute the start times (rows,) of the rows of a clip's features.

        Args:
            rows: number of rows.
            seconds: length of the clip in seconds.

        Returns:
            (rows,) float64, in seconds after the first sample or frame of the clip.
        """
        if self.begins is not None:
            return self.begins(rows, seconds)
        if isinstance(self.inputs, Frames):
            return np.arange(rows, dtype=np.float64) / np.float64(self.inputs.frames_per_second)
        return np.arange(rows, dtype=np.float64) * np.float64(seconds / max(rows, 1))


class ExtractorFactory(Protocol):
    """Function that builds an extractor of one modality from options."""

    def __call__(self, **options: Any) -> Extractor:
        """Build an extractor; `options` are the options of the factory."""
        ...


_BUILT_IN = {
    "audio": {
        "hf-audio": "aadml.feature_extraction.hub.sound:hf_audio",
        "log-mel": "aadml.feature_extraction.backbones.descriptors:log_mel",
        "vggish": "aadml.feature_extraction.backbones.vggish:vggish",
        "vggish-hub": "aadml.feature_extraction.backbones.vggish_hub:vggish_hub",
    },
    "visual": {
        "hf-visual": "aadml.feature_extraction.hub.pictures:hf_visual",
        "hog-color": "aadml.feature_extraction.backbones.descriptors:hog_color",
        "inception-v3": "aadml.feature_extraction.backbones.inception_v3:inception_v3",
    },
    "text": {"hf-text": "aadml.feature_extraction.hub.texts:hf_text"},
}

EXTRACTORS: dict[str, Registry[ExtractorFactory]] = {
    modality: Registry(
        f"{modality} extractor",
        names,
        group="aadml.extractors",
        of="aadml.feature_extraction.backbones:ExtractorFactory",
    )
    for modality, names in _BUILT_IN.items()
}
"""Modality -> name -> `(*, options) -> Extractor`. The extractors of an installed package are listed for every
modality; `Extractor.modality` is their actual modality."""


def options_of(name: str, modality: str) -> list[str]:
    """Return the names of the options of the extractor `name` of a modality.

    Raises:
        InputError: the modality has no such extractor, or the extractor cannot be imported.
    """
    return list(schema(_factory(expanded(name, modality)[0], modality)))


def extractor(name: str, modality: str, options: JsonObject | None = None) -> Extractor:
    """Build an extractor by its name.

    Args:
        name: an entry of `EXTRACTORS[modality]`, an import path, or `hf:MODEL[@revision][#pooling]`.
        modality: `audio`, `visual` or `text`; the extractor must have this modality.
        options: keyword-only options of the extractor's factory.

    Raises:
        InputError: an unknown extractor, an invalid option or value, or an extractor that cannot be built or has
            another modality.
    """
    name, from_name = expanded(name, modality)
    chosen, factory = {**from_name, **(options or {})}, _factory(name, modality)
    values = OptionValues(**{str(key): value for key, value in chosen.items()})
    settings = keywords(factory, checked_options(factory, values, name, name=name))
    try:
        built = factory(**settings)
    except (ImportError, OSError) as error:
        raise InputError(
            f"{name} cannot be built ({type(error).__name__}: {cause(error)}); install the missing package, or "
            "restore a readable copy of the file"
        ) from error
    require_result(built, ExtractorFactory, f"{modality} extractor", name)
    if built.modality != modality:
        raise InputError(f"{name} computes {built.modality} features; pass an extractor of {modality} features")
    # the name with which the extractor can be built again
    return built if built.name in EXTRACTORS[modality] else replace(built, name=name)


def _factory(name: str, modality: str) -> ExtractorFactory:
    return lookup(EXTRACTORS[modality], name, f"{modality} extractor")
