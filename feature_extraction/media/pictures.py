"""Resizing and cropping of frames by Pillow, as in the training of the networks of `transformers`."""

import math

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media.inputs import Pictures

_NEARLY = 1e-5  # accuracy of the scale of `patches`


def fitted(picture: NDArray[np.uint8], inputs: Pictures, shape: tuple[int, ...] | None = None) -> NDArray[np.uint8]:
    """Resize a picture and crop its center.

    Args:
        picture: (h, w, 3) RGB.
        inputs: sizes before and after the crop.
        shape: (height, width) of the clip's first picture, None for the first picture itself. Without a crop, all other
            pictures are resized to this size.

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
    """Compute the (height, width) of a picture after resizing, before the crop."""
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
    """Check that the crop is not larger than the resized picture.

    Raises:
        InputError: the crop may be larger; the message begins with `where`.
    """
    edges = inputs.resized or (inputs.shortest, inputs.shortest)
    if inputs.crop is not None and any(
        edge is None or edge < cut for edge, cut in zip(edges, inputs.crop, strict=True)
    ):
        raise InputError(
            f"{where}: the crop {inputs.crop} may be larger than the pictures; correct the model's preprocessor file"
        )


def _in_patches(height: int, width: int, side: int, most: int) -> tuple[int, int]:
    """Compute the (height, width) in pixels of the largest picture of at most `most` square patches.

    A patch has sides of `side` pixels. The aspect ratio of (`height`, `width`) is nearly kept. The computation is
    that of SigLIP 2.
    """

    def scaled(scale: float) -> tuple[int, int]:
        down, across = (max(1, math.ceil(edge * scale / side)) * side for edge in (height, width))
        return down, across

    low, high = _NEARLY / 10, 100.0
    while high - low >= _NEARLY:
        middle = (low + high) / 2
        down, across = scaled(middle)
        low, high = (middle, high) if (down / side) * (across / side) <= most else (low, middle)
    return scaled(low)
