"""What can be wanted of a media file, what comes of it, and why nothing does."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from aadml.feature_extraction.ground.errors import InputError

_LATE = 0.05  # in steps: a clip that ends so soon after a step, mostly by rounding, does not reach it

# Why a clip has no features; where several things are wrong with one clip, the first of this list is named.
REASONS = {
    "missing": "no such file, or it may not be read",
    "refused": "a playlist or another kind of file that points to further files",
    "timeout": "decoding took more processor time than the limit",
    "crashed": "the decoder took its process down",
    "too-large": "longer, larger or with more streams than the limits allow",
    "corrupt": "it cannot be opened, holds nothing, or decoding breaks off",
    "no-audio": "there is no sound track",
    "no-video": "there is no video stream (a cover picture is none)",
    "too-short": "shorter than the extractor needs",
    "no-text": "the manifest gives no text for it",
}


class MediaFailure(Exception):  # noqa: N818 - a finding about a file, not a defect of the program
    """What one clip lacks.

    Attributes:
        reason: a key of `REASONS`.
        detail: what was seen, one line.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = " ".join(detail.split())


@dataclass(frozen=True)
class Sound:
    """What an audio extractor wants decoded: mono float32 samples (s,) in [-1, 1], the mean of the channels.

    Attributes:
        sample_rate: in Hz; the sound is resampled once, straight to it.
        seconds: at most so much of each clip, the first ones; None for all of it.
        edition: of the rules that turn a file into samples: whatever changes values raises it, and then clips are
            decoded anew.
    """

    edition: ClassVar[int] = 2

    sample_rate: int
    seconds: float | None = None


@dataclass(frozen=True)
class Frames:
    """What a visual extractor wants decoded: RGB uint8 frames (t, height, width, 3), upright.

    Attributes:
        frames_per_second: how many are kept of each second: at each step the first frame from there on, or, where the
            next step comes before any frame does, the one that is still shown.
        height: frames are resized to it in the decoding process (None: as they are).
        width: as `height`; the aspect ratio is not kept.
        limit: at most so many frames a clip, the first ones; a longer one is remarked on.
        edition: as of `Sound`. 2: frames stand on a grid in time. 3: mirrored ones are turned back.
    """

    edition: ClassVar[int] = 3

    frames_per_second: float = 1.0
    height: int | None = None
    width: int | None = None
    limit: int = 300

    def __post_init__(self) -> None:
        """Refuse what is not a rate, size or number of frames."""
        rate = self.frames_per_second
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < float("inf"):
            raise InputError(f"frames_per_second: {rate!r} given; a number above zero is needed")
        for name in ("height", "width", "limit"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{name} of frames: {value!r} given; an integer above zero is needed")

    def steps(self, seconds: float) -> int:
        """Count the steps of a clip of so many seconds; one that ends so soon after a step does not reach it."""
        return math.ceil(seconds * self.frames_per_second - _LATE)


@dataclass(frozen=True)
class Pictures(Frames):
    """Frames as pretrained networks want them: resized by Pillow, then cut at the center, in the decoding process.

    One of `shortest`, `resized` and `patches` says to what size; `height` and `width` are not used.

    Attributes:
        shortest: length of the shorter edge; the aspect ratio is kept.
        resized: (height, width); the aspect ratio is not kept.
        patches: (pixels of a side, count): the aspect ratio is nearly kept, and the picture is as large as so many
            square patches allow.
        crop: (height, width) of what is cut out at the center; None for all of it.
        resample: filter, as Pillow names it.
    """

    shortest: int | None = None
    resized: tuple[int, int] | None = None
    patches: tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    resample: str = "bicubic"


@dataclass(frozen=True)
class Text:
    """What a text extractor wants: the clip's text as it stands in the manifest, as the bytes (n,) of its UTF-8."""

    edition: ClassVar[int] = 2


@dataclass(frozen=True)
class Limits:
    """What is too large to be decoded.

    Attributes:
        seconds: of sound or video.
        pixels: of a frame, and of what it is resized to.
        streams: of a file.
    """

    seconds: float = 3600.0
    pixels: int = 2**26
    streams: int = 64


@dataclass(frozen=True)
class Clip:
    """What was decoded of a file.

    Attributes:
        values: samples (s,) float32, frames (t, height, width, 3) uint8, or bytes of text (n,) uint8; at least one.
        start: when the first of them is due, in seconds after the beginning of the file.
        seconds: how long the samples sound, or the frames are shown.
        remarks: what is odd about it, one line each.
    """

    values: NDArray[Any]
    start: float = 0.0
    seconds: float = 0.0
    remarks: tuple[str, ...] = ()
