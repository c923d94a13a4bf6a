"""Times and lengths of a stream, from planted headers, packets and damage."""

import math
from fractions import Fraction
from types import SimpleNamespace

import av
import pytest

from aadml.feature_extraction.ground.segment import WHOLE, Segment
from aadml.feature_extraction.media.inputs import MediaFailure
from aadml.feature_extraction.media.streams import MediaSource
from aadml.feature_extraction.media.truncation import Ending

MILLISECOND = Fraction(1, 1000)
TEN = {"duration": 10_000}


def source(container=None, ending=None, tolerant=True, **stream):
    values = {"codec_context": object(), "type": "audio", "duration": None, "start_time": None, "index": 0}
    made = SimpleNamespace(**{**values, "time_base": MILLISECOND, **stream})
    held = {"start_time": None, "duration": None, "streams": [made], **(container or {})}
    return MediaSource(SimpleNamespace(**held), made, ending or Ending(), tolerant)


def test_times_of_a_stream_are_seconds_after_the_beginning_of_the_file():
    plain = source()
    assert (plain.beginning, plain.first_time, plain.announced(), plain.stream.thread_count) == (0.0, 0.0, None, 1)
    late = source({"start_time": 2_500_000}, start_time=3000, duration=9000)
    assert (late.beginning, late.first_time, late.announced()) == (2.5, 3.0, 9.0)
    assert [late.start(time) for time in (None, 2.0, 2.5, 4.1234567)] == [0.0, 0.0, 0.0, 1.623457]


def test_a_file_states_the_length_of_its_only_stream():
    held = {"duration": 4_000_000}
    assert source(held).announced() == 4.0
    stream = SimpleNamespace(type="audio")
    others = [SimpleNamespace(type=kind) for kind in ("data", "subtitle")]
    assert source({**held, "streams": [stream, *others]}).announced() == 4.0
    assert source({**held, "streams": [stream, SimpleNamespace(type="video")]}).announced() is None


def test_a_truncated_file_is_damage_or_a_failure():
    ending = Ending(100, tolerable=False)
    assert source(ending=ending).damage.cause == "the file is cut short: 100 bytes are missing at its end"
    with pytest.raises(MediaFailure, match="100 bytes are missing"):
        source(ending=ending, tolerant=False)
    assert source(ending=Ending(60), tolerant=False).damage.cause == ""


@pytest.mark.parametrize(
    ("segment", "end", "says"),
    [
        (WHOLE, 0.0, None), (Segment(2.0, 8.0), 8.0, None), (Segment(2.0, 8.0), 7.71, None),
        (Segment(2.0, 8.0), 7.69, "the segment ends at 8.0 s, but the sound ends at 7.690 s"),
        (Segment(2.0, 4.0), 3.76, None), (Segment(2.0, 4.0), 3.74, "the segment ends at 4.0 s, but the sound ends at"),
        (Segment(2.0, math.inf), 2.1, None),
        (Segment(2.0, math.inf), 2.0, "the segment begins at 2.0 s, but the sound ends at 2.000 s"),
        (Segment(2.0, 8.0), 1.0, "the segment begins at 2.0 s, but the sound ends at 1.000 s"),
    ],
)  # fmt: skip
def test_a_segment_may_end_a_little_after_the_stream(segment, end, says):
    if says is None:
        source().check_segment(segment, 0.0, end)
        return
    with pytest.raises(MediaFailure) as failure:
        source().check_segment(segment, 0.0, end)
    assert failure.value.reason == "outside"
    assert failure.value.detail.startswith(says)


@pytest.mark.parametrize(
    ("seconds", "stream", "end", "is_kept"),
    [(10, 7.6, 7.6, True), (10, None, 7.5, True), (10, 7.4, 7.4, False), (9.9, 7.6, 7.6, False), (10, 10, 7.6, False)],
)
def test_a_stream_may_end_before_a_segment_that_another_stream_fills(seconds, stream, end, is_kept):
    held = {"duration": round(seconds * 1e6), "streams": [SimpleNamespace(type=kind) for kind in ("audio", "video")]}
    track = source(held, duration=stream and round(stream * 1000))
    if is_kept:
        track.check_segment(Segment(5.0, 10.0), 0.0, end)
        found = track.remarks(end - 5.0, 0.0, Segment(5.0, 10.0), complete=False)
        assert found == (f"the segment lasts 5.0 s, but contains {end - 5.0:.1f} s of sound",)
        return
    with pytest.raises(MediaFailure, match=f"the segment ends at 10.0 s, but the sound ends at {end}"):
        track.check_segment(Segment(5.0, 10.0), 0.0, end)


def test_a_stream_may_begin_late_and_end_a_little_before_its_segment():
    streams = [SimpleNamespace(type=kind) for kind in ("audio", "video")]
    track, segment = source({"duration": 9_960_000, "streams": streams}), Segment(0.0, 10.0)
    track.check_segment(segment, 0.5, 9.95)
    remark = "the segment lasts 10.0 s, but contains 9.4 s of sound"
    assert track.remarks(9.45, 0.0, segment, complete=False) == (remark,)
    with pytest.raises(MediaFailure, match=r"begins at 0\.0 s, but the sound begins at 5\.100 s"):
        track.check_segment(segment, 5.1, 9.95)
    with pytest.raises(MediaFailure, match=r"ends at 10\.0 s, but the sound ends at 9\.490 s"):
        track.check_segment(segment, 0.5, 9.49)


@pytest.mark.parametrize(
    ("begin", "end", "remark", "problem"),
    [
        (2.24, 6.0, None, None),
        (2.26, 6.0, "the segment lasts 4.0 s, but contains 3.7 s of sound", None),
        (4.0, 10.0, "the segment lasts 4.0 s, but contains 2.0 s of sound", None),
        (3.0, 5.5, "the segment lasts 4.0 s, but contains 2.5 s of sound", None),
        (4.1, 10.0, None, "the segment begins at 2.0 s, but the sound begins at 4.100 s"),
        (6.0, 10.0, None, "the segment ends at 6.0 s, but the sound begins at 6.000 s"),
        (8.0, 9.0, None, "the segment ends at 6.0 s, but the sound begins at 8.000 s"),
        (3.0, 4.5, None, "the segment ends at 6.0 s, but the sound ends at 4.500 s"),
    ],
)
def test_a_stream_may_begin_within_a_segment_if_it_has_half_of_it(begin, end, remark, problem):
    segment, streams = Segment(2.0, 6.0), [SimpleNamespace(type=kind) for kind in ("audio", "video")]
    track = source({"streams": streams, "duration": None if end >= 6.0 else 10_000_000})
    if problem:
        with pytest.raises(MediaFailure) as failure:
            track.check_segment(segment, begin, end)
        assert (failure.value.reason, failure.value.detail) == ("outside", problem)
        return
    track.check_segment(segment, begin, end)
    assert track.remarks(3.0, 0.0, segment, complete=False) == ((remark,) if remark else ())


@pytest.mark.parametrize(
    ("stream", "end", "segment", "complete", "says"),
    [
        (TEN, 9.6, WHOLE, False, None),
        (TEN, 9.4, WHOLE, False, "the file states 10.0 s of sound, but contains 9.4 s"),
        (TEN, 9.4, WHOLE, True, None),
        ({**TEN, "type": "video"}, 5.0, Segment(4.0, math.inf), False,
         "the file states 10.0 s of video, but contains 9.0 s"),
        (TEN, 5.8, Segment(4.0, math.inf), False, None),
        (TEN, 1.0, Segment(4.0, 6.0), False, None),
        ({}, 1.0, WHOLE, False, None),
    ],
)  # fmt: skip
def test_a_stream_that_is_shorter_than_stated_is_remarked_on(stream, end, segment, complete, says):
    found = source(**stream).remarks(end, 0.0, segment, complete=complete)
    assert found == (() if says is None else (says,))


@pytest.mark.parametrize(
    ("stream", "ending", "timed", "end", "lost", "segment", "complete", "says"),
    [
        (TEN, Ending(), True, 10.0, 2.0, WHOLE, False, "20.0% of 10.0 s of sound is lost (1 of 4 packets): bad"),
        (TEN, Ending(), True, 4.0, 1.0, WHOLE, True, "25.0% of 4.0 s of sound is lost (1 of 4 packets): bad"),
        (TEN, Ending(), False, 6.0, 0.0, WHOLE, False, "25.0% of 8.0 s of sound is lost (1 of 4"),
        ({}, Ending(), True, 6.0, 0.0, WHOLE, False, "25.0% of 8.0 s of sound is lost (1 of 4 packets): bad"),
        (TEN, Ending(share=0.2), True, 6.0, 2.0, WHOLE, False, "20.0% of 5.0 s of sound is lost (1 of 4"),
        (TEN, Ending(), True, 6.0, 1.5, Segment(4.0, math.inf), False, "25.0% of 6.0 s of sound is lost"),
        (TEN, Ending(), True, 2.0, 0.5, Segment(4.0, 6.0), False, "25.0% of 2.0 s of sound is lost (1"),
        (TEN, Ending(), True, 2.0, 0.001, Segment(4.0, 6.0), False, None),
        ({"duration": 3_000}, Ending(), True, 6.0, 0.0, Segment(4.0, math.inf), False, None),
    ],
)  # fmt: skip
def test_damage_is_a_share_of_the_undamaged_length(stream, ending, timed, end, lost, segment, complete, says):
    damaged = source(ending=ending, **stream)
    damaged.damage.add("bad")
    damaged.damage.packets, damaged.damage.lost, damaged.damage.timed = 4, 1, timed
    found = damaged.remarks(end, lost, segment, complete=complete)
    assert [text[: len(says)] for text in found] == [says] if says else found == ()


@pytest.mark.parametrize(
    ("duration", "timed", "jump", "elapsed", "estimate", "gap"),
    [
        (None, True, None, 1.0, 0.5, 0.5), (None, False, 2.0, 1.0, 0.5, 0.5), (None, True, 2.0, 1.0, 0.5, 0.5),
        (None, True, 0.2, 1.0, 0.5, 0.2), (10_000, True, 2.0, 1.0, 0.5, 2.0), (10_000, True, 20.0, 1.0, 0.5, 9.0),
        (10_000, True, 2.0, 11.0, 0.5, 0.0), (10_000, True, -1.0, 1.0, 0.5, 0.0),
    ],
)  # fmt: skip
def test_a_gap_is_as_long_as_times_and_the_stated_length_allow(duration, timed, jump, elapsed, estimate, gap):
    track = source(duration=duration)
    track.damage.timed = timed
    assert track.gap(jump, elapsed, estimate) == gap


class Packet(SimpleNamespace):
    """Packet of frames at some times, or one that cannot be decoded."""

    is_corrupt, is_keyframe, size = False, True, 5

    def has_sidedata(self, kind):
        return False

    def decode(self):
        if self.times is None:
            raise av.error.InvalidDataError(1, "broken")
        return [SimpleNamespace(time=time) for time in self.times]


def opened(packets, seekable=True, **options):
    """A source whose file has packets from a position in seconds on, and the list of the positions sought."""
    sought = [0]

    def seek(place, stream):
        if not seekable:
            raise av.error.PermissionError(1, "no")
        sought.append(place)

    track = source({"demux": lambda stream: iter(packets(sought[-1] / 1000)), "seek": seek, **options})
    return track, sought


def times(frames):
    return [frame.time for frame in frames]


def from_key_frames(*keys):
    """Packets of one frame per second up to 30 s; reading begins at the last key frame at or before a position."""

    def packets(position):
        first = max((key for key in keys if key <= position), default=0)
        return (Packet(times=[float(time)], is_keyframe=time in keys) for time in range(first, 31))

    return packets


@pytest.mark.parametrize(
    ("keys", "since", "first", "sought"),
    [
        ((0, 10, 20), 25.0, 20.0, [24_000]),
        ((0, 10, 20), 1.0, 0.0, []),  # near the beginning, nothing is sought
        ((0, 10, 20), 1.5, 0.0, [500]),
        ((0, 10, 20), 10.5, 0.0, [9_500]),
    ],
)
def test_a_segment_is_decoded_from_the_key_frame_a_second_before_it(keys, since, first, sought):
    track, places = opened(from_key_frames(*keys))
    assert times(track.frames(since))[0] == first
    assert places[1:] == sought


def test_a_frame_after_the_segment_is_searched_for_again_and_then_from_the_beginning():
    def packets(position):
        late = position > 12  # a file whose positions are not exact
        return (Packet(times=[float(time)]) for time in range(28 if late else 16, 31))

    track, places = opened(packets)
    assert times(track.frames(24.0))[0] == 16.0
    assert places[1:] == [23_000, 14_000, -10_000]
    track, places = opened(lambda position: [Packet(times=[29.0])], start_time=1_000_000)
    assert times(track.frames(5.0)) == [29.0]
    assert places[1:] == [5_000, -9_000]


def test_a_file_that_cannot_be_positioned_is_decoded_from_its_beginning():
    track, places = opened(from_key_frames(0), seekable=False)
    assert len(times(track.frames(24.0))) == 31
    assert places == [0]


def test_decoding_after_a_position_settles_at_a_key_frame_and_later_losses_count():
    packets = [
        Packet(times=[1.0], is_keyframe=False), Packet(times=[2.0], is_corrupt=True), Packet(times=None),
        Packet(times=[3.0]), Packet(times=None), Packet(times=[4.0], is_corrupt=True), Packet(times=[5.0], size=0),
    ]  # fmt: skip
    track, _ = opened(lambda position: packets)
    assert times(track.frames(3.5)) == [3.0, 5.0]
    assert (track.damage.packets, track.damage.lost) == (6, 2)
    assert track.damage.cause == "InvalidDataError: broken"
    track, _ = opened(lambda position: packets[1:])
    assert times(track.frames()) == [3.0, 5.0]
    assert track.damage.cause == "the file ends, or is damaged, in the middle of a packet"
    assert (track.damage.packets, track.damage.lost) == (5, 4)


def test_reading_that_fails_ends_the_stream_as_damage(monkeypatch):
    def packets(position):
        yield Packet(times=[1.0])
        raise av.error.InvalidDataError(1, "gone")

    last = Packet(times=[2.0], size=0)
    monkeypatch.setattr(av, "Packet", lambda: last)
    track, _ = opened(packets)
    assert times(track.frames()) == [1.0, 2.0]  # a decoder may hold frames back to the end
    assert (last.stream, last.time_base) == (track.stream, MILLISECOND)
    assert track.damage.cause == "reading stops after 1 packets (InvalidDataError: gone)"
