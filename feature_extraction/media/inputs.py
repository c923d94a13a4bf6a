"""Inputs of extractors, decoded clips, and reasons for failed decoding."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

_LATE = 0.05  # share of a step; a last step with less than this share of the clip is left out

Damaged = Literal["keep", "drop"]

# Reasons why a clip has no features; if several apply, the first in this order counts.
REASONS = {
    "missing": "the file does not exist or is not readable; relative paths start at the folder of the manifest",
    "special-file": "the path is a device, a pipe, a socket or a file of the kernel (/proc, /sys)",
    "refused": "the file is a playlist or refers to other files in another way",
    "timeout": "decoding took more processor time than the limit",
    "crashed": "the decoding process crashed",
    "too-large": "the clip is longer, larger or has more streams than the limits allow",
    "encrypted": "the sound or video is encrypted",
    "unsupported-codec": "there is no decoder for the sound or video",
    "not-a-media-file": "the file is of no known media format",
    "corrupt": "the file is empty, or too much of it is damaged",
    "outside": "the recording does not contain the segment of the manifest, or less than half of its sound or video",
    "no-audio": "there is no sound track",
    "no-video": "there is no video stream (a cover picture is not a video)",
    "too-short": "the clip is shorter than the extractor needs",
    "no-text": "the manifest has no text for the clip",
}


class MediaFailure(Exception):  # noqa: N818 - a finding about a file, not a defect of the program
    """Failure to decode one clip.

    Attributes:
        reason: a key of `REASONS`.
        detail: one line of details.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = " ".join(detail.split())


@dataclass(frozen=True)
class Sound:
    """Input of an audio extractor: mono float32 samples (s,) in [-1, 1], the mean of the channels.

    Attributes:
        sample_rate: sample rate in Hz; the sound is resampled once.
        seconds: number of seconds to decode from the beginning of each clip; None for all.
        edition: version of the decoding rules. Clips of another version are decoded again. Version 3 skips damaged
            packets. In version 4, a segment may begin before the sound.
    """

    edition: ClassVar[int] = 4

    sample_rate: int
    seconds: float | None = None


@dataclass(frozen=True)
class Frames:
    """Input of a visual extractor: upright RGB uint8 frames (t, height, width, 3).

    Attributes:
        frames_per_second: steps per second. The picture of a step is the first frame within the step, or the frame
            still shown if the step has no frame.
        height: height of frames after resizing in the decoding process; None for the height of the clip's first
            frame.
        width: width of frames after resizing; None for the width of the clip's first frame. The aspect ratio may
            change.
        limit: maximum number of frames of a clip; only the first frames of a longer clip are used, with a warning.
        edition: as in `Sound`. Version 2 introduced the time grid, and version 3 mirrors mirrored frames back.
            Version 4 skips damaged packets, and converts more than 8 bits per color as FFmpeg does.
            In version 5, a segment begins with the frame that is shown at its start, and may begin before the video.
    """

    edition: ClassVar[int] = 5

    frames_per_second: float = 1.0
    height: int | None = None
    width: int | None = None
    limit: int = 300

    def steps(self, seconds: float) -> int:
        """Return the number of steps of a clip of length `seconds`."""
        return math.ceil(seconds * self.frames_per_second - _LATE)

    def seconds(self, steps: int) -> float:
        """Return about the shortest length, in seconds, of a clip with a number of steps."""
        return (steps - 1 + 1.01 * _LATE) / self.frames_per_second


@dataclass(frozen=True)
class Pictures(Frames):
    """Frames for pretrained networks: resized by Pillow, then cropped at the center, in the decoding process.

    At most one of `shortest`, `resized` and `patches` is set, and determines the size before the crop. `height` and
    `width` are not used.

    Attributes:
        shortest: pixels of the shorter edge after resizing; the aspect ratio is kept.
        resized: (height, width) after resizing; the aspect ratio may change.
        patches: (side, count). A frame is resized to the largest picture of at most `count` square patches with
            sides of `side` pixels; the aspect ratio is nearly kept.
        crop: (height, width) of the center crop; None for no crop.
        resample: name of the filter in Pillow.
    """

    shortest: int | None = None
    resized: tuple[int, int] | None = None
    patches: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    resample: str = "bicubic"


@dataclass(frozen=True)
class Text:
    """Input of a text extractor: the clip's text in the manifest, as UTF-8 bytes (n,)."""

    edition: ClassVar[int] = 2


@dataclass(frozen=True)
class Limits:
    """Limits of the media that are decoded.

    Attributes:
        seconds: maximum duration of sound or video, in seconds.
        pixels: maximum number of pixels of a frame, before and after resizing.
        streams: maximum number of streams of a file.
        damaged: "keep" decodes the rest of a damaged stream, with a warning, if at least half of its length remains.
            "drop" makes any damage a failure.
    """

    seconds: float = 3600.0
    pixels: int = 2**26
    streams: int = 64
    damaged: Damaged = "keep"


@dataclass(frozen=True)
class Clip:
    """Samples, frames or text of one modality of a clip.

    Attributes:
        values: samples (s,) float32, frames (t, height, width, 3) uint8, or bytes of text (n,) uint8; s, t and n
            are at least 1.
        start: time of the first sample or frame, in seconds after the beginning of the segment, or of the file if
            the clip is not a segment.
        seconds: duration of the samples or frames in seconds; 0 for text. `Frames.steps` of a duration is the number of
            frames.
        remarks: irregularities, one line each.
    """

    values: NDArray[Any]
    start: float = 0.0
    seconds: float = 0.0
    remarks: tuple[str, ...] = ()
