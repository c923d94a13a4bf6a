"""Inputs that are decoded from media files, decoded clips, and reasons of failure."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

_LATE = 0.05  # in steps: a clip that ends so soon after a step, mostly by rounding, does not include it

# Why a clip has no features; if several reasons apply, the first of this list.
REASONS = {
    "missing": "the file does not exist or is not readable",
    "refused": "a playlist or another file that refers to further files",
    "timeout": "decoding took more processor time than the limit",
    "crashed": "the decoder ended its process",
    "too-large": "longer, larger or with more streams than the limits allow",
    "corrupt": "it cannot be opened, is empty, or decoding fails",
    "no-audio": "there is no sound track",
    "no-video": "there is no video stream (a cover picture is not a video)",
    "too-short": "shorter than the extractor needs",
    "no-text": "the manifest has no text for it",
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
        sample_rate: in Hz; the sound is resampled once.
        seconds: length of the first part of each clip that is decoded; None: all.
        edition: version of the rules of decoding. A change of values needs a new one, and clips are decoded again.
    """

    edition: ClassVar[int] = 2

    sample_rate: int
    seconds: float | None = None


@dataclass(frozen=True)
class Frames:
    """Input of a visual extractor: upright RGB uint8 frames (t, height, width, 3).

    Attributes:
        frames_per_second: steps per second: the first frame within each step, or the one still shown if there is none.
        height: to which frames are resized in the decoding process; None: no resizing.
        width: as `height`; the aspect ratio may change.
        limit: most frames of a clip, its first ones; a longer clip has a remark.
        edition: as of `Sound`. 2: a grid in time. 3: mirrored frames are turned back.
    """

    edition: ClassVar[int] = 3

    frames_per_second: float = 1.0
    height: int | None = None
    width: int | None = None
    limit: int = 300

    def steps(self, seconds: float) -> int:
        """Return the number of steps of a clip of `seconds`."""
        return math.ceil(seconds * self.frames_per_second - _LATE)


@dataclass(frozen=True)
class Pictures(Frames):
    """Frames for pretrained networks: resized by Pillow, then cropped at the center, in the decoding process.

    One of `shortest`, `resized` and `patches` determines the size; `height` and `width` are not used.

    Attributes:
        shortest: length of the shorter edge, with the aspect ratio of the frame.
        resized: (height, width), for any aspect ratio.
        patches: (pixels of a side, count): the largest picture of so many square patches with nearly the aspect ratio.
        crop: (height, width) of the center crop; None: no crop.
        resample: filter, by its name in Pillow.
    """

    shortest: int | None = None
    resized: tuple[int, int] | None = None
    patches: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    resample: str = "bicubic"


@dataclass(frozen=True)
class Text:
    """Input of a text extractor: the clip's text in the manifest, as the bytes (n,) of its UTF-8."""

    edition: ClassVar[int] = 2


@dataclass(frozen=True)
class Limits:
    """Largest media that are decoded.

    Attributes:
        seconds: of sound or video.
        pixels: of a frame, before and after resizing.
        streams: of a file.
    """

    seconds: float = 3600.0
    pixels: int = 2**26
    streams: int = 64


@dataclass(frozen=True)
class Clip:
    """Decoded part of a file.

    Attributes:
        values: samples (s,) float32, frames (t, height, width, 3) uint8, or bytes of text (n,) uint8; at least one.
        start: time of the first of them, in seconds after the beginning of the file.
        seconds: duration of the samples or frames.
        remarks: irregularities, one line each.
    """

    values: NDArray[Any]
    start: float = 0.0
    seconds: float = 0.0
    remarks: tuple[str, ...] = ()
