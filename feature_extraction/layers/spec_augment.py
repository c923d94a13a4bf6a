"""SpecAugment (Park et al., Interspeech 2019): stripes of a spectrogram set to zero, with the stripes of PANNs."""

import torch
from torch import Tensor


def spec_augment(
    spectrogram: Tensor,
    lengths: Tensor | None = None,
    *,
    time_stripes: int = 2,
    time_width: int = 64,
    band_stripes: int = 2,
    band_width: int = 8,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Set random stripes of time and of bands to zero, each item its own (PANNs and Mei et al. 2022: widths U[0, w)).

    Args:
        spectrogram: (b, c, t, bands).
        lengths: (b,) frames of each item, so that stripes fall on sound and not on padding; None: all are t.
        time_stripes: stripes of frames an item.
        time_width: a stripe is narrower than so many frames.
        band_stripes: stripes of bands an item.
        band_width: a stripe is narrower than so many bands.
        generator: of the draws, on the CPU; None takes torch's own.

    Returns:
        (b, c, t, bands), a new tensor.
    """
    items, _, frames, bands = spectrogram.shape
    frame_ends = torch.full((items,), frames) if lengths is None else lengths.cpu()
    band_ends = torch.full((items,), bands)
    kept = ~_stripes(frame_ends, frames, time_stripes, time_width, generator)[:, None, :, None]
    kept = kept & ~_stripes(band_ends, bands, band_stripes, band_width, generator)[:, None, None, :]
    return spectrogram * kept.to(spectrogram.device)


def _stripes(ends: Tensor, size: int, stripes: int, width: int, generator: torch.Generator | None) -> Tensor:
    """Mark what lies in a stripe: (b, size) bool; a stripe lies before the item's end (b,)."""
    shape = (len(ends), stripes)
    widths = torch.randint(0, width, shape, generator=generator)
    room = (ends[:, None] - widths).clamp_min(1)
    starts = (torch.rand(shape, generator=generator, dtype=torch.float64) * room).long()
    places = torch.arange(size)
    inside = (places >= starts[..., None]) & (places < (starts + widths)[..., None])
    return inside.any(1)
