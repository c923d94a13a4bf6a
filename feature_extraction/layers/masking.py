"""Convolutions over padded batches that never see the padding: an item comes out as if it were alone."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def time_mask(lengths: Tensor | None, frames: int) -> Tensor | None:
    """Mark the frames that belong to each item.

    Args:
        lengths: (b,) frames of each item, or None where all items fill the batch.
        frames: t of the batch.

    Returns:
        (b, t) bool, or None where nothing is padded.
    """
    if lengths is None:
        return None
    return torch.arange(frames, device=lengths.device)[None, :] < lengths[:, None]


def masked(values: Tensor, mask: Tensor | None) -> Tensor:
    """Set the padding of (b, c, t, f) to zero, which is what a convolution sees beyond the end of a lone item."""
    return values if mask is None else values * mask[:, None, :, None]


def masked_batch_norm(values: Tensor, norm: nn.BatchNorm2d, mask: Tensor | None) -> Tensor:
    """Normalize (b, c, t, f) by channel, with statistics over the frames that are no padding.

    Args:
        values: (b, c, t, f).
        norm: its parameters and running statistics.
        mask: (b, t) of `time_mask`.

    Returns:
        (b, c, t, f), zero in the padding.
    """
    if mask is None or not norm.training:
        return masked(_batch_norm(values, norm), mask)
    frames = values.transpose(1, 2)  # (b, t, c, f)
    kept = frames[mask][..., None]  # (frames, c, f, 1)
    normalized = _batch_norm(kept, norm)[..., 0]
    return values.new_zeros(frames.shape).masked_scatter(mask[..., None, None], normalized).transpose(1, 2)


def _batch_norm(values: Tensor, norm: nn.BatchNorm2d) -> Tensor:
    """Normalize (b, c, t, f), with the right gradient whatever the layout in which it comes.

    On a CPU the backward pass of torch 2.13 mixes up rows and columns where an axis has length 1 and the memory of the
    incoming gradient is ordered otherwise than that of the values. So the gradient is brought into their order.
    """
    normalized: Tensor = norm(values)
    if normalized.requires_grad:
        normalized.register_hook(lambda gradient: _laid_out_as(values, gradient))
    return normalized


def _laid_out_as(values: Tensor, gradient: Tensor) -> Tensor:
    same = gradient.stride() == values.stride()
    return gradient if same else torch.empty_like(values, dtype=gradient.dtype).copy_(gradient)


def filled(values: Tensor, lengths: Tensor | None, minimum: int, filling: float) -> tuple[Tensor, Tensor | None]:
    """Lengthen items that are too short for a network's pooling.

    Args:
        values: (b, t, bands).
        lengths: (b,) or None.
        minimum: frames an item must have.
        filling: what the added frames hold.

    Returns:
        Values (b, max(t, minimum), bands) whose padding and added frames hold `filling`, and the lengths, at least
        `minimum` each; None again where all items fill the batch.
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
