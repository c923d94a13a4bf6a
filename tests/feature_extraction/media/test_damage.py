"""Damaged clips: bytes of encoded files are overwritten, and the rest of the clip stays at its time."""

import av
import numpy as np
import pytest

from aadml.feature_extraction.ground.segment import Segment
from aadml.feature_extraction.media.damage import Damage
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Frames, Limits, MediaFailure, Sound

RATE = 48_000


def packets(path):
    with av.open(str(path)) as file:
        return [(packet.pos, packet.size) for packet in file.demux(file.streams[0]) if packet.size]


def overwritten(path, places):
    content = bytearray(path.read_bytes())
    for position, new in places:
        content[position : position + len(new)] = new
    damaged = path.with_name("damaged-" + path.name)
    damaged.write_bytes(content)
    return damaged


def decoded(path, inputs):
    """Decode a damaged clip, which fails if damage is to be dropped."""
    with pytest.raises(MediaFailure) as failure:
        decode(str(path), inputs, Limits(damaged="drop"), 0.0)
    assert failure.value.reason == "corrupt"
    return decode(str(path), inputs, Limits(), 0.0)


def steps(seconds):
    """A tone whose loudness rises four times a second, so that each moment is recognizable: (1, s)."""
    times = np.arange(int(seconds * RATE)) / RATE
    loudness = (1 + np.floor(4 * times)) / (4 * seconds + 1)
    return (0.8 * loudness * np.sin(2 * np.pi * 440 * times)).astype(np.float32)[None]


def loudness(samples, moment):
    """Largest sample within 20 ms of a moment."""
    begin = int(RATE * (moment - 0.01))
    return np.abs(samples[begin : begin + int(0.02 * RATE)]).max()


@pytest.mark.parametrize(
    ("name", "codec", "begin", "bad"),
    [
        ("a.m4a", "aac", 0, b"\xff" * 999),
        ("a.mp3", "libmp3lame", 4, b"\xff" * 999),
        ("a.ts", "ac3", 30, bytes(range(7, 47))),
    ],
)
def test_lost_sound_is_silence_and_later_sound_keeps_its_time(tmp_path, encode, name, codec, begin, bad):
    whole = encode(tmp_path / name, steps(3.0), codec)
    places = packets(whole)
    position, size = places[len(places) // 2]
    clip = decoded(overwritten(whole, [(position + begin, bad[: size - begin])]), Sound(RATE))
    expected = decode(str(whole), Sound(RATE), Limits(), 0.0)
    assert abs(len(clip.values) - len(expected.values)) <= 1
    (remark,) = clip.remarks
    assert f"% of {expected.seconds:.1f} s of sound is lost (1 of " in remark
    assert 0.5 / len(places) < float(remark.split("%")[0]) / 100 < 2.5 / len(places)
    for moment in (0.4, 0.9, 1.2, 1.9, 2.4, 2.9):
        assert loudness(clip.values, moment) == pytest.approx(loudness(expected.values, moment), rel=0.02)
    lost = np.flatnonzero(np.abs(clip.values[: len(expected.values)] - expected.values[: len(clip.values)]) > 0.05)
    assert lost[[0, -1]] / RATE == pytest.approx(1.5, abs=0.15)
    assert (clip.values[lost[0] : lost[-1]] == 0).mean() > 0.3


@pytest.mark.parametrize(("start", "end"), [(1.2, 1.9), (1.7, 2.6), (2.0, float("inf")), (0.3, 0.9)])
@pytest.mark.parametrize(("name", "codec", "begin"), [("a.m4a", "aac", 0), ("a.mp3", "libmp3lame", 4)])
def test_a_segment_of_damaged_sound_keeps_its_times(tmp_path, encode, name, codec, begin, start, end):
    whole = encode(tmp_path / name, steps(3.0), codec)
    places = packets(whole)
    position, size = places[len(places) // 2]
    damaged = overwritten(whole, [(position + begin, b"\xff" * (size - begin))])
    part = decode(str(damaged), Sound(RATE), Limits(), 0.0, Segment(start, end))
    expected = decode(str(whole), Sound(RATE), Limits(), 0.0, Segment(start, end))
    assert abs(len(part.values) - len(expected.values)) <= 1
    assert part.start == expected.start
    for moment in np.arange(start + 0.05, min(end, 2.95) - 0.02, 0.05):
        if abs(moment - 1.5) > 0.15:
            at = moment - start
            assert loudness(part.values, at) == pytest.approx(loudness(expected.values, at), rel=0.02)
    assert bool(part.remarks) == (start < 1.5 < end)


@pytest.mark.parametrize("tail", [b"\xff\xfb\x94\x64" + b"\xff" * 413, b"APETAGEX" + b"\xff\xfb\x94\x64" * 300])
def test_garbage_after_a_song_loses_nothing_of_it(tmp_path, encode, tail):
    whole = encode(tmp_path / "a.mp3", steps(2.0), "libmp3lame")
    (tmp_path / "tagged.mp3").write_bytes(whole.read_bytes() + tail)
    clip, expected = decoded(tmp_path / "tagged.mp3", Sound(RATE)), decode(str(whole), Sound(RATE), Limits(), 0.0)
    np.testing.assert_array_equal(clip.values[: len(expected.values)], expected.values)
    assert len(clip.values) - len(expected.values) < 0.05 * RATE  # the padding of the encoder
    assert "% of 2.0 s of sound is lost (" in clip.remarks[0] or "% of 2.2 s of sound is lost (" in clip.remarks[0]


@pytest.mark.skipif("libopencore_amrnb" not in av.codecs_available, reason="PyAV has no encoder for AMR")
def test_empty_packets_of_amr_are_silence(tmp_path):
    with av.open(str(tmp_path / "a.amr"), "w") as file:
        stream = file.add_stream("libopencore_amrnb", rate=8000, layout="mono")
        samples = (9000 * np.sin(np.arange(32_000))).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
        frame.sample_rate = 8000
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    content = (tmp_path / "a.amr").read_bytes()
    size = packets(tmp_path / "a.amr")[0][1]
    middle = 6 + 100 * size
    (tmp_path / "b.amr").write_bytes(content[:middle] + b"\x7c\x7c" + content[middle:])
    clip = decoded(tmp_path / "b.amr", Sound(8000))
    expected = decode(str(tmp_path / "a.amr"), Sound(8000), Limits(), 0.0)
    np.testing.assert_array_equal(clip.values[16_000:16_320], 0)
    np.testing.assert_array_equal(clip.values[17_000:32_000], expected.values[16_680:31_680])
    assert "(2 of " in clip.remarks[0]


def test_sound_without_a_time_scale_is_measured_by_its_samples(tmp_path, encode):
    whole = encode(tmp_path / "a.m4a", steps(3.0), "aac")
    content = whole.read_bytes()
    scale = content.index(b"mdhd") + 16
    edits = content.index(b"edts")
    (position, size), *_ = packets(whole)[70:]
    places = [(scale, bytes(4)), (edits, b"free"), (position, b"\xff" * size)]
    clip = decoded(overwritten(whole, places), Sound(RATE))
    assert clip.seconds == pytest.approx(3.0, abs=0.05)
    assert clip.remarks[0].startswith("0.7% of 3.0 s of sound is lost (1 of ")


@pytest.mark.parametrize("codec", ["libx264", "mpeg4"])
@pytest.mark.parametrize("number", [1, 14])
def test_a_lost_frame_does_not_shift_later_frames(tmp_path, render, codec, number):
    whole = render(tmp_path / "a.mp4", seconds=3.0, tone=None, codecs=(codec, ""))
    position = packets(whole)[number][0]
    damaged = overwritten(whole, [(position, b"\x0f\xff\xff\xff")])
    clip = decoded(damaged, Frames(frames_per_second=10.0))
    expected = decode(str(whole), Frames(frames_per_second=10.0), Limits(), 0.0)
    assert clip.values.shape == expected.values.shape == (30, 48, 64, 3)
    assert clip.remarks[0].startswith("3.3% of 3.0 s of video is lost (1 of 30 packets): InvalidDataError")
    np.testing.assert_allclose(clip.values[:, 24, 40, 1], expected.values[:, 24, 40, 1], atol=6)


def test_the_only_intact_frame_is_not_shown_until_the_end_of_the_file(tmp_path, slides):
    whole = slides(tmp_path / "a.avi", [0, 4, 8], end=12)
    damaged = overwritten(whole, [(place + 8, b"\xff" * (size - 8)) for place, size in packets(whole)[1:]])
    with pytest.raises(MediaFailure, match=r"begins at 0\.5 s, but the video ends at 0\.0"):
        decode(str(damaged), Frames(), Limits(), 0.0, Segment(0.5, 2.5))


@pytest.mark.parametrize("share", [0.45, 0.7])
def test_at_least_half_of_the_stated_length_is_needed(tmp_path, render, share):
    whole = render(tmp_path / "a.mp4", seconds=4.0, tone=None, codecs=("libx264", ""))
    places = packets(whole)
    bad = [(position, b"\x0f\xff\xff\xff") for position, _ in places[round(share * len(places)) :]]
    damaged = overwritten(whole, bad)
    if share < 0.5:
        with pytest.raises(MediaFailure, match=r"5\d\.\d% of 4.0 s of video is lost") as failure:
            decode(str(damaged), Frames(), Limits(), 0.0)
        assert failure.value.reason == "corrupt"
    else:
        assert decoded(damaged, Frames()).seconds == pytest.approx(4 * share, abs=0.11)


def test_a_cut_webm_keeps_its_beginning(tmp_path, render):
    whole = render(tmp_path / "a.webm", seconds=4.0, rate=48_000, codecs=("libvpx", "libopus"))
    (tmp_path / "cut.webm").write_bytes(whole.read_bytes()[: int(0.8 * whole.stat().st_size)])
    for inputs in (Sound(16_000), Frames(frames_per_second=10.0)):
        clip, expected = decoded(tmp_path / "cut.webm", inputs), decode(str(whole), inputs, Limits(), 0.0)
        assert 2.0 < clip.seconds < 4.0
        assert "% of 4.0 s of" in clip.remarks[0]
        assert "the file is cut short" in clip.remarks[0]
        count = int(0.9 * len(clip.values))
        np.testing.assert_array_equal(clip.values[:count], expected.values[:count])


def test_damage_after_the_wanted_part_costs_nothing(tmp_path, encode):
    whole = encode(tmp_path / "a.m4a", steps(3.0), "aac")
    position, size = packets(whole)[-3]
    damaged = overwritten(whole, [(position, b"\xff" * size)])
    clip = decode(str(damaged), Sound(RATE, seconds=1.0), Limits(damaged="drop"), 0.0)
    assert (len(clip.values), clip.remarks) == (RATE, ())


def test_the_share_is_that_of_the_length():
    damage = Damage(True, "bad")
    damage.packets, damage.lost = 10, 2
    assert damage.remark("sound", 8.0, 10.0) == "20.0% of 10.0 s of sound is lost (2 of 10 packets): bad"
    assert damage.remark("sound", 12.0, 10.0).startswith("0.0%")
    assert damage.remark("sound", 5.0, 10.0).startswith("50.0%")
    for held, length in [(4.9, 10.0), (0.0, 0.0)]:
        with pytest.raises(MediaFailure):
            damage.remark("sound", held, length)
    with pytest.raises(MediaFailure, match="bad"):
        Damage(False, "bad")
