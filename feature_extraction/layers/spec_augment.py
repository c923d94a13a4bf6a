"""SpecAugment (Park et al., Interspeech 2019), which masks stripes of a spectrogram, with the defaults of PANNs.

Reference: Park et al., SpecAugment: a simple data augmentation method for automatic speech recognition, Interspeech
2019, https://doi.org/10.21437/Interspeech.2019-2680
"""

import torch
from torch import Tensor


def spec_augment(
    spectrogram: Tensor, lengths: Tensor | None = None, *, generator: torch.Generator | None = None
) -> Tensor:
    """Set random stripes to zero, independently per item, as in PANNs and in Mei et al. 2022.

    Each item has two stripes of 0 to 63 frames and two stripes of 0 to 7 bands. The widths are drawn uniformly.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Args:
        spectrogram: (b, c, t, bands).
        lengths: (b,) frames of each item, to keep stripes out of the padding; None if all items have t frames.
        generator: random generator on the CPU; None for torch's global generator.

    Returns:
        (b, c, t, bands), a new tensor.
    """
    items, _, frames, bands = spectrogram.shape
    frame_ends = torch.full((items,), frames) if lengths is None else lengths.cpu()
    band_ends = torch.full((items,), bands)
    in_time = _stripes(frame_ends, frames, 64, generator)[:, None, :, None]
    in_bands = _stripes(band_ends, bands, 8, generator)[:, None, None, :]
    return spectrogram * ~(in_time | in_bands).to(spectrogram.device)


def _stripes(ends: Tensor, size: int, width: int, generator: torch.Generator | None) -> Tensor:
    """Draw a mask (b, size) of two stripes, narrower than `width`, that start before the ends (b,) of the items."""
    shape = (len(ends), 2)
    widths = torch.randint(0, width, shape, generator=generator)
    room = (ends[:, None] - widths).clamp_min(1)
    starts = (torch.rand(shape, generator=generator, dtype=torch.float64) * room).long()
    places = torch.arange(size)
    inside = (places >= starts[..., None]) & (places < (starts + widths)[..., None])
    return inside.any(1)
