"""Frames of the first video stream that is not a cover picture, on a time grid."""

import math
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from av.stream import Disposition
from av.video.reformatter import ColorTrc, Interpolation
from numpy.typing import NDArray

from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.media.inputs import Clip, Frames, Limits, MediaFailure, Pictures
from aadml.feature_extraction.media.pictures import fitted, wanted_size
from aadml.feature_extraction.media.streams import MediaSource
from aadml.feature_extraction.media.truncation import Ending
from aadml.feature_extraction.media.upright import Orientation

_HDR = {ColorTrc.SMPTE2084: "PQ", ColorTrc.ARIB_STD_B67: "HLG"}
_EARLY = 1e-6  # in steps of the grid: times are rounded fractions
_ROUNDING = 1e-3  # seconds by which the times of frames and segments may be rounded


def decoded_frames(
    container: Any, inputs: Frames, limits: Limits, minimum_seconds: float, segment: Segment, ending: Ending
) -> Clip:
    """Decode the frames of an open file.

    `container` is the file, and `ending` is the result of `truncation.ending` for the file. See `decode` for the
    other arguments and the error.
    """
    track = MediaSource(container, _stream(container), ending, limits.damaged == "keep")
    context = track.stream.codec_context
    if context.width * context.height > limits.pixels:
        raise MediaFailure(
            "too-large", f"frames have {context.width} x {context.height} pixels; the limit is {limits.pixels:,}"
        )
    grid, clock = _Grid(inputs), _Clock(track)
    for frame in _cut(track, segment, grid, clock):
        _refuse_large(frame.width, frame.height, inputs, limits)
        clock.advance(frame)
        if clock.seconds > limits.seconds:
            raise MediaFailure("too-large", f"the video is longer than {limits.seconds:g} s")
        grid.show(frame, clock.seconds)
        if grid.full and clock.seconds >= minimum_seconds:
            break
    if not clock.count:
        raise MediaFailure("corrupt", track.damage.cause or "the video stream yields no frames")
    full, announced = grid.full, min(segment.length, (track.announced() or track.stated) - segment.start)
    if full and announced > limits.seconds:
        raise MediaFailure("too-large", f"the video is longer than {limits.seconds:g} s")
    start = max(0.0, round(track.start(clock.begin) - segment.start, 6))
    end = min(clock.end, segment.length - start)
    lost = max(0.0, end - clock.held) if track.damage.lost or segment.is_whole else 0.0
    remarks = track.remarks(end, lost, segment, complete=full)
    seconds = clock.shown if segment.is_whole else max(clock.shown, end)
    if seconds < minimum_seconds:
        raise MediaFailure("too-short", f"the video lasts {seconds:.3f} s, but {minimum_seconds:g} s are needed")
    grid.close(end)
    remarks += grid.remarks + _cut_off(inputs, max(end, announced if full else 0.0))
    return Clip(np.stack(grid.pictures), start, max(end, inputs.seconds(len(grid.pictures))), remarks)


def _cut(track: MediaSource, segment: Segment, grid: "_Grid", clock: "_Clock") -> Iterator[Any]:
    """Yield the frames that begin within a segment, or else the frame that is shown at its start.

    The grid holds the last frame before the segment, for steps before the first yielded frame. If such a frame has
    a timestamp, the clock begins at the start of the segment. The last frame is shown until the next frame of the
    stream. A single frame is shown throughout any segment, or until the stated end of the file.
    """
    origin, begin, end, count, is_held = track.beginning + segment.start, math.inf, 0.0, 0, False
    for count, frame in enumerate(track.frames(segment.start), 1):
        time = (count - 1) / clock.rate if frame.time is None else frame.time
        begin = min(begin, time)
        if segment.is_whole or -_ROUNDING <= time - origin < segment.length - _ROUNDING:
            yield frame
        elif time > origin:
            end, is_held = time, True
            break
        else:
            grid.shown = frame
            clock.begin = origin if frame.time is not None else None
        end = time + (_duration(frame) or 1 / clock.rate)
    if count == 1 and not is_held and time <= track.first_time:
        if not track.stated:
            end, is_held = origin + (segment.length if segment.end < math.inf else end - time), True
        elif not segment.is_whole and not track.damage.cause:
            end, is_held = track.beginning + track.stated, True
    if count:
        track.check_segment(segment, begin - track.beginning, end - track.beginning)
    if not clock.count and grid.shown is not None:
        is_held = True
        yield grid.shown
    if is_held:
        clock.close(end)


def _refuse_large(width: int, height: int, inputs: Frames, limits: Limits) -> None:
    """Raise MediaFailure for a frame that is too large before or after resizing.

    A frame of 4 x 40,000 pixels, for example, is too large after its shorter edge is resized to 224 pixels.
    """
    if width * height > limits.pixels:
        raise MediaFailure("too-large", f"a frame has {width} x {height} pixels; the limit is {limits.pixels:,}")
    if isinstance(inputs, Pictures) and inputs.shortest is not None:
        down, across = wanted_size(height, width, inputs)
        if down * across > limits.pixels:
            resized = f"a frame of {width} x {height} pixels is resized to {across} x {down}"
            raise MediaFailure("too-large", f"{resized}; the limit is {limits.pixels:,} pixels")


def _cut_off(inputs: Frames, seconds: float) -> tuple[str, ...]:
    """Return a warning if a clip of length `seconds` continues after the last frame on the grid; otherwise ()."""
    if inputs.steps(seconds) <= inputs.limit:
        return ()
    used = inputs.limit / inputs.frames_per_second
    return (f"the video lasts {seconds:.1f} s, but only its first {inputs.limit} frames ({used:g} s) are used",)


def _stream(container: Any) -> Any:
    streams = [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]
    if not streams:
        covers = len(container.streams.video)
        raise MediaFailure(
            "no-video", f"the file has only cover pictures ({covers})" if covers else "the file has no video stream"
        )
    return streams[0]


class _Clock:
    """Seconds since the first frame, or since the beginning of a segment, never decreasing.

    Attributes:
        rate: frames per second, as the file states; 25 if unstated.
        count: number of frames.
        begin: time of the first frame, or of the beginning of a segment; None before the first frame.
        seconds: time of the last frame, in seconds after `begin`.
        held: sum of the durations of the frames, which is less than `end` if frames were lost.
    """

    def __init__(self, track: MediaSource) -> None:
        self._track = track
        self.rate = float(track.stream.average_rate or 25)
        self._lasts = 0.0
        self.begin: float | None = None
        self.count, self.seconds, self.held = 0, 0.0, 0.0

    def advance(self, frame: Any) -> None:
        """Advance to the time of the next frame; the time of a frame without a timestamp follows from its number."""
        time = frame.time if frame.time is not None else (self.count + self._track.damage.lost) / self.rate
        self.begin = time if self.begin is None else self.begin
        seconds = max(self.seconds, time - self.begin)
        lasts = _duration(frame)
        self._lasts = lasts or seconds - self.seconds or self._lasts
        self.seconds = seconds
        self.count += 1
        self.held += lasts or 1 / self.rate

    def close(self, time: float) -> None:
        """Set the end of the last frame to a timestamp, in seconds."""
        self._lasts = time - (self.begin or 0.0) - self.seconds

    @property
    def end(self) -> float:
        """End of the last frame, in seconds after `begin`; an unknown duration is estimated from times of frames."""
        return self.seconds + self._lasts

    @property
    def shown(self) -> float:
        """Length of the clip in seconds; 0 for a single frame.

        The last frame is counted with the mean duration of the other frames.
        """
        return self.seconds + (self.seconds / (self.count - 1) if self.count > 1 else 0.0)


def _duration(frame: Any) -> float:
    """Return the stated duration of a frame in seconds; 0 if unstated."""
    return float(frame.duration * frame.time_base) if frame.duration and frame.time_base else 0.0


def _rgb(frame: Any) -> NDArray[np.uint8]:
    """Convert a frame to RGB (h, w, 3) by the color matrix and range of its file, as `ffmpeg -pix_fmt rgb24` does.

    For more than 8 bits per color, FFmpeg has no direct conversion and filters bicubically. A frame is converted in
    one thread. The default of PyAV is one thread per processor.
    """
    deep = frame.format.components[0].bits > 8
    filtered = Interpolation.BICUBIC if deep else Interpolation.BILINEAR
    return np.asarray(frame.to_ndarray(format="rgb24", interpolation=filtered, threads=1), dtype=np.uint8)


class _Grid:
    """One picture per step: the first frame within the step, or the frame still shown if the step has no frame.

    Attributes:
        shown: frame that is shown until the next frame; None before the first frame.
        pictures: pictures (height, width, 3) of the steps so far.
        remarks: warnings about the pictures.
    """

    def __init__(self, inputs: Frames) -> None:
        self._inputs = inputs
        self.shown: Any = None
        self._orientation = Orientation()
        self.pictures: list[NDArray[np.uint8]] = []
        self.remarks: tuple[str, ...] = ()

    @property
    def full(self) -> bool:
        """Whether the grid has the maximum number of pictures."""
        return len(self.pictures) >= self._inputs.limit

    def show(self, frame: Any, seconds: float) -> None:
        """Advance the grid to the next frame, whose time is `seconds`."""
        step = math.floor(seconds * self._inputs.frames_per_second + _EARLY)
        self._repeat(step)
        if step >= len(self.pictures) and not self.full:
            self.pictures.append(self._picture(frame))
        self.shown = frame

    def close(self, end: float) -> None:
        """Repeat the last frame up to the end of the clip."""
        self._repeat(self._inputs.steps(end))

    def _repeat(self, steps: int) -> None:
        steps = min(steps, self._inputs.limit)
        if len(self.pictures) < steps:
            self.pictures += [self._picture(self.shown)] * (steps - len(self.pictures))

    def _picture(self, frame: Any) -> NDArray[np.uint8]:
        """Convert a decoded frame to an upright RGB picture (height, width, 3).

        If the extractor's inputs do not fix the size, the picture has the size of the clip's first picture.
        """
        picture = self._orientation.upright(_rgb(frame), frame)
        if frame.color_trc in _HDR:
            self.remarks = (f"the video has high dynamic range ({_HDR[frame.color_trc]}), which is not mapped to sRGB",)
        if isinstance(self._inputs, Pictures):
            return fitted(picture, self._inputs, self.pictures[0].shape[:2] if self.pictures else None)
        first = self.pictures[0] if self.pictures else picture
        height, width = self._inputs.height or first.shape[0], self._inputs.width or first.shape[1]
        if picture.shape[:2] == (height, width):
            return picture
        shrinks = height * width < picture.shape[0] * picture.shape[1]
        resized = cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR)
        return np.asarray(resized, dtype=np.uint8)
