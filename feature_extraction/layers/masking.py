"""Layers over padded batches, with results that do not depend on the padding."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def time_mask(lengths: Tensor | None, frames: int) -> Tensor | None:
    """Return the mask of the frames of each item.

    Args:
        lengths: (b,) frames of each item; None if all items have t frames.
        frames: t, the number of frames of the batch.

    Returns:
        (b, t) bool; None if `lengths` is None.
    """
    if lengths is None:
        return None
    return torch.arange(frames, device=lengths.device)[None, :] < lengths[:, None]


def masked(values: Tensor, mask: Tensor | None) -> Tensor:
    """Return values (b, c, t, f), set to zero outside `mask` (b, t); the values are unchanged if `mask` is None.

    A convolution thus reads the same zeros as beyond the end of an item without padding.
    """
    return values if mask is None else values * mask[:, None, :, None]


def masked_batch_norm(values: Tensor, norm: nn.BatchNorm2d, mask: Tensor | None) -> Tensor:
    """Normalize (b, c, t, f) by channel; in training, padding does not contribute to the statistics.

    Args:
        values: (b, c, t, f).
        norm: batch norm with the parameters and running statistics.
        mask: (b, t), result of `time_mask`; None if there is no padding.

    Returns:
        (b, c, t, f), zero in the padding.
    """
    if mask is None or not norm.training:
        return masked(_batch_norm(values, norm), mask)
    frames = values.transpose(1, 2)  # (b, t, c, f)
    normalized = _batch_norm(frames[mask][..., None], norm)[..., 0]  # (frames, c, f)
    return values.new_zeros(frames.shape).masked_scatter(mask[..., None, None], normalized).transpose(1, 2)


def _batch_norm(values: Tensor, norm: nn.BatchNorm2d) -> Tensor:
    """Normalize (b, c, t, f), with a correct gradient for any memory layout.

    On a CPU, the backward pass of torch 2.13 exchanges rows and columns of values with an axis of length 1 if the
    layouts of gradient and values differ. The gradient is therefore copied to the layout of the values.
    """

    def same_layout(gradient: Tensor) -> Tensor:
        if gradient.stride() == values.stride():
            return gradient
        return torch.empty_like(values, dtype=gradient.dtype).copy_(gradient)

    normalized: Tensor = norm(values)
    if normalized.requires_grad:
        normalized.register_hook(same_layout)
    return normalized


def filled(values: Tensor, lengths: Tensor | None, minimum: int, filling: float) -> tuple[Tensor, Tensor | None]:
    """Extend items that are too short for the pooling of a network.

    Args:
        values: (b, t, bands).
        lengths: (b,) frames of each item; None if all items have t frames.
        minimum: minimum number of frames of an item.
        filling: value of the added frames.

    Returns:
        Values (b, max(t, minimum), bands) with `filling` in padding and added frames, and the lengths, at least
        `minimum`. The lengths are None if no item has padding.
    """
    if lengths is not None:
        mask = time_mask(lengths, values.shape[1])
        assert mask is not None
        values = values.masked_fill(~mask[..., None], filling)
    missing = max(0, minimum - values.shape[1])
    values = F.pad(values, (0, 0, 0, missing), value=filling) if missing else values
    if lengths is None:
        return values, None
    lengths = lengths.clamp(min=minimum)
    return values, None if bool((lengths == values.shape[1]).all()) else lengths
