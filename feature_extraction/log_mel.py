"""Log-mel spectrograms: one implementation, the settings of each network as data.

Sources of the settings: VGGish (Hershey et al., ICASSP 2017; tensorflow/models, `vggish_params`), PANNs (Kong et al.,
TASLP 2020; `audioset_tagging_cnn`), CRNN (Xie et al., DCASE 2022; `contrastive-negative-sampling`).
"""

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from feature_extraction.errors import InputError

Values = NDArray[np.float64]

_CHUNK = 256  # frames worked on at once: a chunk's spectrum stays in the processor's cache


@dataclass(frozen=True)
class LogMelSettings:
    """What turns samples into a log-mel spectrogram.

    Args:
        sample_rate: in Hz; the sound must already have it.
        window: length of the periodic Hann window, in samples.
        hop: samples from one frame to the next.
        fft: length of the Fourier transform, in samples; a shorter window is filled with zeros.
        bands: number of mel bands.
        low: lower edge of the lowest band, in Hz.
        high: upper edge of the highest band, in Hz.
        power: exponent of the magnitude (1 magnitude, 2 power).
        scale: "htk" (1127 ln(1 + f / 700)) or "slaney" (linear below 1 kHz, logarithmic above).
        edges: whether a band rises and falls linearly in "mel" or in "hertz".
        area: whether each band is divided by half its width in Hz (Slaney's normalization).
        padding: "none" (only whole windows), "reflect" or "zeros" (half an FFT at both ends: frame i is centered at
            sample i * hop).
        logarithm: "natural", or "decibel" for 10 log10.
        offset: added before the logarithm.
        floor: smaller values are raised to it before the logarithm.
    """

    sample_rate: int
    window: int
    hop: int
    fft: int
    bands: int
    low: float
    high: float
    power: Literal[1, 2]
    scale: Literal["htk", "slaney"]
    edges: Literal["mel", "hertz"]
    area: bool
    padding: Literal["none", "reflect", "zeros"]
    logarithm: Literal["natural", "decibel"]
    offset: float = 0.0
    floor: float = 0.0

    def provenance(self) -> dict[str, Any]:
        """Return the settings as JSON-ready data, to be kept beside the features made with them."""
        return asdict(self)


VGGISH = LogMelSettings(
    sample_rate=16_000, window=400, hop=160, fft=512, bands=64, low=125.0, high=7500.0, power=1,
    scale="htk", edges="mel", area=False, padding="none", logarithm="natural", offset=0.01,
)  # fmt: skip
PANNS = LogMelSettings(
    sample_rate=32_000, window=1024, hop=320, fft=1024, bands=64, low=50.0, high=14_000.0, power=2,
    scale="slaney", edges="hertz", area=True, padding="reflect", logarithm="decibel", floor=1e-10,
)  # fmt: skip
CRNN = LogMelSettings(
    sample_rate=44_100, window=1764, hop=882, fft=2048, bands=64, low=12.0, high=8000.0, power=2,
    scale="slaney", edges="hertz", area=True, padding="reflect", logarithm="natural", offset=float(np.spacing(1.0)),
)  # fmt: skip
DESCRIPTOR = LogMelSettings(
    sample_rate=16_000, window=400, hop=160, fft=512, bands=64, low=50.0, high=8000.0, power=2,
    scale="htk", edges="mel", area=False, padding="none", logarithm="natural", offset=1e-6,
)  # fmt: skip


@torch.no_grad()
def log_mel(waveform: Tensor, settings: LogMelSettings) -> Tensor:
    """Compute log-mel spectrograms.

    A sound too short for one frame (or, with reflection, for its padding) is first filled with zeros at its end until
    it has one. No gradient flows.

    Args:
        waveform: (b, s) or (s,) mono samples in [-1, 1] at `settings.sample_rate`; float32 or float64, on any device.
        settings: of the network that will read the result.

    Returns:
        (b, t, bands) or (t, bands), of the waveform's type and on its device. t is 1 + (s - window) // hop without
        padding, 1 + s // hop with it.

    Raises:
        InputError: the waveform is not a float tensor of one or two dimensions.
    """
    if waveform.ndim not in (1, 2) or not waveform.is_floating_point():
        raise InputError(
            f"log-mel: given {waveform.dtype} samples of shape {tuple(waveform.shape)}, wants floats of (b, s) or (s,)"
        )
    clips = _frames(waveform if waveform.ndim == 2 else waveform[None], settings)
    bands = clips.new_empty(*clips.shape[:2], settings.bands)
    for frames, result in zip(clips, bands, strict=True):
        _gather(frames, result, settings)
    if settings.floor:
        bands.clamp_min_(settings.floor)
    if settings.offset:
        bands.add_(settings.offset)
    bands = bands.log_() if settings.logarithm == "natural" else bands.log10_().mul_(10.0)
    return bands if waveform.ndim == 2 else bands[0]


def mel_filters(settings: LogMelSettings) -> Values:
    """Compute the triangles that gather a spectrum into mel bands.

    Returns:
        (fft // 2 + 1, bands) weights, float64; the row of the zero frequency is zero.
    """
    to_mel, to_hertz = _SCALES[settings.scale]
    ends = to_mel(np.array([settings.low, settings.high]))
    corners = np.linspace(ends[0], ends[1], settings.bands + 2, dtype=np.float64)
    frequencies: Values = np.arange(settings.fft // 2 + 1, dtype=np.float64) * (settings.sample_rate / settings.fft)
    points = to_mel(frequencies) if settings.edges == "mel" else frequencies
    edges = corners if settings.edges == "mel" else to_hertz(corners)
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    rising = (points[:, None] - lower) / (center - lower)
    falling = (upper - points[:, None]) / (upper - center)
    filters = np.maximum(0.0, np.minimum(rising, falling))
    if settings.area:
        corner_hertz = to_hertz(corners)
        filters *= 2.0 / (corner_hertz[2:] - corner_hertz[:-2])
    filters[0] = 0.0
    return filters


def _frames(waveform: Tensor, settings: LogMelSettings) -> Tensor:
    """View (b, s) samples as (b, t, window) overlapping frames, padded as the settings say."""
    half = settings.fft // 2
    shortest = {"none": settings.window, "reflect": half + 1, "zeros": 1}[settings.padding]
    if waveform.shape[1] < shortest:
        waveform = torch.nn.functional.pad(waveform, (0, shortest - waveform.shape[1]))
    if settings.padding != "none":
        mode = "reflect" if settings.padding == "reflect" else "constant"
        waveform = torch.nn.functional.pad(waveform, (half, half), mode=mode)
        margin = (settings.fft - settings.window) // 2  # the window sits in the middle of the transform
        waveform = waveform[:, margin : waveform.shape[1] - (settings.fft - settings.window - margin)]
    return waveform.unfold(1, settings.window, settings.hop)


def _gather(frames: Tensor, result: Tensor, settings: LogMelSettings) -> None:
    """Gather the spectra of one clip's frames (t, window) into mel bands, written to `result` (t, bands)."""
    window, groups = _constants(settings, frames.dtype, frames.device)
    windowed = frames.new_zeros(min(_CHUNK, len(frames)), settings.fft)
    for start in range(0, len(frames), _CHUNK):
        chunk = frames[start : start + _CHUNK]
        torch.mul(chunk, window, out=windowed[: len(chunk), : settings.window])
        spectrum = torch.fft.rfft(windowed[: len(chunk)])
        strength = _magnitude(spectrum) if settings.power == 1 else _power(spectrum)
        for bands, bins, filters in groups:
            torch.mm(strength[:, bins], filters, out=result[start : start + len(chunk), bands])


def _magnitude(spectrum: Tensor) -> Tensor:
    """Return |z|; on the CPU by NumPy, whose complex modulus is vectorized (six times faster than PyTorch's)."""
    if spectrum.device.type == "cpu":
        return torch.from_numpy(np.abs(spectrum.numpy()))
    return spectrum.abs()


def _power(spectrum: Tensor) -> Tensor:
    squares = torch.view_as_real(spectrum).square_()
    return squares[..., 0] + squares[..., 1]


@lru_cache(maxsize=16)
def _constants(
    settings: LogMelSettings, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, list[tuple[slice, slice, Tensor]]]:
    """Return the window (window,), and for the lower and the upper bands: which bands, of which bins, by which filters.

    Nearly all weights are zero: lower bands need few bins, and upper ones none of the lower bins.
    """
    window = torch.hann_window(settings.window, periodic=True, dtype=torch.float64)
    filters = mel_filters(settings)
    half, groups = settings.bands // 2, []
    for bands in (slice(0, half), slice(half, settings.bands)):
        used = np.flatnonzero(filters[:, bands].any(axis=1))
        bins = slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 1)
        groups.append((bands, bins, torch.from_numpy(filters[bins, bands]).to(device, dtype).contiguous()))
    return window.to(device, dtype), groups


def _htk_mel(hertz: Values) -> Values:
    return np.log1p(hertz / 700.0) * 1127.0


def _htk_hertz(mel: Values) -> Values:
    return np.expm1(mel / 1127.0) * 700.0


_SLANEY_STEP = 200.0 / 3.0  # Hz a mel below the knee
_SLANEY_KNEE = 1000.0  # Hz
_SLANEY_RATE = math.log(6.4) / 27.0  # natural logarithm a mel above the knee


def _slaney_mel(hertz: Values) -> Values:
    above = np.log(np.maximum(hertz, _SLANEY_KNEE) / _SLANEY_KNEE) / _SLANEY_RATE
    return np.minimum(hertz, _SLANEY_KNEE) / _SLANEY_STEP + above


def _slaney_hertz(mel: Values) -> Values:
    knee = _SLANEY_KNEE / _SLANEY_STEP
    return np.where(
        mel < knee, mel * _SLANEY_STEP, _SLANEY_KNEE * np.exp(_SLANEY_RATE * (np.maximum(mel, knee) - knee))
    )


_SCALES = {"htk": (_htk_mel, _htk_hertz), "slaney": (_slaney_mel, _slaney_hertz)}
