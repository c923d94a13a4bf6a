"""Trial of extractors on noise before a job. A defective extractor is thus reported before decoding."""

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import EXTRACTORS, Extractor
from aadml.feature_extraction.ground.errors import InputError, cause
from aadml.feature_extraction.media import Frames, Pictures, Sound, Text
from aadml.feature_extraction.media.pictures import fitted

_SEED = 0
_SECONDS = (2.0, 3.0)
_SIZE = (96, 128)  # height and width of frames that an extractor accepts in any size
_TEXT = b"a dog barks"


def try_out(extractor: Extractor) -> None:
    """Extract features of noise with an extractor of the user; an extractor of aadml is not tried out.

    An error of `prepare` is not reported, because in a job such an error fails only single clips.

    Raises:
        InputError: an error in `describe`, or a wrong shape. The features of each clip must be (t, d) with t of at
            least 1. The pooled features must be (dimension,) if the extractor has no fit.
    """
    if EXTRACTORS[extractor.modality].is_own(extractor.name):
        return
    try:
        prepared = [extractor.prepare(_noise(extractor, seconds)) for seconds in _SECONDS]
    except Exception:  # fails single clips
        return
    try:
        described = prepared if extractor.describe is None else extractor.describe(prepared)
        shapes = [np.shape(rows) for rows in described]
    except InputError:
        raise
    except Exception as error:  # any error of the user's code
        raise InputError(
            f"{extractor.name} fails in a trial run on noise ({type(error).__name__}: {cause(error)}); correct the "
            "extractor"
        ) from error
    if len(shapes) != len(prepared) or any(len(shape) != 2 or not shape[0] for shape in shapes):
        raise InputError(
            f"{extractor.name} returns shapes {shapes} for {len(prepared)} clips of noise; return one array (t, d) "
            "per clip, with t at least 1"
        )
    shape = np.shape(extractor.pool(described[0]))
    if extractor.fit is None and shape != (extractor.dimension,):
        raise InputError(
            f"{extractor.name} returns values of shape {shape} per clip, but its dimension is {extractor.dimension}; "
            "set the dimension to that of the pooled features"
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
