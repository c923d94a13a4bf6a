import av
import numpy as np
import pytest

from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.encoding import Encoding, encode
from aadml.feature_extraction.media.inputs import Frames, Limits, Sound

WEBM = Encoding(container="webm", video="libvpx", audio="libopus", options={"fflags": "+bitexact"})
MP4 = Encoding(container="mp4", video="libx264", audio="aac")


@pytest.fixture
def arrays():
    pictures = np.random.default_rng(0).integers(0, 256, (25, 32, 48, 3), dtype=np.uint8)
    return pictures, np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000)


def test_equal_arrays_give_equal_bytes_that_decode(tmp_path, arrays):
    pictures, sound = arrays
    for name in ("a.webm", "b.webm"):
        encode(tmp_path / name, WEBM, pictures=pictures, sound=sound)
    assert (tmp_path / "a.webm").read_bytes() == (tmp_path / "b.webm").read_bytes()
    frames = decode(str(tmp_path / "a.webm"), Frames(frames_per_second=25.0), Limits(), 0.0)
    samples = decode(str(tmp_path / "a.webm"), Sound(48_000), Limits(), 0.0)
    assert frames.values.shape == pictures.shape
    assert abs(samples.seconds - 1.0) < 0.05


def test_a_file_may_hold_pictures_or_sound_alone(tmp_path, arrays):
    pictures, sound = arrays
    encode(tmp_path / "a.webm", WEBM, sound=sound)
    encode(tmp_path / "b.webm", WEBM, pictures=pictures)
    assert decode(str(tmp_path / "a.webm"), Sound(48_000), Limits(), 0.5).seconds > 0.9
    assert len(decode(str(tmp_path / "b.webm"), Frames(), Limits(), 0.5).values) == 1


def test_a_missing_encoder_is_not_available():
    assert WEBM.is_available()
    assert not Encoding(container="mp4", video="no-such-encoder", audio="aac").is_available()


def test_files_have_their_encoders_rates_and_sizes(tmp_path, arrays):
    pictures, sound = arrays
    encode(tmp_path / "a.mp4", MP4, pictures=pictures[..., ::-1], sound=sound[:24_000], frame_rate=5, rate=24_000,
           colors="bgr24")  # fmt: skip
    with av.open(str(tmp_path / "a.mp4")) as file:
        video, audio = file.streams.video[0], file.streams.audio[0]
        assert (video.codec_context.name, video.average_rate, video.width, video.height) == ("h264", 5, 48, 32)
        assert (audio.codec_context.name, audio.rate, audio.codec_context.layout.name) == ("aac", 24_000, "mono")
        assert float(video.duration * video.time_base) == 5.0
    assert WEBM.audio_bit_rate == 64_000
    assert not Encoding(container="mp4", video="libx264", audio="none").is_available()
    assert (WEBM.video_options, MP4.options) == ({}, {})
