from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1", 8: "7.1", 16: "hexadecagonal"}


@pytest.fixture
def encode() -> Callable[..., Path]:
    """Give a function that writes samples (c, s) at 48 kHz as a sound file of a given codec."""

    def encoded(path, samples, codec, *, container=None, **options):
        layout = LAYOUTS[len(samples)]
        with av.open(str(path), "w", format=container) as file:
            stream = file.add_stream(codec, rate=48_000, layout=layout, options=options)
            frame = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(samples.T.reshape(1, -1)), format="flt", layout=layout
            )
            frame.sample_rate, frame.pts, frame.time_base = 48_000, 0, Fraction(1, 48_000)
            file.mux(stream.encode(frame))
            file.mux(stream.encode(None))
        return path

    return encoded


@pytest.fixture
def slides() -> Callable[..., Path]:
    """Give a function that writes a video of frames shown from given times on; the gray level is 20 x the number.

    If `lasts` is passed, the file states this duration in seconds for each frame.
    """

    def written(path, times, *, end, tone_from=None, lasts=None):
        with av.open(str(path), "w") as file:
            stream = file.add_stream("mpeg4", rate=25)
            stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
            stream.bit_rate = 400_000
            stream.codec_context.time_base = Fraction(1, 1000)
            sound = None if tone_from is None else file.add_stream("aac", rate=48_000, layout="mono")
            until = [*times[1:], end]
            for number, (begin, stop) in enumerate(zip(times, until, strict=True)):
                frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 20 * number, np.uint8), format="rgb24")
                frame.pts, frame.time_base = round(begin * 1000), Fraction(1, 1000)
                for packet in stream.encode(frame):
                    packet.duration = round((lasts or stop - begin) * 1000)
                    file.mux(packet)
            for packet in stream.encode(None):
                file.mux(packet)
            if sound is not None:
                for packet in _tone(sound, tone_from):
                    file.mux(packet)
        return path

    return written


def _tone(stream, begin):
    samples = (0.5 * np.sin(2 * np.pi * 440 * np.arange(96_000) / 48_000)).astype(np.float32)
    frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = 48_000, round(begin * 48_000), Fraction(1, 48_000)
    yield from stream.encode(frame)
    yield from stream.encode(None)
