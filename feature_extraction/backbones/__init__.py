"""Extractors: what turns the sound, the frames or the text of a clip into features. EXTRACTORS are the tables.

Two steps, two places. `prepare` runs in a decoding process, one clip at a time, where torch is not imported: whatever
is cheap or must shrink what is sent on (resizing, a log-mel front end, a whole weight-free descriptor). `describe` runs
in the main process on several clips at once: the network. A descriptor without weights has no `describe`: what
`prepare` returns is the description.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.options import schema
from aadml.feature_extraction.ground.registry import Registry, lookup
from aadml.feature_extraction.ground.validation import checked_options
from aadml.feature_extraction.weights.hub_names import expanded

if TYPE_CHECKING:
    from aadml.feature_extraction.media import Frames, Sound, Text

Description = NDArray[np.float32]  # (t, d): one row a patch of sound or a frame
FrameRate = Annotated[float, Interval(gt=0, le=1000)]
"""How many frames of each second are described, an option of visual extractors."""


def every(step: float, rows: int, _: float) -> NDArray[np.float64]:
    """Say when rows begin that follow each other by so many seconds; `begins` of extractors with a fixed step."""
    return np.arange(rows, dtype=np.float64) * np.float64(step)


def mean_over_time(description: Description) -> NDArray[np.float32]:
    """Pool a description over time: (t, d) -> (d,), the mean in float64, kept as float32."""
    return np.asarray(description.mean(axis=0, dtype=np.float64), dtype=np.float32)


class Fit(Protocol):
    """What is fitted to the descriptions of the training clips, and applied to those of all clips."""

    def arrays(self, train: Iterable[Description]) -> dict[str, NDArray[np.float32]]:
        """Fit: descriptions (t_i, d) of the training clips, read once -> the named arrays that the file keeps."""
        ...

    def transformation(self, arrays: Mapping[str, NDArray[np.float32]]) -> Callable[[Description], Description]:
        """Give what turns any description (t, d) into its features (t, k)."""
        ...


@dataclass(frozen=True)
class Extractor:
    """One way to turn a decoded clip into features.

    Attributes:
        name: its name in `EXTRACTORS`, or its place.
        modality: what it listens to, looks at or reads: audio, visual or text.
        dimension: d of its features, after `fit` where there is one.
        inputs: what is to be decoded.
        parameters: everything that decides its values, JSON-able: variant, front-end settings, precision, `weights`
            (SHA-256, "untrained" or None for weight-free). With the name it is the fingerprint by which a model knows
            the features it was trained on.
        about: what is said beside it and makes no other features: versions of the packages it calls, names of weight
            files. Both go into the feature file and into the key of every record of a job. Its `source` names options
            by which a model, trained on the features, finds the same extractor again.
        prepare: one decoded clip -> an array (t, ...); runs in a decoding process, so it must be picklable (a function
            of a module, or a `functools.partial` of one) and its module should not import torch.
        describe: prepared arrays of several clips -> a description (t, d) for each, in order; runs in the main process.
            A clip's description must not depend on the clips beside it, not in the last bit: a killed job that goes on
            forms other groups. So a network is called on batches of one fixed shape, padded. None: `prepare` gives the
            description itself.
        pool: description (t, d) -> (d,).
        begins: (rows, seconds of the clip) -> when each row of a description begins, in seconds after the clip's first
            sample or frame: (rows,). None: frames as they were kept; sound in parts of equal length.
        minimum_seconds: a clip with less sound, or less video, is refused as `too-short`; 0 accepts anything of one
            sample or frame.
        batch_clips: at most so many clips are given to `describe` at once.
        fit: what is fitted to the descriptions of the training clips and then applied to all (a whitening). None:
            nothing is fitted.
    """

    name: str
    modality: str
    dimension: int
    inputs: "Sound | Frames | Text"
    parameters: JsonObject
    prepare: Callable[[NDArray[Any]], NDArray[Any]]
    describe: Callable[[Sequence[NDArray[Any]]], list[Description]] | None = None
    pool: Callable[[Description], NDArray[np.float32]] = mean_over_time
    begins: Callable[[int, float], NDArray[np.float64]] | None = None
    minimum_seconds: float = 0.0
    batch_clips: int = 16
    about: JsonObject = field(default_factory=dict)
    fit: Fit | None = None

    def times(self, rows: int, seconds: float) -> NDArray[np.float64]:
        """Say when each of the rows of a description of a clip of so many seconds begins: (rows,)."""
        if self.begins is not None:
            return self.begins(rows, seconds)
        from aadml.feature_extraction.media import Frames  # a listing of the table imports no decoder

        if isinstance(self.inputs, Frames):
            return np.arange(rows, dtype=np.float64) / np.float64(self.inputs.frames_per_second)
        return np.arange(rows, dtype=np.float64) * np.float64(seconds / max(rows, 1))


EXTRACTORS: dict[str, Registry[Callable[..., Extractor]]] = {
    "audio": Registry(
        "audio extractor",
        {
            "hf-audio": "aadml.feature_extraction.hub.sound:hf_audio",
            "log-mel": "aadml.feature_extraction.backbones.descriptors:log_mel",
            "vggish": "aadml.feature_extraction.backbones.vggish:vggish",
            "vggish-hub": "aadml.feature_extraction.backbones.vggish_hub:vggish_hub",
        },
        group="aadml.extractors",
    ),
    "visual": Registry(
        "visual extractor",
        {
            "hf-visual": "aadml.feature_extraction.hub.pictures:hf_visual",
            "hog-color": "aadml.feature_extraction.backbones.descriptors:hog_color",
            "inception-v3": "aadml.feature_extraction.backbones.inception_v3:inception_v3",
        },
        group="aadml.extractors",
    ),
    "text": Registry(
        "text extractor", {"hf-text": "aadml.feature_extraction.hub.texts:hf_text"}, group="aadml.extractors"
    ),
}
"""Modality -> name -> `(*, options) -> Extractor`. What an installed package brings is listed for each: which modality
it is of, the extractor says that it makes."""


def options_of(name: str, modality: str) -> list[str]:
    """Name the options that an extractor takes.

    Raises:
        InputError: no such extractor for that modality.
    """
    return list(schema(_factory(expanded(name, modality)[0], modality)))


def extractor(name: str, modality: str, options: JsonObject | None = None) -> Extractor:
    """Build an extractor of the table.

    Args:
        name: an entry of `EXTRACTORS[modality]`, a place, or `hf:MODEL[@revision][#pooling]`.
        modality: `audio`, `visual` or `text`; the extractor must be of that modality.
        options: keyword-only options of its factory.

    Returns:
        The extractor, ready to use.

    Raises:
        InputError: no such extractor for that modality, an option it does not take, or a value that is not possible.
    """
    name, named = expanded(name, modality)
    options, factory = {**named, **(options or {})}, _factory(name, modality)
    missing = [p.name for p in signature(factory).parameters.values() if p.default is p.empty and _is_named(p)]
    if set(missing) - set(options):
        raise InputError(f"--{modality} {name}: needs {', '.join(missing)}; it makes an extractor of options alone")
    built = factory(**checked_options(factory, options, name, name=name))
    if not isinstance(built, Extractor) or built.modality != modality:
        what = f"one of {built.modality}" if isinstance(built, Extractor) else f"a {type(built).__name__}"
        raise InputError(f"--{modality} {name}: it makes {what}; an extractor of {modality} is needed")
    return built if built.name in EXTRACTORS[modality] else replace(built, name=name)  # the name by which it is found


def _is_named(parameter: Parameter) -> bool:
    return parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def _factory(name: str, modality: str) -> Callable[..., Extractor]:
    return lookup(EXTRACTORS[modality], name, f"{modality} extractor")
