"""Samples of the first sound track: the mean of its channels, at one sample rate."""

from collections.abc import Iterator
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.media.inputs import Clip, Limits, MediaFailure, Sound
from aadml.feature_extraction.media.streams import MediaSource

_CLIPPED = 0.001  # share of samples beyond full scale that causes a warning; decoders overshoot a little
_TRIM_SECONDS = 0.15  # an AAC encoder pads by up to two frames; a header that differs more is not used


def decoded_sound(container: Any, inputs: Sound, limits: Limits, minimum_seconds: float, *, open_ended: bool) -> Clip:
    """Decode the first sound track of an opened file; see `decode`."""
    if not container.streams.audio:
        raise MediaFailure("no-audio", "the file has no sound track")
    track = MediaSource(container, container.streams.audio[0], open_ended)
    rate, most, count = inputs.sample_rate, int(limits.seconds * inputs.sample_rate), 0
    wanted = None if inputs.seconds is None else int(inputs.seconds * rate)
    blocks, begins = [], list[float]()
    for block in _resampled(_timed(track.frames(), begins), rate):
        blocks.append(block)
        count += len(block)
        if wanted is not None and count >= wanted:
            break
        if count > most + rate:
            raise MediaFailure("too-large", f"the sound is longer than {limits.seconds:g} s")
    if not count:
        raise MediaFailure("corrupt", "the sound track yields no samples")
    samples = _trimmed(np.concatenate(blocks), track, rate)[:wanted]
    if not np.isfinite(samples).all():
        raise MediaFailure("corrupt", "the sound holds NaN or infinity")
    seconds = len(samples) / rate
    if len(samples) < minimum_seconds * rate:
        raise MediaFailure("too-short", f"the sound lasts {seconds:.3f} s, but {minimum_seconds:g} s are needed")
    remarks = () if len(samples) == wanted else track.shortfall(seconds)
    return Clip(np.clip(samples, -1.0, 1.0), track.start(begins[0]), seconds, (*remarks, *_loudness(samples)))


def _loudness(samples: NDArray[np.float32]) -> tuple[str, ...]:
    """Return a warning for silence, or for sound with many samples beyond full scale."""
    highest = float(np.abs(samples).max(initial=0.0))
    if not highest:
        return ("all samples of the sound are zero",)
    share = float((np.abs(samples) > 1.0).mean()) if highest > 1.0 else 0.0
    if share < _CLIPPED:
        return ()
    return (f"{share:.1%} of the sound is beyond full scale (up to {highest:.4g}) and clipped",)


def _timed(frames: Iterator[Any], begins: list[float]) -> Iterator[Any]:
    """Record the time of the first frame in `begins`; remove all times, whose gaps and jumps are not in the sound."""
    for frame in frames:
        if not begins:
            begins.append(0.0 if frame.time is None else frame.time)
        frame.pts = None
        yield frame


def _trimmed(samples: NDArray[np.float32], track: MediaSource, rate: int) -> NDArray[np.float32]:
    """Remove the padding of an encoder at the end."""
    if track.stream.duration is None:
        return samples
    declared = round(float(track.stream.duration * track.stream.time_base) * rate)
    return samples[:declared] if 0 < declared < len(samples) <= declared + int(_TRIM_SECONDS * rate) else samples


def _resampled(frames: Iterator[Any], rate: int) -> Iterator[NDArray[np.float32]]:
    """Yield mono blocks (s,); a change of layout or rate in the stream starts a new resampler.

    The channels are interleaved, because PyAV reads beyond its arrays if there are more than seven planes.
    """
    kind: tuple[str, str, int] | None = None
    resampler: Any = None
    for frame in frames:
        if (frame.format.name, frame.layout.name, frame.sample_rate) != kind:
            yield from _drained(resampler)
            kind = (frame.format.name, frame.layout.name, frame.sample_rate)
            resampler = av.AudioResampler(format="flt", rate=rate)
        yield from (_mono(block) for block in resampler.resample(frame))
    yield from _drained(resampler)


def _drained(resampler: Any) -> Iterator[NDArray[np.float32]]:
    if resampler is not None:
        yield from (_mono(block) for block in resampler.resample(None))


def _mono(block: Any) -> NDArray[np.float32]:
    """Average the channels; FFmpeg's down-mix would increase two equal channels by 3 dB."""
    interleaved: NDArray[np.float32] = block.to_ndarray()  # (1, s * c)
    channels = np.ascontiguousarray(interleaved.reshape(-1, block.layout.nb_channels).T)  # (c, s)
    return channels[0] if len(channels) == 1 else np.asarray(channels.mean(axis=0), dtype=np.float32)
