"""Segments of recordings: equal to the same part of the whole recording, and to a file cut beforehand."""

import math
from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest
from PIL import Image

from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.jobs.windows import Windows
from aadml.feature_extraction.media import encoding
from aadml.feature_extraction.media.decoding import decode, recording_seconds
from aadml.feature_extraction.media.inputs import Frames, Limits, MediaFailure, Sound
from aadml.feature_extraction.media.streams import MediaSource

SECONDS = 24
SIZE = (64, 96)  # of the pictures: 3 x 3 blocks of 32 x 21 pixels hold the bits of the number of the frame


def sound(path, start=0.0, end=math.inf, rate=48_000):
    return decode(str(path), Sound(rate), Limits(), 0.0, Segment(start, end))


def frames(path, start=0.0, end=math.inf, rate=25.0):
    return decode(str(path), Frames(rate, limit=10_000), Limits(), 0.0, Segment(start, end))


@pytest.fixture(scope="module")
def noise():
    values = np.random.default_rng(0).normal(0, 0.1, (1, SECONDS * 48_000)).astype(np.float32)
    return np.clip(values, -0.9, 0.9)


@pytest.mark.parametrize(
    ("codec", "container"),
    [("pcm_s16le", "wav"), ("flac", "flac"), ("libmp3lame", "mp3"), ("libopus", "ogg"), ("libopus", "webm"),
     ("flac", "matroska"), ("pcm_s16le", "mov"), ("libmp3lame", "matroska")],
)  # fmt: skip
def test_the_sound_of_a_segment_is_that_part_of_the_recording(tmp_path, encode, noise, codec, container):
    path = encode(tmp_path / "a", noise, codec, container=container)
    whole = sound(path)
    for start, end in [(0.25, 1.5), (13.3331, 15.2), (22.5, math.inf)]:
        found = sound(path, start, end)
        samples = slice(round(start * 48_000), None if end == math.inf else round(end * 48_000))
        np.testing.assert_allclose(found.values, whole.values[samples], rtol=0, atol=2e-6)
        assert (found.start, found.remarks) == (0.0, ())
        assert found.seconds == pytest.approx(len(found.values) / 48_000)


@pytest.mark.parametrize("rate", [48_000, 16_000])
def test_a_segment_of_a_wav_is_the_file_that_was_cut_beforehand(tmp_path, encode, noise, rate):
    whole = encode(tmp_path / "a.wav", noise, "pcm_s16le")
    cut = encode(tmp_path / "b.wav", noise[:, round(7.3 * 48_000) : round(9.0001 * 48_000)], "pcm_s16le")
    np.testing.assert_array_equal(sound(whole, 7.3, 9.0001, rate).values, sound(cut, rate=rate).values)


def test_segments_that_adjoin_have_every_sample_once(tmp_path, encode, noise):
    path = encode(tmp_path / "a.wav", noise, "pcm_s16le")
    times = [0.0, *np.cumsum([1.0000104, 3.333333, 0.4999895]).tolist(), math.inf]  # in the middle of samples too
    parts = [sound(path, *pair).values for pair in pairwise(times)]
    np.testing.assert_array_equal(np.concatenate(parts), sound(path).values)


def numbered(path, codec, *, gop=250, rate=25, sound_from=None):
    """Write a video whose frames show their numbers as bits."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = SIZE[1], SIZE[0], "yuv420p"
        stream.codec_context.gop_size = gop
        for number in range(SECONDS * rate):
            bits = np.asarray([16 + 220 * (number >> bit & 1) for bit in range(12)], np.uint8).reshape(3, 4)
            pixels = np.repeat(np.kron(bits, np.ones((21, 24), np.uint8))[..., None], 3, axis=2)
            pixels = np.pad(pixels, ((0, 1), (0, 0), (0, 0)))
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, rate)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def numbers(clip):
    bits = clip.values[:, 10:63:21, 12::24, 1] > 125
    return (bits.reshape(len(bits), -1) @ (1 << np.arange(12))).tolist()


@pytest.mark.parametrize(
    ("name", "codec", "gop"),
    [("a.mp4", "libx264", 250), ("a.mkv", "libx264", 50), ("a.ts", "libx264", 250), ("a.ts", "mpeg2video", 12),
     ("a.avi", "mpeg4", 100)],
)  # fmt: skip
def test_the_frames_of_a_segment_are_those_shown_within_it(tmp_path, name, codec, gop):
    path = numbered(tmp_path / name, codec, gop=gop)
    assert numbers(frames(path)) == list(range(25 * SECONDS))
    for start, end in [(0.4, 1.2), (11.0, 12.96), (19.48, 22.0), (23.0, math.inf)]:
        found = frames(path, start, end)
        first, last = math.ceil(round(start * 25, 6)), 25 * SECONDS if end == math.inf else round(end * 25)
        assert numbers(found) == list(range(first, last))
        assert found.start == 0.0
        assert found.seconds == pytest.approx((last - first) / 25, abs=0.002)


def test_a_segment_begins_with_the_frame_that_is_still_shown(tmp_path, slides):
    path = slides(tmp_path / "a.mp4", [0, 4, 8], end=12)
    clip = frames(path, 2.5, 9.5, rate=1.0)
    assert np.round(clip.values[:, 16, 16, 1] / 20).astype(int).tolist() == [0, 1, 1, 1, 1, 2, 2]
    assert (clip.start, clip.seconds, clip.remarks) == (0.0, pytest.approx(7.0), ())


@pytest.mark.parametrize(
    ("start", "end", "shown"),
    [(5.0, 7.0, [1, 1]), (2.5, 7.0, [0, 1, 1, 1, 1]), (0.0, 3.0, [0, 0, 0]), (9.0, 11.0, [2, 2]),
     (9.0, math.inf, [2, 2, 2])],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_a_segment_in_which_no_frame_begins_shows_the_frame_before_it(tmp_path, slides, name, start, end, shown):
    clip = frames(slides(tmp_path / name, [0, 4, 8], end=12), start, end, rate=1.0)
    assert np.round(clip.values[:, 16, 16, 1] / 20).astype(int).tolist() == shown
    assert (clip.start, clip.seconds, clip.remarks) == (0.0, pytest.approx(min(end, 12.0) - start), ())


def test_a_frame_is_shown_until_the_next_frame_whatever_duration_is_stated(tmp_path, slides):
    path = slides(tmp_path / "a.mkv", [0, 4, 8], end=12, lasts=0.04)
    for start, end, shown in ((0.0, 4.0, [0] * 4), (2.0, 6.0, [0, 0, 1, 1]), (4.0, 7.0, [1] * 3), (5.0, 6.0, [1])):
        clip = frames(path, start, end, rate=1.0)
        assert np.round(clip.values[:, 16, 16, 1] / 20).astype(int).tolist() == shown
        assert clip.seconds == pytest.approx(end - start)
    with pytest.raises(MediaFailure, match=r"begins at 9\.0 s, but the video ends at 8\.040 s"):
        frames(path, 9.0, 11.0)


@pytest.mark.parametrize("suffix", ["png", "jpg", "gif", "webp"])
def test_a_picture_is_shown_throughout_any_segment(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    Image.new("RGB", (32, 32), (200, 200, 200)).save(path)
    for start, end, count in ((0.0, 3.0, 3), (10.0, 12.0, 2), (10.0, math.inf, 1), (0.0, math.inf, 1)):
        clip = frames(path, start, end, rate=1.0)
        assert len(clip.values) == count
        np.testing.assert_allclose(clip.values, 200, atol=2)
        assert clip.seconds == pytest.approx(end - start if end < math.inf else clip.seconds)
        assert (clip.start, clip.remarks, clip.seconds > 0) == (0.0, (), True)


@pytest.mark.parametrize("name", ["a.mkv", "a.mp4"])
def test_a_single_frame_beside_sound_is_shown_until_the_end_of_the_file(tmp_path, slides, name):
    path = slides(tmp_path / name, [0], end=12, tone_from=10.0, lasts=0.04)
    for start, end, count in ((0.0, 2.0, 2), (4.0, 6.0, 2), (9.0, 12.0, 3), (9.0, math.inf, 3), (0.0, math.inf, 1)):
        clip = frames(path, start, end, rate=1.0)
        np.testing.assert_allclose(clip.values, np.zeros((count, 32, 32, 3)), atol=2)
        assert (clip.start, clip.remarks) == (0.0, ())
        assert count == 1 or clip.seconds == pytest.approx(min(end, 12.0) - start, abs=0.05)
    with pytest.raises(MediaFailure, match=r"begins at 13\.0 s, but the video ends at (12\.0|11\.999)"):
        frames(path, 13.0, 14.0)
    late = slides(tmp_path / f"late-{name}", [3], end=12, tone_from=0.0)
    with pytest.raises(MediaFailure, match=r"ends at 3\.0005 s, but the video begins at 3\.000 s"):
        frames(late, 2.8, 3.0005)


def test_only_the_segment_is_decoded(tmp_path, monkeypatch):
    path = numbered(tmp_path / "a.mp4", "libx264", gop=25)
    decoded, original = [], MediaSource._decoded
    monkeypatch.setattr(
        MediaSource, "_decoded", lambda *a, **o: (frame for frame in original(*a, **o) if not decoded.append(1))
    )
    frames(path, 20.0, 21.0)
    assert 25 <= len(decoded) <= 25 + 2 * 25 + 1  # the segment, a second before it, and the rest of a group


def test_sound_that_begins_within_a_segment_starts_late(tmp_path, slides):
    path = slides(tmp_path / "a.mp4", [0, 1, 2, 3], end=4, tone_from=1.5)
    found = sound(path, 0.5, 3.0)
    assert found.start == pytest.approx(1.0, abs=0.03)
    assert found.start + found.seconds == pytest.approx(2.5, abs=0.001)
    assert sound(path, 2.0, 3.0).start == 0.0


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_sound_that_begins_late_fills_half_of_a_segment_or_is_outside(tmp_path, slides, name):
    path = slides(tmp_path / name, [0, 1, 2, 3, 4], end=5, tone_from=2.0)
    for start, end in ((0.0, 1.5), (0.0, 2.1), (1.0, 2.5), (1.5, 2.0)):
        with pytest.raises(MediaFailure, match=r"but the sound begins at (1\.9|2\.0)") as failure:
            sound(path, start, end)
        assert failure.value.reason == "outside"
        assert frames(path, start, end).remarks == ()
    assert sound(path, 1.0, 3.5).remarks == ("the segment lasts 2.5 s, but contains 1.5 s of sound",)
    assert sound(path, 2.1, 3.0).remarks == sound(path, 1.9, 3.9).remarks == ()
    late = tmp_path / f"late-{name}"
    slides(late, [3, 4, 5], end=6, tone_from=0.0)
    for start, end in ((0.5, 2.5), (1.0, 3.5)):
        with pytest.raises(MediaFailure, match=r"but the video begins at 3\.0") as failure:
            frames(late, start, end)
        assert failure.value.reason == "outside"
    (remark,) = frames(late, 2.5, 5.5).remarks
    assert remark == "the segment lasts 3.0 s, but contains 2.5 s of video"


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [(30.0, 31.0, "begins at 30.0 s, but the .* ends at 24"), (20.0, 26.0, "ends at 26.0 s, but the .* ends at 24"),
     (24.0, math.inf, "begins at 24.0 s, but the .* ends at 24")],
)  # fmt: skip
def test_a_segment_beyond_the_recording_is_refused(tmp_path, encode, noise, start, end, problem):
    for decoded, path in [(sound, encode(tmp_path / "a.wav", noise, "pcm_s16le")),
                          (frames, numbered(tmp_path / "a.mp4", "mpeg4"))]:  # fmt: skip
        with pytest.raises(MediaFailure, match=problem) as failure:
            decoded(path, start, end)
        assert failure.value.reason == "outside"


def test_a_segment_slightly_beyond_the_recording_ends_with_it(tmp_path, encode, noise):
    path = encode(tmp_path / "a.wav", noise, "pcm_s16le")
    assert sound(path, 20.0, 24.2).seconds == pytest.approx(4.0)
    assert frames(numbered(tmp_path / "a.mp4", "mpeg4"), 20.0, 24.2).seconds == pytest.approx(4.0)


def test_the_last_window_is_kept_if_the_video_ends_before_the_sound(tmp_path):
    path = tmp_path / "a.mp4"
    pictures = np.random.default_rng(0).integers(0, 255, (92, 32, 32, 3), dtype=np.uint8)
    codecs = encoding.Encoding(container="mp4", video="mpeg4", audio="aac")
    encoding.encode(path, codecs, pictures=pictures, sound=np.zeros(4 * 48_000))
    *_, last = Windows(2.0, 2.0).of(Segment(0.0, round(recording_seconds(str(path)), 6)))
    assert (last.start, last.end) == (2.0, pytest.approx(4.0, abs=0.05))
    assert frames(path, last.start, last.end).seconds == pytest.approx(1.68, abs=0.05)
    assert sound(path, last.start, last.end).seconds == pytest.approx(2.0, abs=0.05)


def test_the_limit_of_the_length_holds_for_the_segment(tmp_path, encode, noise):
    path, limits = encode(tmp_path / "a.wav", noise, "pcm_s16le"), Limits(seconds=5)
    assert decode(str(path), Sound(16_000), limits, 0.0, Segment(10.0, 14.0)).seconds == 4.0
    with pytest.raises(MediaFailure, match="longer than 5 s"):
        decode(str(path), Sound(16_000), limits, 0.0, Segment(10.0, 20.0))


@pytest.mark.parametrize(("codec", "container"), [("pcm_s16le", "wav"), ("libmp3lame", "mp3"), ("aac", "adts")])
def test_the_length_of_a_recording_is_read_or_counted(tmp_path, encode, noise, codec, container):
    path = encode(tmp_path / "a", noise, codec, container=container)
    assert recording_seconds(str(path)) == pytest.approx(SECONDS, abs=0.05)
    path.write_bytes(b"text")
    with pytest.raises(MediaFailure):
        recording_seconds(str(path))


@pytest.mark.parametrize("container", ["matroska", "mp4"])
@pytest.mark.parametrize("start", [0.013, 0.9, 1.0, 1.01])
def test_a_segment_near_the_beginning_loses_no_sample(tmp_path, encode, noise, container, start):
    path = encode(tmp_path / "a", noise[:, : 3 * 48_000], "flac", container=container)
    np.testing.assert_array_equal(sound(path, start, 2.0).values, sound(path).values[round(start * 48_000) : 96_000])
