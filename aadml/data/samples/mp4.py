"""Writing sound and pictures as an MP4 file (H.264 and AAC)."""

from fractions import Fraction
from pathlib import Path

import numpy as np

from aadml.data.samples.picture import Image
from aadml.data.samples.sound import Signal


def write_mp4(path: Path, pictures: Image, sound: Signal, *, frame_rate: int, rate: int) -> None:
    """Write one clip, in one thread, so that the same arrays give the same bytes with the same encoders.

    Args:
        path: where to; the caller makes it atomic.
        pictures: (frames, height, width, 3) blue-green-red, even height and width.
        sound: (samples,) within -1..1, one channel.
        frame_rate: pictures per second.
        rate: samples per second.
    """
    import av

    options = {"preset": "veryfast", "crf": "24", "threads": "1"}
    with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart"}) as container:
        video = container.add_stream("libx264", rate=frame_rate, options=options)
        video.height, video.width = pictures.shape[1:3]
        video.pix_fmt = "yuv420p"
        audio = container.add_stream("aac", rate=rate, layout="mono", options={"threads": "1"})
        audio.bit_rate = 64_000
        for number, picture in enumerate(pictures):
            frame = av.VideoFrame.from_ndarray(picture, format="bgr24")
            frame.pts, frame.time_base = number, Fraction(1, frame_rate)
            container.mux(video.encode(frame))
        samples = av.AudioFrame.from_ndarray(sound.astype(np.float32)[None], format="fltp", layout="mono")
        samples.sample_rate, samples.pts, samples.time_base = rate, 0, Fraction(1, rate)
        container.mux(audio.encode(samples))
        container.mux(video.encode(None))
        container.mux(audio.encode(None))
