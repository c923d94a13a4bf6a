"""Log-mel spectrograms by PyTorch on the device of the samples, for networks on a GPU.

The values equal those of `log_mel.py` up to rounding: in float32, within 1e-5 of the largest value of a spectrogram.
The last bits may depend on the other sounds of the batch and on the device.
"""

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.feature_extraction.frontends.log_mel import LogMelSettings, hann_window, mel_filters


def log_mel_by_torch(samples: Tensor, settings: LogMelSettings) -> Tensor:
    """Compute log-mel spectrograms on the device of the samples, without gradient.

    Args:
        samples: (b, s) mono samples in [-1, 1] at `settings.sample_rate`, float32 or float64.
        settings: settings of the network.

    Returns:
        (b, t, bands), with as many frames as `log_mel` returns.
    """
    with torch.no_grad():
        window, filters = _constants(settings, samples.dtype, samples.device)
        spectrum = torch.fft.rfft(_frames(samples, settings) * window, n=settings.fft)
        strength = spectrum.abs() if settings.power == 1 else spectrum.real.square() + spectrum.imag.square()
        bands: Tensor = strength @ filters
        if settings.floor:
            bands.clamp_(min=settings.floor)
        bands += settings.offset
        return bands.log_() if settings.logarithm == "natural" else bands.log10_().mul_(10.0)


def _frames(samples: Tensor, settings: LogMelSettings) -> Tensor:
    """Return a view of (b, s) samples as (b, t, window) overlapping frames, with the padding of the settings."""
    half = settings.fft // 2
    shortest = {"none": settings.window, "reflect": half + 1, "zeros": 1}[settings.padding]
    samples = F.pad(samples, (0, max(0, shortest - samples.shape[1])))
    if settings.padding != "none":
        samples = F.pad(samples, (half, half), mode="reflect" if settings.padding == "reflect" else "constant")
        margin = (settings.fft - settings.window) // 2  # the window is in the middle of the transform
        samples = samples[:, margin : samples.shape[1] - (settings.fft - settings.window - margin)]
    return samples.unfold(1, settings.window, settings.hop)


@lru_cache(maxsize=16)
def _constants(settings: LogMelSettings, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the window (window,) and the filters (fft // 2 + 1, bands) on a device."""
    window, filters = (torch.from_numpy(values) for values in (hann_window(settings), mel_filters(settings)))
    return window.to(device, dtype), filters.to(device, dtype)
