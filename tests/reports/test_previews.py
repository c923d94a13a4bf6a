"""Previews: small, playable, true to the clip; what is no file is never opened."""

import base64
import io
import math

import av
import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.data.samples.mp4 import write_mp4
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.media.encoding import Encoding
from aadml.feature_extraction.media.inputs import Clip, Frames, Limits, Sound
from aadml.reports import previews
from aadml.reports.previews import BLOCK, RATE, SECONDS, SIDES, Preview, PreviewSource, preview_of, shape_of
from tests.reports.tones import TONE, tone


def noise(frames, height, width):
    return np.random.default_rng(0).integers(0, 256, (frames, height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A clip that is larger than its preview, and lasts longer."""
    path = tmp_path_factory.mktemp("media") / "large.mp4"
    write_mp4(path, noise(35, 270, 480), tone(7.0), frame_rate=5, rate=RATE)
    assert path.stat().st_size > 1_000_000
    return path


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    path = tmp_path_factory.mktemp("media") / "short.mp4"
    write_mp4(path, noise(6, 58, 104), tone(0.6), frame_rate=10, rate=RATE)
    return path


def decoded(preview):
    """The frames (t, height, width, 3) and samples (s,) of a preview."""
    content = base64.b64decode(preview.media)
    with av.open(io.BytesIO(content)) as container:
        frames = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)] if container.streams.video else []
    with av.open(io.BytesIO(content)) as container:
        blocks = [f.to_ndarray()[0] for f in container.decode(audio=0)] if container.streams.audio else []
    return np.stack(frames) if frames else None, np.concatenate(blocks) if blocks else None


def pitch(samples):
    return np.argmax(np.abs(np.fft.rfft(samples))) * RATE / len(samples)


@pytest.mark.slow
def test_a_clip_of_any_size_becomes_a_small_player_with_its_sound(large):
    preview = preview_of(PreviewSource(str(large), str(large)))
    assert (preview.type, preview.reason) == ("video/mp4", "")
    assert len(preview.media) + len(preview.picture) < 500_000  # noise is the hardest thing to compress
    frames, samples = decoded(preview)
    assert frames.shape[1:] == (144, 256, 3)
    assert len(frames) == SECONDS * previews.FRAME_RATE
    assert abs(len(samples) - SECONDS * RATE) < 4096  # the encoder pads
    assert abs(pitch(samples) - TONE) < 2
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(preview.picture), np.uint8), cv2.IMREAD_COLOR)
    assert picture.shape == frames.shape[1:]


def test_the_same_clip_gives_the_same_bytes(short):
    found = [preview_of(PreviewSource(str(short), str(short))) for _ in range(6)]
    assert found == [found[0]] * 6


@pytest.mark.parametrize(("height", "width"), [(2, 2000), (2000, 2), (7, 5), (240, 320)])
def test_any_shape_of_a_still_is_kept_and_nothing_is_enlarged(tmp_path, height, width):
    cv2.imwrite(str(tmp_path / "still.png"), noise(1, height, width)[0])
    preview = preview_of(PreviewSource(str(tmp_path / "still.png"), ""))
    assert (preview.type, preview.media, preview.reason) == ("", "", "")
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(preview.picture), np.uint8), cv2.IMREAD_COLOR)
    wanted = [max(1, round(side * min(1, SIDES[0] / max(height, width)))) for side in (height, width)]
    assert list(picture.shape[:2]) == wanted


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_the_shape_of_a_player_is_whole_blocks_and_near_that_of_its_clip(height, width):
    shape = shape_of(height, width)
    assert shape == shape_of(width, height)[::-1]
    assert all(side % BLOCK == 0 and side >= BLOCK for side in shape)
    assert max(shape) in SIDES
    assert (shape[0] - shape[1]) * (height - width) >= 0
    ratio = min(height, width) / max(height, width)
    assert abs(min(shape) / max(shape) - ratio) <= max(BLOCK / SIDES[-1] / 2, BLOCK / SIDES[-1] - ratio)


def test_a_clip_that_cannot_be_shown_has_the_reason_of_its_picture_or_of_its_sound(tmp_path, spoken):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no media")
    reasons = [
        preview_of(PreviewSource(visual, audio)).reason
        for visual, audio in (("", ""), (str(broken), ""), ("", str(broken)), ("", str(tmp_path / "absent.wav")))
    ]
    assert reasons == ["missing", "not-a-media-file", "not-a-media-file", "missing"]
    sources = ((str(spoken), str(broken)), (str(broken), str(spoken)), (str(broken), str(tmp_path / "absent.wav")))
    assert [preview_of(PreviewSource(*source)).reason for source in sources] == ["not-a-media-file"] * 3
    assert preview_of(PreviewSource("", "", still=True)).reason == "missing"
    assert preview_of(PreviewSource("", str(broken), still=True)).reason == "not-a-media-file"


def test_sides_are_multiples_of_the_16_pixels_of_a_macroblock():
    assert [*SIDES] == [176, 192, 208, 224, 240, 256]
    assert BLOCK == 16


def test_sound_alone_is_a_sound_player(spoken):
    preview = preview_of(PreviewSource("", str(spoken)))
    assert (preview.type, preview.picture, preview.reason) == ("audio/mp4", "", "")
    frames, samples = decoded(preview)
    assert frames is None
    assert abs(pitch(samples) - TONE) < 2


def test_sound_and_picture_may_come_from_two_files(tmp_path, short, spoken):
    cv2.imwrite(str(tmp_path / "still.png"), noise(1, 20, 30)[0])
    assert preview_of(PreviewSource(str(tmp_path / "still.png"), str(spoken))).type == "audio/mp4"
    frames, samples = decoded(preview_of(PreviewSource(str(short), str(spoken))))
    assert len(frames) == math.ceil(0.6 * previews.FRAME_RATE)
    assert 1.0 <= len(samples) / RATE < 1.1


def test_without_the_first_encoders_the_next_ones_are_taken(short, monkeypatch):
    absent = Encoding(container="mp4", video="no-such-encoder", audio="aac")
    assert not absent.is_available()
    monkeypatch.setattr(previews, "ENCODINGS", (absent, previews.ENCODINGS[1]))
    preview = preview_of(PreviewSource(str(short), str(short)))
    assert preview.type == "video/webm"
    frames, samples = decoded(preview)
    assert frames.shape[1:] == (*shape_of(58, 104), 3)
    assert abs(pitch(samples) - TONE) < 2
    assert preview == preview_of(PreviewSource(str(short), str(short)))
    monkeypatch.setattr(previews, "ENCODINGS", (absent,))
    with pytest.raises(InputError, match="no-such-encoder"):
        preview_of(PreviewSource(str(short), str(short)))


@pytest.fixture
def decoded_by_hand(monkeypatch):
    """What is decoded, how it is asked for, and what is encoded; media and pictures are not made."""
    clips, asked, made = {}, [], {}

    def decode(path, inputs, limits, tolerance, segment):
        asked.append((path, inputs, limits, tolerance, segment))
        return clips[path, getattr(inputs, "limit", None)]

    def encoded(pictures, sound):
        made.update(pictures=pictures, sound=sound)
        return b"media", "video/mp4"

    monkeypatch.setattr(previews, "decode", decode)
    monkeypatch.setattr(previews, "_encoded", encoded)
    monkeypatch.setattr(previews, "_jpeg", lambda picture: made.update(picture=picture) or b"picture")
    return clips, asked, made


def gray(count, height, width):
    """Frames of one gray each, the first black."""
    return np.full((count, height, width, 3), np.arange(count, dtype=np.uint8)[:, None, None, None])


def test_a_player_has_five_seconds_at_twelve_frames_and_the_picture_of_its_middle(decoded_by_hand):
    clips, asked, made = decoded_by_hand
    clips["v", 1], clips["v", 60] = Clip(gray(1, 270, 480)), Clip(gray(5, 144, 256), start=0.5)
    clips["a", None] = Clip(np.ones(RATE, dtype=np.float32), start=1.0)
    preview = preview_of(PreviewSource("v", "a", Segment(1.0, 9.0)))
    assert preview == Preview("video/mp4", "bWVkaWE=", "cGljdHVyZQ==", "")
    always = (Limits(seconds=1e9), 0.0, Segment(1.0, 9.0))
    inputs = [("v", Frames(limit=1)), ("v", Frames(12, 144, 256, limit=60)), ("a", Sound(48_000, seconds=5.0))]
    assert asked == [(*one, *always) for one in inputs]
    assert np.array_equal(made["pictures"], gray(5, 144, 256))
    assert made["sound"].tolist() == [0.0] * 24_000 + [1.0] * 48_000
    assert made["picture"].tolist() == np.full((144, 256, 3), 2).tolist()


def test_a_still_is_the_frame_after_a_second_or_the_peaks_of_the_sound(decoded_by_hand):
    clips, asked, made = decoded_by_hand
    clips["v", 2] = Clip(gray(2, 88, 352))
    clips["a", None] = Clip(np.repeat(np.array([0.5, -2.0, 0.0, 0.25], dtype=np.float32), 22 * 10))
    assert preview_of(PreviewSource("v", "a", still=True)) == Preview(picture="cGljdHVyZQ==")
    assert [one[:2] for one in asked] == [("v", Frames(1.0, limit=2))]
    assert made["picture"].tolist() == np.ones((44, 176, 3)).tolist()
    assert preview_of(PreviewSource("", "a", still=True)) == Preview(picture="cGljdHVyZQ==")
    expected = np.full((132, 176, 3), 244)
    for column in range(88):
        reach = (29, 58, 1, 14)[column // 22]  # a peak of 1 ends 8 pixels from the edges
        expected[66 - reach : 66 + reach, 2 * column] = (11, 114, 133)
    assert made["picture"].tolist() == expected.tolist()


def test_the_settings_of_previews_are_those_of_their_edition():
    edition, *sizes, encodings, _ = previews._rules()
    assert (edition, sizes) == (2, [5.0, [176, 192, 208, 224, 240, 256], 12, 48_000, 80])
    assert encodings == [
        {"container": "mp4", "video": "libx264", "audio": "aac", "options": {"movflags": "+faststart"},
         "video_options": {"preset": "veryfast", "crf": "29"}, "audio_bit_rate": 48_000},
        {"container": "webm", "video": "libvpx", "audio": "libopus", "options": {"fflags": "+bitexact"},
         "video_options": {"crf": "30", "b": "120k", "auto-alt-ref": "0"}, "audio_bit_rate": 40_000},
    ]  # fmt: skip


@given(st.floats(0, 3), st.floats(0, 3))
def test_sound_begins_when_the_pictures_do(first, second):
    samples = np.arange(1, RATE + 1, dtype=np.float32) / RATE
    frames, sound = Clip(noise(2, 2, 2), start=first), Clip(samples, start=second)
    late = round((second - first) * RATE)
    if -late >= len(samples):
        return
    found = previews._aligned(sound, frames)
    for place in {0, max(late, 0), max(late, 0) + 1, len(found) - 1} & set(
        range(len(found))
    ):  # sample `place` of the pictures' clock
        wanted = samples[place - late] if 0 <= place - late < len(samples) else 0.0
        assert found[place] == wanted


def test_the_preview_of_a_segment_is_its_first_seconds(spoken):
    whole, part = (PreviewSource("", str(spoken), segment) for segment in (WHOLE, Segment(0.25, 0.5)))
    lengths = [len(decoded(preview_of(source))[1]) for source in (whole, part)]
    assert abs(lengths[1] - RATE / 4) < 4096 < lengths[0] - RATE / 4


def test_a_still_is_a_frame_or_a_waveform(tmp_path, short, spoken):
    def picture(visual, audio):
        preview = preview_of(PreviewSource(visual, audio, still=True))
        assert (preview.type, preview.media, preview.reason) == ("", "", "")
        return cv2.imdecode(np.frombuffer(base64.b64decode(preview.picture), np.uint8), cv2.IMREAD_COLOR)

    assert picture(str(short), str(short)).shape == (58, 104, 3)
    wave = picture(str(spoken), str(spoken)).mean(2)
    assert wave.shape == (132, 176)
    columns = (wave < 200).sum(0)[2:-8:2]  # without the encoder's transients
    assert np.median(columns) == pytest.approx(62, abs=8)  # a peak of 0.5 to 0.6, where 1 ends 8 pixels from the edges
    assert columns.min() > 0
    (tmp_path / "text.wav").write_text("no sound")
    assert preview_of(PreviewSource(str(tmp_path / "text.wav"), str(tmp_path / "text.wav"), still=True)).reason
