"""Samples of the first sound track: the mean of its channels, at one sample rate."""

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.media.inputs import Clip, Limits, MediaFailure, Sound
from aadml.feature_extraction.media.streams import LEAD, MediaSource
from aadml.feature_extraction.media.truncation import Ending

_CLIPPED = 0.001  # share of samples beyond full scale that causes a warning; decoders overshoot a little
_JUMP_SECONDS = 0.1  # largest gap in the times of undamaged sound that agree with its samples
_TRIM_SECONDS = 0.15  # an AAC encoder pads by up to two frames; a header that differs more is not used


def decoded_sound(
    container: Any, inputs: Sound, limits: Limits, minimum_seconds: float, segment: Segment, ending: Ending
) -> Clip:
    """Decode the first sound track of an open file.

    `container` is the file, and `ending` is the result of `truncation.ending` for the file. See `decode` for the
    other arguments and the error.
    """
    if not container.streams.audio:
        raise MediaFailure("no-audio", "the file has no sound track")
    track = MediaSource(container, container.streams.audio[0], ending, limits.damaged == "keep")
    rate, most, count = inputs.sample_rate, int(limits.seconds * inputs.sample_rate), 0
    wanted = None if inputs.seconds is None else int(inputs.seconds * rate)
    blocks, times = [], _Times(track)
    for block in _resampled(_cut(track, segment, times), rate):
        blocks.append(block)
        count += len(block)
        if wanted is not None and count >= wanted:
            break
        if count > most + rate:
            raise MediaFailure("too-large", f"the sound is longer than {limits.seconds:g} s")
    if not count:
        raise MediaFailure("corrupt", track.damage.cause or "the sound track yields no samples")
    skipped = 0.0 if segment.is_whole else times.begin - track.first_time
    samples = _trimmed(np.concatenate(blocks), track, rate, skipped)[:wanted]
    if not np.isfinite(samples).all():
        raise MediaFailure("corrupt", "the sound contains NaN or infinity")
    seconds, late = len(samples) / rate, track.start(times.begin) - segment.start
    remarks = track.remarks(seconds, times.silence, segment, complete=len(samples) == wanted)
    if len(samples) < minimum_seconds * rate:
        raise MediaFailure("too-short", f"the sound lasts {seconds:.3f} s, but {minimum_seconds:g} s are needed")
    start = late if segment.is_whole else round(late, 6) if late > 1 / rate else 0.0
    return Clip(np.clip(samples, -1.0, 1.0), start, seconds, (*remarks, *_loudness(samples)))


def _loudness(samples: NDArray[np.float32]) -> tuple[str, ...]:
    """Return a warning for silence, or for sound with many samples beyond full scale; otherwise ()."""
    highest = float(np.abs(samples).max(initial=0.0))
    if not highest:
        return ("all samples of the sound are zero",)
    share = float((np.abs(samples) > 1.0).mean()) if highest > 1.0 else 0.0
    if share < _CLIPPED:
        return ()
    return (f"{share:.1%} of the sound is beyond full scale (up to {highest:.4g}) and clipped",)


class _Times:
    """Times of the frames of a track. Frames are yielded without times, as a gap in times need not be a gap in sound.

    Attributes:
        begin: time of the first sample in seconds.
        time: time of the current frame; None if unknown.
        silence: seconds of silence in place of lost sound so far.
    """

    def __init__(self, track: MediaSource) -> None:
        self._track = track
        self.begin, self.silence = 0.0, 0.0
        self.time: float | None = None

    def taken(self, since: float = 0.0) -> Iterator[tuple[Any, float]]:
        """Yield each frame without its time, and the seconds of sound that were lost before the frame.

        Args:
            since: see `MediaSource.frames`.
        """
        damage, lost, lasts, first = self._track.damage, 0, 0.0, 0.0
        due: float | None = None
        for count, frame in enumerate(self._track.frames(since)):
            time, gap = frame.time, 0.0
            jump = None if time is None or due is None else time - due
            if not count:
                self.begin = time or 0.0
                first = self._track.first_time if since else self.begin
            elif damage.lost > lost:
                gap = self._track.gap(jump, (due or 0.0) - first, (damage.lost - lost) * lasts)
                self.silence += gap
            elif jump is not None and abs(jump) > _JUMP_SECONDS:
                damage.timed = False
            lost, lasts = damage.lost, frame.samples / frame.sample_rate
            due = None if time is None else time + lasts
            self.time, frame.pts = time, None
            yield frame, gap


def _cut(track: MediaSource, segment: Segment, times: _Times) -> Iterator[tuple[Any, float]]:
    """Yield each frame of a segment, and the seconds of sound that were lost before the frame.

    Samples outside the segment are removed from the frames. The seconds are 0 for the first frame.
    """
    if segment.is_whole:
        yield from times.taken()
        return
    is_sought, has_begun = segment.start > LEAD, False
    sizes = _first_sizes(track) if is_sought else []
    place, rate, begin = 0, 0, 0.0
    for frame, gap in times.taken(segment.start):
        if not rate or (is_sought and not has_begun):  # later times have no effect, as in a whole recording
            rate = frame.sample_rate
            if times.time is not None:
                place = _snapped(round((times.time - track.beginning) * rate), frame.samples, sizes)
        else:
            place += round(gap * rate)
        end = place + frame.samples if segment.end == math.inf else round(segment.end * rate)
        begin = begin if has_begun else place / rate
        first, last = max(round(segment.start * rate) - place, 0), min(end - place, frame.samples)
        if last > first:
            if not has_begun:
                times.begin, times.silence = track.beginning + max(begin, segment.start), 0.0
            yield _part(frame, first, last), gap if has_begun else 0.0
            has_begun = True
        place += frame.samples
        if place >= end and segment.end < math.inf:
            break
    if rate:
        track.check_segment(segment, begin, place / rate)


def _first_sizes(track: MediaSource) -> list[int]:
    """Return the numbers of samples of the first two frames; [] if time stamps are as exact as a sample."""
    if track.stream.time_base * (track.stream.rate or 1) <= 1:
        return []
    return [frame.samples for frame in islice(track.frames(), 2)]


def _snapped(place: int, samples: int, sizes: Sequence[int]) -> int:
    """Round the number of the first sample of a frame to a frame boundary, if frames have a constant size.

    Args:
        place: number of the first sample.
        samples: number of samples of the frame.
        sizes: result of `_first_sizes`.
    """
    first, *size = sizes or [0]
    if size != [samples] or 2 * place < first:
        return place
    return first + round((place - first) / samples) * samples


def _part(frame: Any, first: int, last: int) -> Any:
    """Return the samples `first` to `last - 1` of a frame, as a frame of the same format."""
    if (first, last) == (0, frame.samples):
        return frame
    fifo = av.AudioFifo()
    fifo.write(frame)
    if first:
        fifo.read(first)
    return fifo.read(last - first)


def _trimmed(samples: NDArray[np.float32], track: MediaSource, rate: int, skipped: float = 0.0) -> NDArray[np.float32]:
    """Remove an encoder's padding from the end of the samples.

    The samples begin `skipped` seconds after the beginning of the track.
    """
    if track.stream.duration is None:
        return samples
    declared = round((float(track.stream.duration * track.stream.time_base) - skipped) * rate)
    return samples[:declared] if 0 < declared < len(samples) <= declared + int(_TRIM_SECONDS * rate) else samples


def _resampled(frames: Iterator[tuple[Any, float]], rate: int) -> Iterator[NDArray[np.float32]]:
    """Yield mono blocks (s,). A gap, or a change of layout or rate in the stream, starts a new resampler.

    The channels are interleaved, because PyAV reads beyond its arrays of more than seven planes.
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
