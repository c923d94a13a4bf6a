"""Trial of extractors on noise before a job. A defective extractor is thus reported before decoding."""

import json
import pickle
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import EXTRACTORS, Description, Extractor
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.jobs.batching import errors_of, wanted_of
from aadml.feature_extraction.media import Frames, Pictures, Sound, Text
from aadml.feature_extraction.media.pictures import fitted

_SEED = 0
_SECONDS = (2.0, 3.0)
_SIZE = (96, 128)  # height and width of frames that an extractor accepts in any size
_TEXT = b"a dog barks"


def try_out(extractor: Extractor, *, sequence: bool = False) -> None:
    """Extract features of noise with an extractor of the user; an extractor of aadml is not tried out.

    An error of `prepare` is not reported, because in a job such an error fails only single clips.

    Args:
        extractor: extractor of the job.
        sequence: whether the features over time are written beside the pooled features.

    Raises:
        InputError: an error in `describe` or `pool`, a result that is not an array, a wrong shape, settings that are
            not JSON, or a `prepare` that cannot be pickled. The features of each clip must be (t, d) with t of at least
            1. The pooled features must be (dimension,) if the extractor has no fit. They must be (d,) if it has a fit,
            or if `sequence` is set.
    """
    if EXTRACTORS[extractor.modality].is_own(extractor.name):
        return
    _check_settings(extractor)
    try:
        prepared = [extractor.prepare(_noise(extractor, seconds)) for seconds in _SECONDS]
    except Exception:  # fails single clips
        return
    _check_arrays(extractor, "prepare", prepared)
    with errors_of(extractor, "in a trial run on noise"):
        described = prepared if extractor.describe is None else [*extractor.describe(prepared)]
    _check_arrays(extractor, "describe", described)
    shapes = [rows.shape for rows in described]
    if len(shapes) != len(prepared) or any(len(shape) != 2 or not shape[0] for shape in shapes):
        raise InputError(
            f"{extractor.name} returns shapes {shapes} for {len(prepared)} clips of noise; return one array (t, d) "
            "per clip, with t at least 1"
        )
    _check_pooled(extractor, described[0], sequence=sequence)


def _check_pooled(extractor: Extractor, rows: Description, *, sequence: bool) -> None:
    with errors_of(extractor, "in a trial run on noise"):
        shape = np.shape(extractor.pool(rows))
    if extractor.fit is None and shape != (extractor.dimension,):
        raise InputError(
            f"{extractor.name} returns values of shape {shape} per clip, but its dimension is {extractor.dimension}; "
            "set the dimension to that of the pooled features"
        )
    if (sequence or extractor.fit is not None) and shape != rows.shape[1:]:
        remedy = "extract without sequence" if sequence else "build the extractor without fit"
        raise InputError(
            f"{extractor.name} pools features of shape {rows.shape} to shape {shape}, but features over time need the "
            f"width of the pooled features; {remedy}, or use another pool"
        )


def _check_settings(extractor: Extractor) -> None:
    """Raise InputError for settings that cannot be stored as JSON, or functions that cannot be sent to a process."""
    settings = (extractor.parameters, extractor.about, vars(extractor.inputs))
    try:
        json.dumps([extractor.dimension, extractor.minimum_seconds, *map(dict, settings)])
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{extractor.name}: its parameters cannot be stored as JSON ({cause(error)}); pass text, booleans and "
            "numbers of Python, such as int(2) instead of np.int64(2)"
        ) from error
    try:
        pickle.dumps(wanted_of(extractor))
    except Exception as error:  # pickle raises many exceptions
        raise InputError(
            f"{extractor.name}: its prepare cannot be sent to a decoding process ({cause(error)}); pass a function at "
            "the top level of a module, or a functools.partial of such a function"
        ) from error


def _check_arrays(extractor: Extractor, function: str, results: Sequence[object]) -> None:
    for result in results:
        if not isinstance(result, np.ndarray):
            raise InputError(
                f"{extractor.name}: {function} returns {type(result).__name__}, not an array; return NumPy arrays"
            )


def _noise(extractor: Extractor, seconds: float) -> NDArray[np.generic]:
    """Return a decoded clip of noise that is long enough for the extractor; for text, a short sentence."""
    generator, inputs = np.random.default_rng(_SEED), extractor.inputs
    seconds = max(seconds, extractor.minimum_seconds)
    if isinstance(inputs, Text):
        return np.frombuffer(_TEXT, dtype=np.uint8)
    if isinstance(inputs, Sound):
        samples = round(min(seconds, inputs.seconds or seconds) * inputs.sample_rate)
        return generator.uniform(-0.5, 0.5, max(samples, 1)).astype(np.float32)
    assert isinstance(inputs, Frames)
    size = _SIZE if isinstance(inputs, Pictures) else (inputs.height or _SIZE[0], inputs.width or _SIZE[1])
    count = min(max(inputs.steps(seconds), 1), inputs.limit)
    frames = generator.integers(0, 256, (count, *size, 3), dtype=np.uint8)
    return np.stack([fitted(frame, inputs, None) for frame in frames]) if isinstance(inputs, Pictures) else frames
