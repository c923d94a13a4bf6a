"""Resizing and cutting of frames by Pillow, as the networks of `transformers` were trained with."""

import math

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media.inputs import Pictures

_NEARLY = 1e-5  # how near the scale of `patches` comes to the largest possible one


def fitted(picture: NDArray[np.uint8], inputs: Pictures, shape: tuple[int, ...] | None = None) -> NDArray[np.uint8]:
    """Resize a picture and cut out its center.

    Args:
        picture: (h, w, 3) RGB.
        inputs: the sizes that are wanted.
        shape: (height, width) of the clip's first picture where the sizes depend on the picture: a clip whose size
            changes on the way keeps it.

    Returns:
        (height, width, 3).
    """
    from PIL import Image

    height, width = wanted_size(picture.shape[0], picture.shape[1], inputs)
    if inputs.crop is None and shape is not None:
        height, width = shape
    if (height, width) != picture.shape[:2]:
        method = Image.Resampling[inputs.resample.upper()]
        picture = np.asarray(Image.fromarray(picture).resize((width, height), method), dtype=np.uint8)
    if inputs.crop is None:
        return picture
    top, left = (height - inputs.crop[0]) // 2, (width - inputs.crop[1]) // 2
    return np.ascontiguousarray(picture[top : top + inputs.crop[0], left : left + inputs.crop[1]])


def wanted_size(height: int, width: int, inputs: Pictures) -> tuple[int, int]:
    """Say to which (height, width) a picture is resized before its center is cut out."""
    if inputs.patches is not None:
        return _in_patches(height, width, *inputs.patches)
    if inputs.resized is not None:
        return inputs.resized
    if inputs.shortest is None:
        return height, width
    if width <= height:
        return int(inputs.shortest * height / width), inputs.shortest
    return inputs.shortest, int(inputs.shortest * width / height)


def check_sizes(inputs: Pictures, where: str) -> None:
    """Refuse a cut that is larger than the picture it is taken from.

    Raises:
        InputError: as said.
    """
    edges = inputs.resized or (inputs.shortest, inputs.shortest)
    if inputs.crop is not None and any(
        edge is None or edge < cut for edge, cut in zip(edges, inputs.crop, strict=True)
    ):
        raise InputError(f"{where}: cuts {inputs.crop} out of pictures that are not sure to be so large")


def _in_patches(height: int, width: int, side: int, most: int) -> tuple[int, int]:
    """Find the largest size of whole patches, no more than `most`, at nearly the aspect ratio given (SigLIP 2)."""

    def scaled(scale: float) -> tuple[int, int]:
        down, across = (max(1, math.ceil(edge * scale / side)) * side for edge in (height, width))
        return down, across

    low, high = _NEARLY / 10, 100.0
    while high - low >= _NEARLY:
        middle = (low + high) / 2
        down, across = scaled(middle)
        low, high = (middle, high) if (down / side) * (across / side) <= most else (low, middle)
    return scaled(low)
