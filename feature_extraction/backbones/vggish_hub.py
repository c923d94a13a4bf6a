"""VGGish as a TensorFlow SavedModel from TF-Hub or a folder. This module needs the `tfhub` extra.

The model reads a waveform and contains its front end. Its outputs are not changed.
"""

import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Description, Extractor, every
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError, cause
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.media import Sound

PUBLISHED = "https://tfhub.dev/google/vggish/1"
SAMPLE_RATE = 16_000  # Hz
_SHORTEST = 15_600  # samples of one patch
_STEP = 0.96  # seconds from one patch to the next
_PACKAGES = ("tensorflow", "tensorflow-hub")


def vggish_hub(*, weights: str = "auto") -> Extractor:
    """Build an extractor that runs a VGGish SavedModel on sound: 128-d features, pooled by the mean over patches.

    Sound shorter than one patch (0.975 s) is padded with zeros at its end.

    Args:
        weights: `auto` (the published model), another TF-Hub address, or a folder with a SavedModel that maps (s,)
            float32 samples at 16 kHz to (t, 128).

    Returns:
        The extractor.

    Raises:
        InputError: the model cannot be loaded, or is not a VGGish.
        MissingExtraError: TensorFlow or TensorFlow Hub is not installed.
    """
    model = PUBLISHED if weights == "auto" else weights
    embed, folder = _loaded(model)
    _embedded(embed, np.zeros(_SHORTEST, dtype=np.float32))  # raises InputError for a model of another kind
    parameters = {
        "model": PUBLISHED if model == PUBLISHED else "a SavedModel of one's own",
        "weights": sha256(folder),
        "short": "filled with zeros to one patch",
    }

    def describe(sounds: Sequence[NDArray[Any]]) -> list[Description]:
        return [_embedded(embed, sound) for sound in sounds]

    return Extractor(
        name="vggish-hub",
        modality="audio",
        dimension=128,
        inputs=Sound(SAMPLE_RATE),
        parameters=parameters,
        about={name: import_module(name.replace("-", "_")).__version__ for name in _PACKAGES},
        prepare=np.asarray,
        describe=describe,
        begins=partial(every, _STEP),
    )


def _embedded(embed: Callable[[NDArray[Any]], Any], sound: NDArray[Any]) -> Description:
    samples = np.pad(sound.astype(np.float32), (0, max(0, _SHORTEST - len(sound))))
    rows = np.asarray(embed(samples), dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != 128 or not len(rows):
        raise InputError(
            f"vggish-hub.weights: the model returns {rows.shape} for {len(samples)} samples, not (t, 128); "
            "pass a SavedModel of VGGish"
        )
    return rows


def _loaded(model: str) -> tuple[Callable[[NDArray[Any]], Any], Path]:
    """Load a SavedModel without messages of TensorFlow, and return the function and the folder of the model."""
    missing = [package for package in _PACKAGES if find_spec(package.replace("-", "_")) is None]
    if missing:
        raise MissingExtraError.of("vggish-hub", " and ".join(missing), "aadml[tfhub]")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if find_spec("triton") is not None:  # crashes if imported after TensorFlow 2.20, whose LLVM is global
        import_module("triton")  # https://github.com/tensorflow/tensorflow/issues/124205
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a dozen deprecations inside TensorFlow and its dependencies
        import tensorflow_hub

        try:
            folder = Path(tensorflow_hub.resolve(model))
            loaded = tensorflow_hub.load(str(folder))
        except Exception as error:  # TensorFlow raises a dozen unrelated exceptions for a missing file
            raise InputError(
                f"vggish-hub.weights: {model} cannot be loaded ({cause(error)}); pass a folder with a SavedModel"
            ) from error
    embed = loaded if callable(loaded) else loaded.signatures.get("serving_default")
    if embed is None:
        raise InputError(
            f"vggish-hub.weights: {model} is not callable and has no signature serving_default; "
            "pass a SavedModel of VGGish"
        )

    def outputs(samples: NDArray[Any]) -> Any:
        import tensorflow

        names = [] if callable(loaded) else list(embed.structured_input_signature[1])
        values = embed(**{names[0]: tensorflow.constant(samples)}) if names else embed(samples)
        return next(iter(values.values())) if isinstance(values, dict) else values

    return outputs, folder
