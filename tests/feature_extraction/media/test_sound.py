import io
import itertools
import math
from contextlib import suppress
from fractions import Fraction
from types import SimpleNamespace

import av
import numpy as np
import pytest

from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.media import sound as sound_file
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Limits, MediaFailure, Sound

CODECS = {  # codec -> container, options, how far a sample may be off
    "pcm_s16le": ("wav", {}, 1e-4),
    "pcm_f32le": ("matroska", {}, 0.0),
    "wavpack": ("wv", {}, 0.01),
    "tta": ("tta", {}, 0.01),
    "aac": ("mp4", {}, 0.2),
    "libopus": ("ogg", {"mapping_family": "255"}, 0.05),
}


def sound(path, rate=48_000):
    return decode(str(path), Sound(rate), Limits(), 0.0)


def tones(channels, seconds=0.5):
    time = np.arange(round(48_000 * seconds)) / 48_000
    return np.stack([0.5 * np.sin(2 * np.pi * (200 + 20 * c) * time) for c in range(channels)]).astype(np.float32)


@pytest.mark.parametrize("channels", [1, 2, 6, 8, 16])
@pytest.mark.parametrize("codec", CODECS)
def test_any_number_of_channels_becomes_their_mean(tmp_path, encode, codec, channels):
    container, options, off = CODECS[codec]
    samples = tones(channels)
    try:
        path = encode(tmp_path / "a", samples, codec, container=container, **options)
    except av.error.ArgumentError:
        if (codec, channels) != ("aac", 16):
            raise
        pytest.skip("AAC of this FFmpeg has fewer than 16 channels")
    found = sound(path)
    assert found.values.shape == (24_000,)
    np.testing.assert_allclose(found.values, samples.mean(axis=0), rtol=0, atol=off + 1e-7)
    assert sound(path, 16_000).values.shape == (8_000,)


def test_eight_channels_of_flac_become_their_mean(tmp_path, encode):
    samples = tones(8)
    path = encode(tmp_path / "a.flac", samples, "flac")
    np.testing.assert_allclose(sound(path).values, samples.mean(axis=0), atol=1e-4)


@pytest.mark.parametrize("tag", ["Café".encode("latin-1"), "音楽".encode("shift-jis"), b"\xff\xfe\x80\xc3\x28\x01"])
@pytest.mark.parametrize(("name", "codec"), [("a.wav", "pcm_s16le"), ("a.mp3", "libmp3lame"), ("a.flac", "flac")])
def test_tags_in_any_encoding_cost_nothing(tmp_path, encode, tag, name, codec):
    plain = encode(tmp_path / name, tones(1), codec)
    with av.open(str(plain)) as file:
        expected = sound(plain).values
        assert not file.metadata.get("title")
    tagged = tmp_path / f"tagged-{name}"
    tagged.write_bytes(with_title(plain.read_bytes(), tag))
    with suppress(UnicodeDecodeError), av.open(str(tagged)) as file:  # PyAV 18 refuses the file
        assert not "".join(file.metadata.values()).isprintable()
    np.testing.assert_array_equal(sound(tagged).values, expected)


def with_title(content, tag):
    if content.startswith(b"RIFF"):
        padded = tag + bytes(2 - len(tag) % 2)
        chunk = b"INFOINAM" + len(padded).to_bytes(4, "little") + padded
        return content[:36] + b"LIST" + len(chunk).to_bytes(4, "little") + chunk + content[36:]
    if content.startswith(b"fLaC"):
        comment = b"TITLE=" + tag
        block = bytes(4) + (1).to_bytes(4, "little") + len(comment).to_bytes(4, "little") + comment
        return content[:42] + b"\x04" + len(block).to_bytes(3) + block + content[42:]
    padded = tag[:30] + bytes(30 - len(tag[:30]))
    return content[content.index(b"\xff\xfb") :] + b"TAG" + padded + bytes(95)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF, 0x7FFFF000, 0x7FFFFFFF])
def test_a_wav_from_a_pipe_is_read_to_its_end(tmp_path, encode, size):
    whole = encode(tmp_path / "a.wav", tones(2), "pcm_s16le")
    content = bytearray(whole.read_bytes())
    at = content.index(b"data") + 4
    content[at : at + 4] = size.to_bytes(4, "little")
    content[4:8] = (0 if size == 0 else min(size + 36, 0xFFFFFFFF)).to_bytes(4, "little")
    (tmp_path / "pipe.wav").write_bytes(content)
    found = sound(tmp_path / "pipe.wav")
    np.testing.assert_array_equal(found.values, sound(whole).values)
    assert found.remarks == ()
    (tmp_path / "odd.wav").write_bytes(content[:-3])  # killed in the middle of a sample
    assert sound(tmp_path / "odd.wav").values.shape == (23_999,)


def test_what_ffmpeg_pipes_is_what_it_writes(tmp_path):
    piped = io.BytesIO()
    piped.seekable = lambda: False
    piped.seek = piped.tell = None
    with av.open(Pipe(piped), "w", format="wav") as file:
        stream = file.add_stream("pcm_s16le", rate=48_000, layout="mono")
        samples = np.round(tones(1) * 32767).astype(np.int16)
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate = 48_000
        file.mux(stream.encode(frame))
    assert b"data\xff\xff\xff\xff" in piped.getvalue()
    (tmp_path / "a.wav").write_bytes(piped.getvalue())
    np.testing.assert_allclose(sound(tmp_path / "a.wav").values, samples[0] / 32768, atol=1e-7)


class Pipe:
    def __init__(self, file):
        self.write = file.write


def test_a_wav_that_was_cut_is_corrupt_and_one_a_few_bytes_short_is_not(tmp_path, encode):
    content = encode(tmp_path / "a.wav", tones(1), "pcm_s16le").read_bytes()
    (tmp_path / "short.wav").write_bytes(content[:-6])
    found = sound(tmp_path / "short.wav")
    assert (len(found.values), found.remarks) == (23_997, ("the file states 6 bytes more than it contains",))
    (tmp_path / "cut.wav").write_bytes(content[:-2000])
    with pytest.raises(MediaFailure, match="2000 bytes are missing"):
        decode(str(tmp_path / "cut.wav"), Sound(48_000), Limits(damaged="drop"), 0.0)
    (remark,) = sound(tmp_path / "cut.wav").remarks
    assert remark == "4.2% of 0.5 s of sound is lost: the file is cut short: 2000 bytes are missing at its end"
    (tmp_path / "half.wav").write_bytes(content[: len(content) * 2 // 5])
    with pytest.raises(MediaFailure, match=r"6.* of 0.5 s of sound is lost"):
        sound(tmp_path / "half.wav")


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize("name", ["a.mp3", "a.opus"])
def test_what_is_announced_and_not_held_is_a_remark(tmp_path, encode, name, share):
    codec = {"a.mp3": "libmp3lame", "a.opus": "libopus"}[name]
    whole = encode(tmp_path / name, tones(1, seconds=6.0), codec)
    assert sound(whole).remarks == ()
    cut = tmp_path / f"cut-{name}"
    cut.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
    found = sound(cut)
    assert len(found.values) < 0.6 * 6 * 48_000
    assert any(mark in " ".join(found.remarks) for mark in ("states 6.0 s of sound, but contains", "may be cut short"))


def test_silence_is_remarked_on(tmp_path, encode):
    assert sound(encode(tmp_path / "a.wav", np.zeros((1, 4800), np.float32), "pcm_s16le")).remarks == (
        "all samples of the sound are zero",
    )


@pytest.mark.parametrize("peak", [2.0, 32_767.0])
def test_sound_beyond_full_scale_is_remarked_on(tmp_path, encode, peak):
    once = encode(tmp_path / "a.wav", tones(1, seconds=1.0), "pcm_f32le")
    loud = encode(
        tmp_path / "loud.wav", tones(1, seconds=1.0) / np.abs(tones(1, seconds=1.0)).max() * peak, "pcm_f32le"
    )
    assert sound(once).remarks == ()
    (remark,) = sound(loud).remarks
    assert remark.endswith(f"% of the sound is beyond full scale (up to {peak:.4g}) and clipped")
    assert np.abs(sound(loud).values).max() == 1.0


def test_a_decoder_that_overshoots_a_little_is_no_remark(tmp_path, encode):
    samples = np.full((1, 48_000), 0.5, np.float32)
    samples[0, :40] = 1.5
    assert sound(encode(tmp_path / "a.wav", samples, "pcm_f32le")).remarks == ()


@pytest.mark.parametrize("rate", [48_000, 16_000])
def test_the_first_seconds_are_those_of_the_whole(tmp_path, encode, rate):
    path = encode(tmp_path / "a", tones(2, seconds=1.0), "pcm_s16le", container="wav")
    whole = sound(path, rate)
    begun = decode(str(path), Sound(rate, seconds=0.25), Limits(seconds=0.5), 0.0)
    np.testing.assert_array_equal(begun.values, whole.values[: rate // 4])
    assert begun.seconds == 0.25
    assert begun.remarks == ()
    longer = decode(str(path), Sound(rate, seconds=9.0), Limits(), 0.0)
    np.testing.assert_array_equal(longer.values, whole.values)


@pytest.mark.parametrize(
    ("place", "sizes", "snapped"),
    [
        (1000, [312, 960], 1272), (791, [312, 960], 312), (793, [312, 960], 1272), (155, [312, 960], 155),
        (156, [312, 960], 312), (1000, [312, 900], 1000), (1000, [312], 1000), (1000, [], 1000),
    ],
)  # fmt: skip
def test_a_rounded_time_is_the_beginning_of_a_frame_of_constant_size(place, sizes, snapped):
    assert sound_file._snapped(place, 960, sizes) == snapped


@pytest.mark.parametrize(
    ("loud", "remarks"),
    [
        (0, ()), (9, ()), (10, ("0.1% of the sound is beyond full scale (up to 1.5) and clipped",)),
        (500, ("5.0% of the sound is beyond full scale (up to 1.5) and clipped",)),
    ],
)  # fmt: skip
def test_sound_beyond_full_scale_is_a_remark_from_a_share_on(loud, remarks):
    samples = np.full(10_000, -1.0, np.float32)
    samples[:loud] = -1.5
    assert sound_file._loudness(samples) == remarks
    assert sound_file._loudness(0 * samples) == ("all samples of the sound are zero",)


@pytest.mark.parametrize(
    ("duration", "skipped", "length"),
    [(None, 0.0, 1000), (900, 0.0, 900), (950, 0.1, 850), (1000, 0.0, 1000), (850, 0.0, 850), (849, 0.0, 1000),
     (50, 0.05, 1000), (1100, 0.0, 1000)],
)  # fmt: skip
def test_only_as_much_is_trimmed_as_an_encoder_pads(duration, skipped, length):
    track = SimpleNamespace(stream=SimpleNamespace(duration=duration, time_base=Fraction(1, 1000)))
    assert len(sound_file._trimmed(np.zeros(1000, np.float32), track, 1000, skipped)) == length


class Track:
    """A planted track of 10 samples a second, whose frames have (samples, time, packets lost so far)."""

    def __init__(self, *frames, beginning=0.0, first_time=0.0, time_base=Fraction(1, 10)):
        self.planted, self.beginning, self.first_time = frames, beginning, first_time
        self.damage = SimpleNamespace(lost=0, timed=True)
        self.stream = SimpleNamespace(time_base=time_base, rate=10)
        self.gaps, self.since, self.checked = [], [], []

    def frames(self, since=0.0):
        self.since.append(since)
        for number, (samples, time, lost) in enumerate(self.planted):
            self.damage.lost = lost
            yield SimpleNamespace(samples=samples, sample_rate=10, time=time, pts=5, number=number)

    def gap(self, *given):
        self.gaps.append(tuple(round(number, 6) if number is not None else None for number in given))
        return 0.4

    def check_segment(self, segment, begin, end):
        self.checked.append((begin, end))


def test_lost_packets_leave_silence_and_jumps_make_times_unusable():
    track = Track((5, 2.0, 0), (5, 2.5, 0), (5, 3.4, 2), (5, None, 3), (5, 9.0, 3))
    times = sound_file._Times(track)
    taken = [(frame.number, frame.pts, gap) for frame, gap in times.taken()]
    assert taken == [(0, None, 0.0), (1, None, 0.0), (2, None, 0.4), (3, None, 0.4), (4, None, 0.0)]
    assert track.gaps == [(0.4, 1.0, 1.0), (None, 1.9, 0.5)]
    assert (times.begin, times.time, times.silence, track.damage.timed) == (2.0, 9.0, 0.8, True)
    for jump, timed in ((0.09, True), (-0.09, True), (0.11, False), (-0.11, False)):
        track = Track((5, None, 0), (5, 0.0, 0), (5, 0.5 + jump, 0))
        list(sound_file._Times(track).taken())
        assert track.damage.timed is timed
    late = Track((5, 7.0, 0), (5, 7.5, 1), first_time=6.0)
    list(sound_file._Times(late).taken(6.0))
    assert (late.since, late.gaps) == ([6.0], [(0.0, 1.5, 0.5)])


TEN = [(10, float(second), 0) for second in range(6)]


@pytest.mark.parametrize(
    ("segment", "planted", "beginning", "parts", "begin", "checked"),
    [
        (Segment(0.0, math.inf), TEN, 0.0, [(n, 0, 10) for n in range(6)], 0.0, ()),
        (Segment(0.3, 1.2), TEN, 0.0, [(0, 3, 10), (1, 0, 2)], 0.3, (0.0, 2.0)),
        (Segment(0.0, 1.0), TEN, 0.0, [(0, 0, 10)], 0.0, (0.0, 1.0)),
        (Segment(4.5, math.inf), TEN, 0.0, [(4, 5, 10), (5, 0, 10)], 4.5, (4.0, 6.0)),
        (Segment(5.5, 9.0), TEN, 0.0, [(5, 5, 10)], 5.5, (5.0, 6.0)),
        (Segment(0.5, 0.9), TEN, 0.3, [(0, 8, 10), (1, 0, 2)], 0.8, (-0.3, 1.7)),
        (Segment(1.0, 3.5), TEN[2:], 0.0, [(0, 0, 10), (1, 0, 5)], 2.0, (2.0, 4.0)),
        (Segment(0.5, 2.0), TEN[2:], 0.0, [], 2.0, (2.0, 3.0)),
        (Segment(3.0, 4.0), [*TEN[:2], *TEN[4:]], 0.0, [], 0.0, (4.0, 5.0)),  # a pause of the sound
        (Segment(7.0, 9.0), TEN, 0.0, [], 0.0, (5.0, 6.0)),
    ],
)  # fmt: skip
def test_a_segment_is_cut_to_the_sample(monkeypatch, segment, planted, beginning, parts, begin, checked):
    monkeypatch.setattr(sound_file, "_part", lambda frame, first, last: (frame.number, first, last))
    track = Track(*planted, beginning=beginning)
    times = sound_file._Times(track)
    found = [part for part, _ in sound_file._cut(track, segment, times)]
    if segment.is_whole:
        found = [(frame.number, 0, frame.samples) for frame in found]
    assert found == parts
    assert times.begin == pytest.approx(begin)
    assert [*itertools.chain(*track.checked)] == pytest.approx([*checked])
