"""Views of fingerprints for comparisons: mirrored pictures, and the common part of two shifted clips."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from aadml.feature_extraction.media.fingerprints import MOMENTS, PARTS, SIDE, SIZE


def mirrored(pictures: Tensor) -> Tensor:
    """Mirror the fingerprints (n, 256) of pictures from left to right."""
    grays: Tensor = pictures.unflatten(1, (MOMENTS, SIDE, SIDE))
    return grays.flip(3).flatten(1)


def without_start(both: Tensor, parts: int) -> Tensor:
    """Remove the first parts of clips from fingerprints.

    Args:
        both: (n, 512) fingerprints of sound and pictures.
        parts: number of sixteenths of the clip, at most four.

    Returns:
        Fingerprints (n, 512) to compare with those of `without_end` for the same number of parts; zeros replace missing
        parts. Pictures are interpolated between their four moments.
    """
    sound, pictures = _by_time(both)
    share = parts * MOMENTS / PARTS
    moved = (1 - share) * pictures[:, :-1] + share * pictures[:, 1:]
    return _filled(sound[:, parts:], moved)


def without_end(both: Tensor, parts: int) -> Tensor:
    """Remove the last `parts` sixteenths of the sound and the last of the four pictures from fingerprints (n, 512).

    The shape is unchanged: zeros replace the removed parts. `without_start` removes the opposite end.
    """
    sound, pictures = _by_time(both)
    return _filled(sound[:, : PARTS - parts], pictures[:, :-1])


def _by_time(both: Tensor) -> tuple[Tensor, Tensor]:
    sound, pictures = both.split(SIZE, dim=1)
    return sound.unflatten(1, (PARTS, -1)), pictures.unflatten(1, (MOMENTS, -1))


def _filled(*views: Tensor) -> Tensor:
    flat = (view.flatten(1) for view in views)
    return torch.cat([pad(view, (0, SIZE - view.shape[1])) for view in flat], dim=1)
