"""Encoding of sound and pictures to files for browsers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

_ONE = {"threads": "1"}


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Container and encoders of a file.

    Attributes:
        container: FFmpeg's name of the container, which is also the subtype of its media type ("video/mp4").
        video: encoder of the pictures.
        audio: encoder of the sound.
        options: options of the container.
        video_options: options of the video encoder.
        audio_bit_rate: bit rate of the sound in bits per second.
    """

    container: str
    video: str
    audio: str
    options: Mapping[str, str] = field(default_factory=dict)
    video_options: Mapping[str, str] = field(default_factory=dict)
    audio_bit_rate: int = 64_000

    def is_available(self) -> bool:
        """Return whether the installed PyAV has the encoders `video` and `audio`."""
        return all(_has_encoder(name) for name in (self.video, self.audio))


def encode(
    path: Path,
    encoding: Encoding,
    *,
    pictures: NDArray[np.uint8] | None = None,
    sound: NDArray[np.floating[Any]] | None = None,
    frame_rate: int = 25,
    rate: int = 48_000,
    colors: str = "rgb24",
) -> None:
    """Write a clip in one thread, so that equal arrays and encoders produce equal bytes.

    Args:
        path: path of the file; writing is not atomic.
        encoding: container and encoders.
        pictures: (frames, height, width, 3), with even height and width; None for sound only.
        sound: (samples,), one channel with values from -1 to 1; None for pictures only. Pictures, sound or both are
            required.
        frame_rate: pictures per second.
        rate: samples per second; the encoder must accept this rate.
        colors: order of the channels of a picture, by FFmpeg's name.

    Raises:
        ValueError: an encoder is not available.
        av.error.FFmpegError: the clip cannot be encoded, or the file cannot be written.
    """
    place = str(path.absolute())  # a relative path such as http:/x would be an address
    with av.open(place, "w", format=encoding.container, options=dict(encoding.options)) as container:
        streams: list[tuple[Any, Iterator[Any]]] = []
        if pictures is not None:
            video = container.add_stream(encoding.video, rate=frame_rate, options={**encoding.video_options, **_ONE})
            video.height, video.width = pictures.shape[1:3]
            video.pix_fmt = "yuv420p"
            streams.append((video, _video_frames(pictures, frame_rate, colors)))
        if sound is not None:
            audio = container.add_stream(encoding.audio, rate=rate, layout="mono", options=_ONE)
            audio.bit_rate = encoding.audio_bit_rate
            streams.append((audio, _audio_frames(sound, rate)))
        for stream, frames in streams:
            for frame in frames:
                container.mux(stream.encode(frame))
        for stream, _ in streams:
            container.mux(stream.encode(None))


def _video_frames(pictures: NDArray[np.uint8], frame_rate: int, colors: str) -> Iterator[Any]:
    for number, picture in enumerate(pictures):
        frame = av.VideoFrame.from_ndarray(picture, format=colors)
        frame.pts, frame.time_base = number, Fraction(1, frame_rate)
        yield frame


def _audio_frames(sound: NDArray[np.floating[Any]], rate: int) -> Iterator[Any]:
    frame = av.AudioFrame.from_ndarray(sound.astype(np.float32)[None], format="fltp", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = rate, 0, Fraction(1, rate)
    yield frame


def _has_encoder(name: str) -> bool:
    try:
        av.Codec(name, "w")
    except (av.codec.codec.UnknownCodecError, ValueError):
        return False
    return True
