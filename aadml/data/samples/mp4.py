"""Encoding of sound and pictures as an MP4 file (H.264 and AAC)."""

from pathlib import Path

from aadml.data.samples.picture import Image
from aadml.data.samples.sound import Signal


def write_mp4(path: Path, pictures: Image, sound: Signal, *, frame_rate: int, rate: int) -> None:
    """Write a clip; equal arrays produce equal bytes with the same encoders.

    Args:
        path: the file; it is not written atomically.
        pictures: (frames, height, width, 3) blue-green-red, even height and width.
        sound: (samples,) within -1..1, one channel.
        frame_rate: pictures per second.
        rate: samples per second.

    Raises:
        ValueError: an encoder is not available.
        av.error.FFmpegError: the clip cannot be encoded, or the file cannot be written.
    """
    from aadml.feature_extraction.media.encoding import Encoding, encode

    video_options = {"preset": "veryfast", "crf": "24"}
    options = {"movflags": "+faststart"}
    small = Encoding(container="mp4", video="libx264", audio="aac", options=options, video_options=video_options)
    encode(path, small, pictures=pictures, sound=sound, frame_rate=frame_rate, rate=rate, colors="bgr24")
