"""8-bit quantization, as in the released features of YouTube-8M and AudioSet.

Sources: Abu-El-Haija et al., YouTube-8M (2016) and its `feature_extractor`; tensorflow/models, `vggish_postprocess`.

Reference: Abu-El-Haija et al., YouTube-8M: a large-scale video classification benchmark, 2016, https://arxiv.org/abs/1609.08675
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

LOWEST, HIGHEST = -2.0, 2.0  # range of the 8 bits


def quantize(features: NDArray[np.floating[Any]], *, rounding: Literal["nearest", "floor"]) -> NDArray[np.uint8]:
    """Clip features x to [-2, 2] and quantize x to 8 bits: (x + 2) * 255 / 4, rounded.

    Args:
        features: array of any shape.
        rounding: "nearest", as in YouTube-8M, or "floor", as in VGGish.

    Returns:
        Integers 0 to 255 in the shape of `features`.
    """
    scaled = (np.clip(features, LOWEST, HIGHEST) - LOWEST) * (255.0 / (HIGHEST - LOWEST))
    return np.asarray(np.rint(scaled) if rounding == "nearest" else np.floor(scaled), dtype=np.uint8)


def dequantize(quantized: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Map 8 bits back to floats of the same shape, as YouTube-8M's readers do: q * 4 / 255 + 4 / 512 - 2."""
    width = HIGHEST - LOWEST
    return (quantized.astype(np.float64) * (width / 255.0) + width / 512.0 + LOWEST).astype(np.float32)
