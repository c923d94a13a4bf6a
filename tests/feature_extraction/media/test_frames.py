import math
from fractions import Fraction
from types import SimpleNamespace

import av
import numpy as np
import pytest
from av.stream import Disposition
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.media import frames as module
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Frames, Limits, MediaFailure, Pictures, Sound


def frames(path, inputs=None, **options):
    return decode(str(path), inputs or Frames(**options), Limits(), 0.0)


def numbers(clip):
    return np.round(clip.values[:, 16, 16, 1] / 20).astype(int).tolist()


def test_a_slideshow_has_a_row_for_every_second(tmp_path, slides):
    clip = frames(slides(tmp_path / "a.mp4", [0, 4, 8], end=12))
    assert numbers(clip) == [0] * 4 + [1] * 4 + [2] * 4
    assert clip.seconds == pytest.approx(12, abs=0.05)


def test_a_gap_holds_the_last_frame(tmp_path, slides):
    clip = frames(slides(tmp_path / "a.mp4", [0, 0.5, 1.0, 5.25, 5.5, 5.75, 6.0, 7.0], end=8))
    assert numbers(clip) == [0, 2, 2, 2, 2, 3, 6, 7]


def test_more_rows_than_frames_hold_each_frame_until_the_next(tmp_path, slides):
    clip = frames(slides(tmp_path / "a.mp4", [0, 1, 2], end=3), frames_per_second=4.0)
    assert numbers(clip) == [0] * 4 + [1] * 4 + [2] * 4


class Frame:
    def __init__(self, time, number):
        self.time, self.number = time, number


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 4000), min_size=1, max_size=12, unique=True).map(sorted),
    st.sampled_from([0.5, 1.0, 2.0, 5.0]),
    st.integers(1, 3000),
)
def test_equals_its_definition_on_any_times(times, rate, lasts):
    """Row k is the first frame due in [k / rate, (k + 1) / rate), else the last one due before."""
    seconds = [(time - times[0]) / 1000 for time in times]
    end = seconds[-1] + lasts / 1000
    grid = module._Grid(Frames(frames_per_second=rate, limit=10_000))
    grid._picture = lambda frame: frame
    for number, time in enumerate(seconds):
        grid.show(number, time)
    grid.close(end)
    expected = []
    for step in range(10_000):
        inside = [n for n, time in enumerate(seconds) if step <= time * rate + 1e-6 < step + 1]
        if not inside and step >= end * rate - 0.05:
            break
        expected.append(inside[0] if inside else max(n for n, time in enumerate(seconds) if time * rate < step + 1e-6))
    assert grid.pictures == expected


@pytest.mark.parametrize(
    ("shown", "begin", "end", "mean"),
    [
        ([(2.0, None)], 2.0, 0.0, 0.0),
        ([(2.0, 3)], 2.0, 0.75, 0.0),
        ([(2.0, None), (2.5, None)], 2.0, 1.0, 1.0),
        ([(2.0, None), (2.5, 1)], 2.0, 0.75, 1.0),
        ([(2.0, None), (2.5, None), (2.5, None)], 2.0, 1.0, 0.75),  # two frames at one time
        ([(2.0, None), (3.0, None), (2.5, None)], 2.0, 2.0, 1.5),  # a time never decreases
        ([(None, None), (None, None), (None, None)], 0.0, 0.3, 0.3),  # 10 frames per second
    ],
)
def test_a_clip_ends_with_the_duration_of_its_last_frame_or_of_the_one_before(shown, begin, end, mean):
    damage = SimpleNamespace(lost=0)
    clock = module._Clock(SimpleNamespace(stream=SimpleNamespace(average_rate=10), damage=damage))
    for time, duration in shown:
        clock.advance(SimpleNamespace(time=time, duration=duration, time_base=Fraction(1, 4)))
    assert (clock.count, clock.begin) == (len(shown), begin)
    assert (clock.end, clock.shown) == pytest.approx((end, mean))


def test_decoding_stops_after_the_last_frame_that_is_kept(tmp_path, render, monkeypatch):
    path = render(tmp_path / "a.mp4", seconds=20.0, tone=None)
    seen = []
    original = module._Clock.advance
    monkeypatch.setattr(module._Clock, "advance", lambda clock, frame: (seen.append(1), original(clock, frame)))
    clip = frames(path, limit=3)
    assert len(clip.values) == 3
    assert len(seen) == 21  # of 200: those of the first two seconds, and the first of the third
    np.testing.assert_array_equal(clip.values, frames(path).values[:3])


def test_a_clip_that_says_it_is_too_long_is_refused_though_decoding_stopped(tmp_path, render):
    path = render(tmp_path / "a.mp4", seconds=20.0, tone=None)
    with pytest.raises(MediaFailure, match="the video is longer than 10 s"):
        decode(str(path), Frames(limit=3), Limits(seconds=10), 0.0)


def test_decoding_goes_on_until_the_clip_is_long_enough(tmp_path, render):
    path = render(tmp_path / "a.mp4", seconds=3.0, tone=None)
    assert len(decode(str(path), Frames(limit=1), Limits(), 2.9).values) == 1
    with pytest.raises(MediaFailure, match="too-short"):
        decode(str(path), Frames(limit=1), Limits(), 3.1)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_the_offset_between_sound_and_picture_is_kept(tmp_path, slides, name):
    path = slides(tmp_path / name, [0, 1, 2, 3], end=4, tone_from=1.5)
    assert frames(path).start == 0.0
    assert decode(str(path), Sound(16_000), Limits(), 0.0).start == pytest.approx(1.5, abs=0.03)


def test_a_box_a_few_bytes_too_long_costs_nothing(tmp_path, render):
    path = render(tmp_path / "a.mp4")
    content = bytearray(path.read_bytes())
    at, box = 0, b""
    while at < len(content):
        last, box = at, bytes(content[at + 4 : at + 8])
        at += int.from_bytes(content[at : at + 4])
    assert box == b"moov"
    moved = content[:last][content.index(b"mdat") - 4 :]
    front = content[: content.index(b"mdat") - 4]
    start = len(front) + len(content[last:]) - content.index(b"mdat") + 4
    moov = shifted(bytes(content[last:]), start)
    longer = (int.from_bytes(moved[:4]) + 8).to_bytes(4) + moved[4:]
    (tmp_path / "long.mp4").write_bytes(bytes(front) + moov + bytes(longer))
    clip = frames(tmp_path / "long.mp4")
    np.testing.assert_array_equal(clip.values, frames(path).values)
    assert clip.remarks == ("the file states 8 bytes more than it contains",)


def shifted(moov, by):
    """Move the chunk offsets of an index by as much as its media move."""
    content, at = bytearray(moov), 0
    while (at := content.find(b"stco", at)) >= 0:
        count = int.from_bytes(content[at + 8 : at + 12])
        for entry in range(at + 12, at + 12 + 4 * count, 4):
            content[entry : entry + 4] = (int.from_bytes(content[entry : entry + 4]) + by).to_bytes(4)
        at += 4
    return bytes(content)


def test_a_video_shorter_than_it_says_is_remarked_on(tmp_path, render):
    whole = render(tmp_path / "a.avi", seconds=10.0, tone=None)
    with av.open(str(whole)) as file:
        chunks = [packet.pos for packet in file.demux(video=0) if packet.pos]
    (tmp_path / "cut.avi").write_bytes(whole.read_bytes()[: chunks[30]])
    clip = frames(tmp_path / "cut.avi")
    assert len(clip.values) == 3
    assert any("s of video, but contains 3.0 s" in remark for remark in clip.remarks)
    assert frames(whole).remarks == ()


@pytest.mark.parametrize(("size", "resized"), [((2, 128), "32 x 2048"), ((128, 2), "2048 x 32")])
def test_a_strip_that_becomes_too_large_is_refused(tmp_path, size, resized):
    path = tmp_path / "a.png"
    Image.new("RGB", size).save(path)
    pictures = Pictures(shortest=32, crop=(32, 32))
    assert decode(str(path), pictures, Limits(pixels=32 * 2048), 0.0).values.shape[1:] == (32, 32, 3)
    with pytest.raises(MediaFailure, match=f"pixels is resized to {resized}") as failure:
        decode(str(path), pictures, Limits(pixels=32 * 2048 - 1), 0.0)
    assert failure.value.reason == "too-large"


def test_a_clip_longer_than_what_is_looked_at_is_remarked_on(tmp_path, slides):
    path = slides(tmp_path / "a.mp4", [0, 4, 8], end=12)
    (remark,) = frames(path, limit=10).remarks
    assert remark == "the video lasts 12.0 s, but only its first 10 frames (10 s) are used"
    (remark,) = frames(path, limit=10, frames_per_second=4.0).remarks
    assert "only its first 10 frames (2.5 s)" in remark
    assert frames(path, limit=12).remarks == frames(path).remarks == ()


PLAIN, NO_LIMITS = Frames(), Limits()


class Track:
    """A planted track of frames at some times, of one frame per second, which records its remarks."""

    def __init__(self, times, announced=None, beginning=0.0, lost=0, size=(4, 3), stated=0.0):
        self.planted, self.length, self.beginning, self.size = times, announced, beginning, size
        self.damage = SimpleNamespace(lost=lost, cause="")
        context = SimpleNamespace(width=size[0], height=size[1])
        self.stream = SimpleNamespace(average_rate=1, codec_context=context)
        self.stated, self.first_time, self.read, self.remarked, self.checked = stated, 0.0, 0, [], []

    def frames(self, since):
        for number, time in enumerate(self.planted):
            self.read += 1
            yield SimpleNamespace(time=time, number=number, width=4, height=3, duration=None, time_base=None)

    def announced(self):
        return self.length

    def start(self, first):
        return max(0.0, first - self.beginning)

    def remarks(self, end, lost, segment, *, complete):
        self.remarked.append((end, lost, complete))
        return ("a remark",)

    def check_segment(self, segment, begin, end):
        self.checked.append((begin, end))


@pytest.fixture
def planted(monkeypatch):
    """Return a function that decodes a planted track, whose pictures are the numbers of their frames."""

    def planted(track, inputs=PLAIN, limits=NO_LIMITS, minimum=0.0, segment=WHOLE):
        tolerant = []
        monkeypatch.setattr(module, "MediaSource", lambda *given: tolerant.append(given[-1]) or track)
        monkeypatch.setattr(module, "_stream", lambda _: None)
        monkeypatch.setattr(module._Grid, "_picture", lambda _, frame: np.asarray(frame.number))
        clip = module.decoded_frames(None, inputs, limits, minimum, segment, None)
        assert tolerant == [limits.damaged == "keep"]
        return clip.values.tolist(), clip.start, clip.seconds, clip.remarks

    return planted


SIX = [float(number) for number in range(6)]


def part(start, end):
    return {"segment": Segment(start, end)}


CUT = "the video lasts {} s, but only its first 2 frames (2 s) are used"


@pytest.mark.parametrize(
    ("track", "options", "clip", "remarked", "read"),
    [
        (Track([0.0, 1.0, 2.0]), {}, ([0, 1, 2], 0.0, 3.0, ()), (3.0, 0.0, False), 3),
        (Track([5.0, 6.0], beginning=3.0), {}, ([0, 1], 2.0, 2.0, ()), (2.0, 0.0, False), 2),
        (Track([0.0, 1.0, 4.0]), {}, ([0, 1, 1, 1, 2, 2, 2], 0.0, 7.0, ()), (7.0, 4.0, False), 3),
        (Track([None, None, None], lost=1), {}, ([0, 1, 2], 1.0, 3.0, ()), (3.0, 0.0, False), 3),
        (Track([0.0, 1.0, 2.0]), {"inputs": Frames(limit=2)}, ([0, 1], 0.0, 2.0, ()), (2.0, 0.0, True), 2),
        (Track([0.0, 1.0, 2.0], 9.0), {"inputs": Frames(limit=2)}, ([0, 1], 0.0, 2.0, (CUT.format("9.0"),)),
         (2.0, 0.0, True), 2),
        (Track([0.0, 1.0, 2.0, 3.0]), {"inputs": Frames(limit=2), "minimum": 2.0},
         ([0, 1], 0.0, 3.0, (CUT.format("3.0"),)), (3.0, 0.0, True), 3),
        (Track([0.0, 1.0, 2.0], stated=9.0), {"inputs": Frames(limit=2)}, ([0, 1], 0.0, 2.0, (CUT.format("9.0"),)),
         (2.0, 0.0, True), 2),
        (Track(SIX, stated=9.0), {**part(1.0, 5.0), "inputs": Frames(limit=2)},
         ([1, 2], 0.0, 2.0, (CUT.format("4.0"),)), (2.0, 0.0, True), 3),
        (Track([0.0, 1.0], 9.0), {}, ([0, 1], 0.0, 2.0, ()), (2.0, 0.0, False), 2),
        (Track([0.0, 1.0], stated=9.0), {}, ([0, 1], 0.0, 2.0, ()), (2.0, 0.0, False), 2),
        (Track(SIX), part(1.0, 3.0), ([1, 2], 0.0, 2.0, ()), (2.0, 0.0, False), 4),
        (Track(SIX), part(1.5, 3.5), ([2, 3], 0.0, 2.0, ()), (2.0, 0.0, False), 5),
        (Track([0.0, 4.0, 8.0]), part(2.0, 6.0), ([0, 0, 1, 1], 0.0, 4.0, ()), (4.0, 0.0, False), 3),
        (Track([0.0, 4.0, 8.0]), part(5.0, 7.5), ([1, 1, 1], 0.0, 2.5, ()), (2.5, 0.0, False), 3),
        (Track([0.0, 4.0, 8.0]), part(8.5, 8.75), ([2], 0.0, 0.25, ()), (0.25, 0.0, False), 3),
        (Track([0.0, 4.0, 8.0]), part(8.75, math.inf), ([2], 0.0, 0.25, ()), (0.25, 0.0, False), 3),
        (Track([0.0, 4.0, 8.0]), {**part(4.0, 7.0), "minimum": 3.0}, ([1, 1, 1], 0.0, 3.0, ()), (3.0, 0.0, False), 3),
        (Track([0.0, 4.0, 8.0], lost=1), part(5.0, 7.0), ([1, 1], 0.0, 2.0, ()), (2.0, 1.0, False), 3),
        (Track([0.0, 1.0, 9.0]), part(0.0, 4.0), ([0, 1, 1, 1], 0.0, 4.0, ()), (4.0, 0.0, False), 3),
        (Track([None, None, None]), part(1.25, 1.75), ([1], 0.0, 0.5, ()), (0.5, 0.0, False), 3),
        (Track([0.0, 4.0, 8.0], lost=1), part(2.0, 6.0), ([0, 0, 1, 1], 0.0, 4.0, ()), (4.0, 3.0, False), 3),
        (Track([2.0, 3.0, 4.0]), part(1.0, 4.0), ([0, 1], 1.0, 2.0, ()), (2.0, 0.0, False), 3),
        (Track([3.0, 4.0, 5.0], beginning=2.0), part(2.0, 4.0), ([1, 2], 0.0, 2.0, ()), (2.0, 0.0, False), 3),
    ],
)  # fmt: skip
def test_a_clip_has_its_frames_its_start_its_length_and_remarks(planted, track, options, clip, remarked, read):
    assert planted(track, **options) == (*clip[:3], ("a remark", *clip[3]))
    assert track.remarked == [remarked]
    assert track.read == read


@pytest.mark.parametrize(
    ("track", "options", "reason", "detail"),
    [
        (Track([]), {}, "corrupt", "the video stream yields no frames"),
        (Track([0.0, 1.0, 2.0]), {"minimum": 3.1}, "too-short", "the video lasts 3.000 s, but 3.1 s are needed"),
        (Track([0.0, 1.0, 2.0]), {"limits": Limits(seconds=1.5)}, "too-large", "the video is longer than 1.5 s"),
        (Track([0.0, 1.0], 9.0), {"inputs": Frames(limit=1), "limits": Limits(seconds=8.9)}, "too-large",
         "the video is longer than 8.9 s"),
        (Track([0.0, 1.0], stated=9.0), {"inputs": Frames(limit=1), "limits": Limits(seconds=8.9)}, "too-large",
         "the video is longer than 8.9 s"),
        (Track([0.0], size=(5, 3)), {"limits": Limits(pixels=14)}, "too-large",
         "frames have 5 x 3 pixels; the limit is 14"),
        (Track([0.0], size=(2, 2)), {"limits": Limits(pixels=11)}, "too-large",
         "a frame has 4 x 3 pixels; the limit is 11"),
    ],
)  # fmt: skip
def test_a_clip_beyond_the_limits_is_refused(planted, track, options, reason, detail):
    with pytest.raises(MediaFailure) as failure:
        planted(track, **options)
    assert (failure.value.reason, failure.value.detail) == (reason, detail)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv"])
def test_a_video_with_sound_that_is_not_decoded_to_its_end_has_the_length_of_the_file(tmp_path, slides, name):
    path = slides(tmp_path / name, [0, 1, 2, 3], end=4, tone_from=0.0)
    (remark,) = frames(path, limit=2).remarks
    assert remark == "the video lasts 4.0 s, but only its first 2 frames (2 s) are used"
    with pytest.raises(MediaFailure, match=r"the video is longer than 3 s"):
        decode(str(path), Frames(limit=2), Limits(seconds=3), 0.0)
    assert frames(path).remarks == ()


@pytest.mark.parametrize("rate", [0.5, 1.0, 1.6, 4.0])
@pytest.mark.parametrize(("limit", "last"), [(3, 8.0), (300, 8.0), (300, 8.03), (300, 8.2)])
def test_the_number_of_frames_follows_from_the_seconds_of_a_clip(planted, rate, limit, last):
    inputs = Frames(rate, limit=limit)
    values, _, seconds, _ = planted(Track([*np.arange(0, last, 0.01), last]), inputs)
    assert inputs.steps(seconds) == len(values)
    assert seconds <= last + 0.01 + 0.06 / rate


@pytest.mark.parametrize(
    ("times", "beginning", "segment", "checked"),
    [
        ([0.0, 4.0, 8.0], 0.0, Segment(5.0, 7.0), (0.0, 8.0)),  # frame 1 is shown until frame 2
        ([0.0, 4.0, 8.0], 0.0, Segment(5.0, 8.5), (0.0, 9.0)),
        ([0.0, 4.0, 8.0], 0.0, Segment(8.5, 10.0), (0.0, 9.0)),
        ([5.0, 6.0, 9.0], 3.0, Segment(1.0, 4.0), (2.0, 6.0)),
    ],
)
def test_a_segment_is_compared_with_the_times_of_the_stream(planted, times, beginning, segment, checked):
    track = Track(times, beginning=beginning)
    planted(track, segment=segment)
    assert track.checked == [checked]


def test_a_clip_at_the_limits_is_decoded(planted):
    assert planted(Track([0.0, 1.0]), limits=Limits(seconds=1.0, pixels=12), minimum=2.0)[2] == 2.0
    assert planted(Track([0.0, 1.0], 9.0), Frames(limit=1), Limits(seconds=9.0, damaged="drop"))[0] == [0]


def test_a_cover_is_not_a_video():
    cover, video = (SimpleNamespace(disposition=Disposition(d)) for d in (Disposition.attached_pic, 0))
    for streams, detail in (
        ([cover] * 2, "the file has only cover pictures (2)"),
        ([], "the file has no video stream"),
    ):
        with pytest.raises(MediaFailure) as failure:
            module._stream(SimpleNamespace(streams=SimpleNamespace(video=streams)))
        assert (failure.value.reason, failure.value.detail) == ("no-video", detail)
    assert module._stream(SimpleNamespace(streams=SimpleNamespace(video=[cover, video, cover]))) is video


def test_frames_without_a_stated_rate_are_25_a_second():
    clock = module._Clock(SimpleNamespace(stream=SimpleNamespace(average_rate=None), damage=SimpleNamespace(lost=2)))
    for _ in range(3):
        clock.advance(SimpleNamespace(time=None, duration=None, time_base=None))
    assert (clock.rate, clock.begin, clock.seconds, clock.held) == (
        25.0,
        0.08,
        pytest.approx(0.08),
        pytest.approx(0.12),
    )
