"""Log-mel spectrograms: one implementation, and the settings of each network.

NumPy arrays use SciPy's Fourier transform, so that decoding processes do not import PyTorch. Tensors use PyTorch's
transform, which is twice as fast, in threads that wait without spinning.

Sources of the settings: VGGish (Hershey et al., ICASSP 2017; tensorflow/models, `vggish_params`), PANNs (Kong et al.,
TASLP 2020; `audioset_tagging_cnn`), CRNN (Xie et al., DCASE 2022; `contrastive-negative-sampling`).

Reference: Hershey et al., CNN architectures for large-scale audio classification, ICASSP 2017, https://doi.org/10.1109/ICASSP.2017.7952132
Reference: Kong et al., PANNs: large-scale pretrained audio neural networks for audio pattern recognition, TASLP 2020, https://doi.org/10.1109/TASLP.2020.3030497
Reference: Xie et al., Language-based audio retrieval task in DCASE 2022 challenge, DCASE 2022, https://arxiv.org/abs/2206.06108
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from aadml.feature_extraction.ground.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

Values = NDArray[np.float64]
Floats = NDArray[np.floating[Any]]
Waveform = TypeVar("Waveform", Floats, "Tensor")
Pieces = list[tuple[Floats, Floats]]  # frames (n, window), and the array for their bands (n, bands)
Transform = Callable[[Floats], NDArray[np.complexfloating[Any, Any]]]

_CHUNK = 1 << 19  # samples of one transform
_SHARE = 1 << 19  # minimum samples per thread, about ten seconds of sound
_SINGLE = 1 << 18  # multiplications: OpenBLAS computes smaller products on one core


@dataclass(frozen=True)
class LogMelSettings:
    """Settings of a log-mel spectrogram.

    Attributes:
        sample_rate: sample rate of the waveform, in Hz.
        window: length of the periodic Hann window, in samples.
        hop: samples from one frame to the next.
        fft: length of the Fourier transform, in samples; a shorter window is padded with zeros.
        bands: number of mel bands.
        low: lower edge of the lowest band, in Hz.
        high: upper edge of the highest band, in Hz.
        power: exponent of the magnitude (1 for magnitude, 2 for power).
        scale: "htk" (1127 ln(1 + f / 700)) or "slaney" (linear below 1 kHz, logarithmic above).
        edges: scale on which the triangle of a band is linear, "mel" or "hertz".
        area: whether each band is divided by half its width in Hz (Slaney's normalization).
        padding: "none" (complete windows only), or "reflect" or "zeros" (half an FFT at both ends, so that frame i is
            centered at sample i * hop).
        logarithm: "natural", or "decibel" for 10 log10.
        offset: value added to a band before the logarithm.
        floor: minimum of a band before the logarithm.
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
    scale="slaney", edges="hertz", area=True, padding="zeros", logarithm="natural", offset=float(np.spacing(1.0)),
)  # fmt: skip
DESCRIPTOR = replace(VGGISH, low=50.0, high=8000.0, power=2, offset=1e-6)


def log_mel(waveform: Waveform, settings: LogMelSettings) -> Waveform:
    """Compute log-mel spectrograms.

    Sound too short for one frame or for the reflection is padded with zeros at its end. The result has no gradient. The
    values of a clip depend neither on the other clips nor on the number of threads.

    Args:
        waveform: (b, s) or (s,) mono samples in [-1, 1] at `settings.sample_rate`; float32 or float64, a NumPy array
            or a PyTorch tensor on any device (the computation is on the CPU).
        settings: settings of the network.

    Returns:
        (b, t, bands) or (t, bands), with the class, type and device of the waveform. t is 1 + (s - window) // hop
        without padding, 1 + s // hop with padding.

    Raises:
        InputError: the waveform is not float32 or float64, or does not have one or two dimensions.
    """
    samples = waveform if isinstance(waveform, np.ndarray) else waveform.detach().cpu().numpy()
    if samples.ndim not in (1, 2) or samples.dtype not in (np.float32, np.float64):
        raise InputError(
            f"log-mel: the samples are {samples.dtype} of shape {samples.shape}; pass float32 or float64 samples of "
            "shape (b, s) or (s,)"
        )
    frames: Floats = _frames(samples if samples.ndim == 2 else samples[None], settings)
    bands = np.empty((*frames.shape[:2], settings.bands), dtype=samples.dtype)
    height = _CHUNK // settings.fft
    pieces = [
        (clip[start : start + height], result[start : start + height])
        for clip, result in zip(frames, bands, strict=True)
        for start in range(0, len(clip), height)
    ]
    if isinstance(waveform, np.ndarray):
        _gather(pieces, settings, fft.rfft)
        return bands if samples.ndim == 2 else bands[0]
    import torch

    _spread(pieces, settings)
    return torch.from_numpy(bands if samples.ndim == 2 else bands[0]).to(waveform.device)


def filled_log_mel(samples: Floats, settings: LogMelSettings, shortest: int) -> Floats:
    """Compute `log_mel` (t, bands) after zero-padding samples (s,) at the end to at least `shortest` samples."""
    return log_mel(np.pad(samples, (0, max(0, shortest - len(samples)))), settings)


def hann_window(settings: LogMelSettings) -> Values:
    """Compute the periodic Hann window (window,), float64: 0.5 - 0.5 cos(2 pi n / window)."""
    window: Values = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(settings.window) / settings.window)
    return window


def mel_filters(settings: LogMelSettings) -> Values:
    """Compute the triangular mel filters (fft // 2 + 1, bands), float64; the row of the zero frequency is zero."""
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


def _frames(samples: Floats, settings: LogMelSettings) -> Floats:
    """Return a view of (b, s) samples as (b, t, window) overlapping frames, with the padding of the settings."""
    half = settings.fft // 2
    shortest = {"none": settings.window, "reflect": half + 1, "zeros": 1}[settings.padding]
    if samples.shape[1] < shortest:
        samples = np.pad(samples, ((0, 0), (0, shortest - samples.shape[1])))
    if settings.padding != "none":
        samples = np.pad(
            samples, ((0, 0), (half, half)), mode="reflect" if settings.padding == "reflect" else "constant"
        )
        margin = (settings.fft - settings.window) // 2  # the window is in the middle of the transform
        samples = samples[:, margin : samples.shape[1] - (settings.fft - settings.window - margin)]
    return np.lib.stride_tricks.sliding_window_view(samples, settings.window, axis=1)[:, :: settings.hop]


def _spread(pieces: Pieces, settings: LogMelSettings) -> None:
    """Compute the bands of pieces on at most as many threads as PyTorch may use, one core per thread."""
    import torch

    allowed = torch.get_num_threads()
    shares = sum(len(frames) for frames, _ in pieces) * settings.fft // _SHARE
    threads = max(1, min(allowed, len(pieces), shares))
    gather = partial(_gather, settings=settings, transform=lambda rows: torch.fft.rfft(torch.from_numpy(rows)).numpy())
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            list(pool.map(gather, [pieces[i::threads] for i in range(threads)]))
    finally:
        torch.set_num_threads(allowed)  # the setting of a thread is also the default of later threads


def _gather(pieces: Pieces, settings: LogMelSettings, transform: Transform) -> None:
    """Compute the log-mel bands of the frames of each piece, into the array of the piece."""
    if not pieces:
        return
    window, groups = _constants(settings, pieces[0][0].dtype.name)
    buffer = np.zeros_like(window)
    for frames, result in pieces:
        windowed = buffer[: len(frames)]
        windowed[:, : settings.window] = frames
        windowed *= window[: len(frames)]  # twice as fast as row by row
        spectrum = transform(windowed)
        if settings.power == 1:
            strength = np.abs(spectrum)
        else:
            parts = spectrum.view(window.dtype)
            np.square(parts, out=parts)
            strength = parts[:, 0::2] + parts[:, 1::2]
        for bands, bins, filters in groups:
            np.matmul(strength[:, bins], filters, out=result[:, bands])
        if settings.floor:
            np.maximum(result, settings.floor, out=result)
        if settings.offset:
            result += result.dtype.type(settings.offset)
        if settings.logarithm == "natural":
            np.log(result, out=result)
        else:
            np.multiply(np.log10(result, out=result), 10.0, out=result)


@lru_cache(maxsize=16)
def _constants(settings: LogMelSettings, dtype: str) -> tuple[Floats, list[tuple[slice, slice, Floats]]]:
    """Return the windows of a chunk of frames, and groups of neighboring bands as (bands, bins, filters).

    Nearly all weights are zero, so a group needs few bins. BLAS computes the product of a group on the calling core.
    Larger products would use the threads of BLAS, which spin while waiting.
    """
    height = _CHUNK // settings.fft
    window = np.zeros((height, settings.fft))
    window[:, : settings.window] = hann_window(settings)
    filters = mel_filters(settings)
    groups, start = [], 0
    while start < settings.bands:
        stop = start + 1
        while stop < settings.bands:
            bins = _used(filters[:, start : stop + 1])
            if (bins.stop - bins.start) * (stop + 1 - start) * height > _SINGLE:
                break
            stop += 1
        bands, bins = slice(start, stop), _used(filters[:, start:stop])
        groups.append((bands, bins, np.ascontiguousarray(filters[bins, bands], dtype=dtype)))
        start = stop
    return window.astype(dtype), groups


def _used(filters: Values) -> slice:
    """Return the range of bins with a nonzero weight; the first bin if all weights are zero."""
    used = np.flatnonzero(filters.any(axis=1))
    return slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 1)


def _htk_mel(hertz: Values) -> Values:
    return np.log1p(hertz / 700.0) * 1127.0


def _htk_hertz(mel: Values) -> Values:
    return np.expm1(mel / 1127.0) * 700.0


_SLANEY_STEP = 200.0 / 3.0  # Hz per mel below the knee
_SLANEY_KNEE = 1000.0  # Hz
_SLANEY_RATE = math.log(6.4) / 27.0  # natural logarithm per mel above the knee


def _slaney_mel(hertz: Values) -> Values:
    above = np.log(np.maximum(hertz, _SLANEY_KNEE) / _SLANEY_KNEE) / _SLANEY_RATE
    return np.minimum(hertz, _SLANEY_KNEE) / _SLANEY_STEP + above


def _slaney_hertz(mel: Values) -> Values:
    knee = _SLANEY_KNEE / _SLANEY_STEP
    return np.where(
        mel < knee, mel * _SLANEY_STEP, _SLANEY_KNEE * np.exp(_SLANEY_RATE * (np.maximum(mel, knee) - knee))
    )


_SCALES = {"htk": (_htk_mel, _htk_hertz), "slaney": (_slaney_mel, _slaney_hertz)}
