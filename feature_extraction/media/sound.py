"""Samples of the first sound track: the mean of its channels, at one sample rate."""

from collections.abc import Iterator
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.media.inputs import Clip, Limits, MediaFailure, Sound
from aadml.feature_extraction.media.streams import MediaSource
from aadml.feature_extraction.media.truncation import Ending

_CLIPPED = 0.001  # share of samples beyond full scale that causes a remark; decoders overshoot a little
_JUMP_SECONDS = 0.1  # largest gap in the times of undamaged sound that agree with its samples
_TRIM_SECONDS = 0.15  # an AAC encoder pads by up to two frames; a header that differs more is not used


def decoded_sound(container: Any, inputs: Sound, limits: Limits, minimum_seconds: float, ending: Ending) -> Clip:
    """Decode the first sound track of an opened file; see `decode`."""
    if not container.streams.audio:
        raise MediaFailure("no-audio", "the file has no sound track")
    track = MediaSource(container, container.streams.audio[0], ending, limits.damaged == "keep")
    rate, most, count = inputs.sample_rate, int(limits.seconds * inputs.sample_rate), 0
    wanted = None if inputs.seconds is None else int(inputs.seconds * rate)
    blocks, times = [], _Times(track)
    for block in _resampled(times.taken(), rate):
        blocks.append(block)
        count += len(block)
        if wanted is not None and count >= wanted:
            break
        if count > most + rate:
            raise MediaFailure("too-large", f"the sound is longer than {limits.seconds:g} s")
    if not count:
        raise MediaFailure("corrupt", track.damage.cause or "the sound track yields no samples")
    samples = _trimmed(np.concatenate(blocks), track, rate)[:wanted]
    if not np.isfinite(samples).all():
        raise MediaFailure("corrupt", "the sound holds NaN or infinity")
    seconds = len(samples) / rate
    remarks = track.remarks(seconds, times.silence, complete=len(samples) == wanted)
    if len(samples) < minimum_seconds * rate:
        raise MediaFailure("too-short", f"the sound lasts {seconds:.3f} s, but {minimum_seconds:g} s are needed")
    return Clip(np.clip(samples, -1.0, 1.0), track.start(times.begin), seconds, (*remarks, *_loudness(samples)))


def _loudness(samples: NDArray[np.float32]) -> tuple[str, ...]:
    """Return a remark for silence, or for sound with many samples beyond full scale."""
    highest = float(np.abs(samples).max(initial=0.0))
    if not highest:
        return ("all samples of the sound are zero",)
    share = float((np.abs(samples) > 1.0).mean()) if highest > 1.0 else 0.0
    if share < _CLIPPED:
        return ()
    return (f"{share:.1%} of the sound is beyond full scale (up to {highest:.4g}) and clipped",)


class _Times:
    """Times of the frames of a track, which are removed because their gaps and jumps are not in the sound.

    Attributes:
        begin: time of the first frame in seconds; None before the first frame.
        silence: seconds of silence in place of lost sound so far.
    """

    def __init__(self, track: MediaSource) -> None:
        self._track = track
        self.begin: float | None = None
        self.silence = 0.0

    def taken(self) -> Iterator[tuple[Any, float]]:
        """Yield each frame without its time, and the seconds of sound that were lost before the frame."""
        damage, lost, lasts = self._track.damage, 0, 0.0
        due: float | None = None
        for frame in self._track.frames():
            time, gap = frame.time, 0.0
            jump = None if time is None or due is None else time - due
            if self.begin is None:
                self.begin = time or 0.0
            elif damage.lost > lost:
                gap = self._track.gap(jump, (due or 0.0) - self.begin, (damage.lost - lost) * lasts)
                self.silence += gap
            elif jump is not None and abs(jump) > _JUMP_SECONDS:
                damage.timed = False
            lost, lasts = damage.lost, frame.samples / frame.sample_rate
            due = None if time is None else time + lasts
            frame.pts = None
            yield frame, gap


def _trimmed(samples: NDArray[np.float32], track: MediaSource, rate: int) -> NDArray[np.float32]:
    """Remove the padding of an encoder at the end."""
    if track.stream.duration is None:
        return samples
    declared = round(float(track.stream.duration * track.stream.time_base) * rate)
    return samples[:declared] if 0 < declared < len(samples) <= declared + int(_TRIM_SECONDS * rate) else samples


def _resampled(frames: Iterator[tuple[Any, float]], rate: int) -> Iterator[NDArray[np.float32]]:
    """Yield mono blocks (s,); a gap, or a change of layout or rate in the stream, starts a new resampler.

    The channels are interleaved, because PyAV reads beyond its arrays if there are more than seven planes.
    """
    kind: tuple[str, str, int] | None = None
    resampler: Any = None
    for frame, gap in frames:
        if gap or (frame.format.name, frame.layout.name, frame.sample_rate) != kind:
            yield from _drained(resampler)
            yield np.zeros(round(gap * rate), dtype=np.float32)
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
