import contextlib
import csv
import errno
import io
import os
import re
import socket
from fractions import Fraction
from types import SimpleNamespace

import av
import cv2
import numpy as np
import pytest
from av.format import Flags
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aadml.feature_extraction.ground.file_content import stamp_of
from aadml.feature_extraction.media import decoding
from aadml.feature_extraction.media.decoding import decode, decoder_versions
from aadml.feature_extraction.media.inputs import REASONS, Frames, Limits, MediaFailure, Sound, Text

SOUND, FRAMES, LIMITS, DROP = Sound(16_000), Frames(), Limits(), Limits(damaged="drop")


def reason(path, inputs, limits=LIMITS, minimum_seconds=0.0):
    try:
        decode(str(path), inputs, limits, minimum_seconds)
    except MediaFailure as failure:
        return failure.reason
    return "ok"


def values(path, inputs):
    return decode(str(path), inputs, LIMITS, 0.0).values


def peak(samples, rate):
    return np.argmax(np.abs(np.fft.rfft(samples))) * rate / len(samples)


@pytest.mark.parametrize("rate", [8_000, 16_000, 32_000])
def test_sound_keeps_its_pitch_and_its_length_at_any_rate(tmp_path, render, rate):
    samples = values(render(tmp_path / "a.mp4", seconds=1.5, tone=440), Sound(rate))
    assert samples.dtype == np.float32
    assert len(samples) == 1.5 * rate  # the encoder's padding is trimmed
    assert peak(samples, rate) == pytest.approx(440, abs=1)
    assert np.abs(samples).max() == pytest.approx(0.5, abs=0.1)  # the encoder of FFmpeg 9 changes the peak by 0.07


def test_two_channels_become_their_mean(tmp_path, render):
    one_of_two = render(tmp_path / "a.wav", channels=2, picture=False, codecs=("", "pcm_s16le"))
    for rate in (16_000, 8_000):
        assert np.abs(values(one_of_two, Sound(rate))).max() == pytest.approx(0.25, abs=0.005)


def test_keeps_the_first_frame_of_every_second(tmp_path, render):
    frames = values(render(tmp_path / "a.mp4", seconds=3.4), FRAMES)
    assert frames.shape == (4, 48, 64, 3)
    assert frames.dtype == np.uint8
    np.testing.assert_allclose(frames[:, 24, 40, 1], [10, 50, 90, 130], atol=4)


@pytest.mark.parametrize(("per_second", "count"), [(0.5, 2), (1, 3), (4, 12), (10, 30), (20, 60), (100, 300)])
def test_keeps_as_many_frames_a_second_as_asked_for(tmp_path, render, per_second, count):
    path = render(tmp_path / "a.mp4", seconds=3.0)
    assert len(values(path, Frames(frames_per_second=per_second))) == count
    assert len(values(path, Frames(frames_per_second=per_second, limit=2))) == 2


@pytest.mark.parametrize(("height", "width"), [(24, 32), (100, 100), (1, 1)])
def test_resizes_frames(tmp_path, render, height, width):
    frames = values(render(tmp_path / "a.mp4"), Frames(height=height, width=width))
    assert frames.shape == (2, height, width, 3)


def test_shows_rotated_video_upright_as_opencv_does(shared_data):
    for name in ["video_only/video_rotation_90.mp4", "clean_av/fire2.mp4"]:
        path = str(shared_data / "media" / name)
        expected = cv2.cvtColor(cv2.VideoCapture(path).read()[1], cv2.COLOR_BGR2RGB)
        first = values(path, FRAMES)[0]
        assert first.shape == expected.shape
        assert np.abs(first.astype(int) - expected).mean() < 2


@pytest.mark.slow
def test_every_real_file_decodes_or_fails_as_its_list_says(shared_data):
    with (shared_data / "media" / "MANIFEST.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 36
    for row in rows:
        path = shared_data / "media" / row["file"]
        damaged = row["file"] == "corrupt/corrupted.mp4"  # 49 of its 50 frames are intact
        broken = not damaged and bool(row["decode_error_pyav18"])
        has_sound, frames = " a:" in f" {row['streams']}", int(row["decoded_video_frames"])
        covers = row["file"] in ("audio_only/silence-44-s.flac", "odd/has-tags.m4a")
        has_video = " v:" in f" {row['streams']}" and not covers
        for inputs, there, count, absent in [
            (SOUND, has_sound, int(row["decoded_audio_samples"]), "no-audio"),
            (FRAMES, has_video, frames, "no-video"),
        ]:
            unopened = "FAIL" in row["streams"]
            expected = "corrupt" if unopened or (there and (broken or not count)) else "ok" if there else absent
            assert reason(path, inputs) == expected, row["file"]


def test_a_file_without_the_wanted_stream_says_so(tmp_path, render):
    assert reason(render(tmp_path / "mute.mp4", tone=None), SOUND) == "no-audio"
    assert reason(render(tmp_path / "blind.m4a", picture=False), FRAMES) == "no-video"


def test_what_is_not_a_file_is_missing(tmp_path):
    for path in [tmp_path / "none.mp4", tmp_path, "", "a\0b"]:
        assert reason(path, SOUND) == "missing"


def test_a_special_file_is_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path, kind in [(tmp_path / "pipe", "pipe"), (tmp_path / "socket", "socket"), ("/dev/zero", "device")]:
            with pytest.raises(MediaFailure, match=f"is a {kind}") as failure:
                decode(str(path), SOUND, LIMITS, 0.0)
            assert failure.value.reason == "special-file"


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="the system has no /proc")
@pytest.mark.parametrize("path", ["/proc/self/mem", "/proc/cpuinfo"])
def test_a_file_of_the_kernel_is_special(path):
    assert reason(path, SOUND) == "special-file"
    assert stamp_of(path) == (), "the content is not read, since reading may never end"


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize(
    ("name", "codecs"),
    [("a.mp4", ("mpeg4", "aac")), ("a.webm", ("libvpx", "libopus")), ("a.avi", ("mpeg4", "pcm_s16le"))],
)
def test_a_file_that_was_cut_short_is_corrupt(tmp_path, render, name, codecs, share):
    path = render(tmp_path / name, rate=48_000, codecs=codecs)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    assert "corrupt" in {reason(path, SOUND, DROP), reason(path, FRAMES, DROP)}
    if share < 0.5:
        assert "corrupt" in {reason(path, SOUND), reason(path, FRAMES)}


def test_a_video_whose_index_was_cut_off_says_so(tmp_path, render):
    whole = render(tmp_path / "a.mp4").read_bytes()
    assert whole.index(b"mdat") < whole.index(b"moov")
    (tmp_path / "cut.mp4").write_bytes(whole[: whole.index(b"moov") - 100])
    (tmp_path / "empty.mp4").touch()
    for inputs in (SOUND, FRAMES):
        with pytest.raises(MediaFailure, match="the file is cut short: 96 bytes are missing"):
            values(tmp_path / "cut.mp4", inputs)
        with pytest.raises(MediaFailure, match="the file is empty"):
            values(tmp_path / "empty.mp4", inputs)


def test_a_damaged_real_video_is_kept_unless_damage_is_dropped(shared_data):
    path = shared_data / "media/corrupt/corrupted.mp4"
    (remark,) = decode(str(path), FRAMES, LIMITS, 0.0).remarks
    assert remark.startswith("2.0% of 5.0 s of video is lost (1 of 50 packets): InvalidDataError")
    assert reason(path, FRAMES, DROP) == "corrupt"


@settings(  # the same damage each time: a decoder may take its process down, which here is that of the tests
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damage_anywhere_is_answered_with_a_reason(tmp_path, render, data):
    path = tmp_path / "whole.mp4"
    if not path.exists():
        render(path)
    content = bytearray(path.read_bytes())
    start = data.draw(st.integers(0, len(content) - 1))
    noise = data.draw(st.binary(min_size=1, max_size=200))
    content[start : start + len(noise)] = noise
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(content)
    for inputs in (SOUND, FRAMES):
        assert reason(damaged, inputs) in {"ok", *REASONS}


@pytest.mark.parametrize(("track", "inputs"), [(b"vide", FRAMES), (b"soun", SOUND)])
def test_a_codec_without_a_decoder_is_named(tmp_path, render, track, inputs):
    path = render(tmp_path / "a.mp4")
    content = path.read_bytes()
    entry = content.index(b"stsd", content.index(track)) + 16  # the name of the codec
    details = content.index(b"esds", entry)  # where MPEG-4 names it again
    content = content[:entry] + b"ZZZZ" + content[entry + 4 : details] + bytes(4) + content[details + 4 :]
    path.write_bytes(content)
    with pytest.raises(MediaFailure, match=re.escape("codec none (ZZZZ")) as failure:
        values(path, inputs)
    assert failure.value.reason == "unsupported-codec"


@pytest.mark.parametrize(
    "content", [b"MThd\0\0\0\x06\0\x01\0\x01\0\x60", b"no media at all", b"%PDF-1.7\n" + bytes(999)]
)
def test_a_file_of_another_kind_is_not_media(tmp_path, content):
    (tmp_path / "a.mp4").write_bytes(content)
    assert {reason(tmp_path / "a.mp4", inputs) for inputs in (SOUND, FRAMES)} == {"not-a-media-file"}


@pytest.mark.parametrize(
    "head", [b"\0\0\0\x18ftypisom", b"RIFF\x24\0\0\0WAVE", b"\xff\xfb\x90\x64", b"\xff\xd8\xff\xe0"]
)
def test_a_media_file_that_cannot_be_opened_is_corrupt(tmp_path, head):
    (tmp_path / "a").write_bytes(head + bytes(20))
    assert reason(tmp_path / "a", SOUND) in ("corrupt", "no-audio")


def test_encrypted_media_say_so(tmp_path, render):
    options = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": "0f" * 16, "encryption_kid": "a7" * 16}
    with (
        av.open(str(render(tmp_path / "a.mp4"))) as plain,
        av.open(str(tmp_path / "b.mp4"), "w", options=options) as file,
    ):
        streams = [file.add_stream_from_template(stream) for stream in plain.streams]
        for packet in plain.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream_index]
                file.mux(packet)
    assert {reason(tmp_path / "b.mp4", inputs) for inputs in (SOUND, FRAMES)} == {"encrypted"}


def test_limits_refuse_what_is_too_large(tmp_path, render):
    path = render(tmp_path / "a.mp4", seconds=3.0)
    assert reason(path, SOUND, Limits(seconds=1)) == "too-large"
    assert reason(path, FRAMES, Limits(seconds=1)) == "too-large"
    assert reason(path, FRAMES, Limits(pixels=64 * 48 - 1)) == "too-large"
    assert reason(path, FRAMES, Limits(streams=1)) == "too-large"
    assert reason(path, FRAMES, Limits(seconds=4, pixels=64 * 48, streams=2)) == "ok"


def test_refuses_clips_that_are_too_short(tmp_path, render):
    path = render(tmp_path / "a.mp4", seconds=1.2)
    for inputs in (SOUND, FRAMES):
        assert reason(path, inputs, minimum_seconds=1.2) == "ok"
        assert reason(path, inputs, minimum_seconds=1.3) == "too-short"


@pytest.mark.parametrize(
    "text",
    [
        "#EXTM3U\n#EXTINF:10,\n{target}\n",
        "ffconcat version 1.0\nfile '{target}'\n",
        "\ufeff\n#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:10.0,\nfile://{target}\n#EXT-X-ENDLIST\n",
        "[playlist]\nFile1={target}\n",
        '<?xml version="1.0"?><MPD><BaseURL>{target}</BaseURL></MPD>',
    ],
)
@pytest.mark.parametrize("name", ["list.m3u8", "list.mp4", "list.txt"])
def test_a_playlist_reads_no_other_file(tmp_path, render, text, name):
    secret = render(tmp_path / "secret.mp4")
    (tmp_path / name).write_text(text.format(target=secret))
    assert reason(tmp_path / name, SOUND) == "refused"
    assert reason(tmp_path / name, FRAMES) == "refused"


def test_a_playlist_that_is_not_recognized_still_reads_no_other_file(tmp_path, render, monkeypatch):
    secret = render(tmp_path / "secret.mp4")
    monkeypatch.setattr("aadml.feature_extraction.media.decoding._POINTER_HEADS", (b"\0never",))
    for text in ["#EXTM3U\n#EXTINF:10,\n{target}\n#EXT-X-ENDLIST\n", "ffconcat version 1.0\nfile '{target}'\n"]:
        (tmp_path / "list.m3u8").write_text(text.format(target=secret))
        assert reason(tmp_path / "list.m3u8", SOUND) in ("refused", "not-a-media-file")


@pytest.mark.parametrize(
    "name",
    [
        b"-i.mp4",
        b"two words.mp4",
        b"new\nline.mp4",
        b"\xff\xfe.mp4",
        b"concat:a|b.mp4",
        b"a%03d.mp4",
        b"http:x",
        b"a.txt",
    ],
)
def test_names_mean_nothing(tmp_path, render, name, monkeypatch):
    whole = render(tmp_path / "whole.mp4")
    whole.rename(os.path.join(tmp_path, os.fsdecode(name)))  # noqa: PTH118
    monkeypatch.chdir(tmp_path)
    for path in [os.fsdecode(name), str(tmp_path / os.fsdecode(name))]:
        assert reason(path, SOUND) == "ok"
        assert reason(path, FRAMES) == "ok"


def test_sound_that_is_not_a_number_is_corrupt(tmp_path):
    samples = np.full(16_000, np.nan, "<f4").tobytes()
    head = b"RIFF" + (36 + len(samples)).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    head += b"\x03\0\x01\0" + (16_000).to_bytes(4, "little") + (64_000).to_bytes(4, "little") + b"\x04\0\x20\0"
    (tmp_path / "a.wav").write_bytes(head + b"data" + len(samples).to_bytes(4, "little") + samples)
    assert reason(tmp_path / "a.wav", SOUND) == "corrupt"


def test_names_its_versions():
    versions = decoder_versions()
    assert {"av", "opencv", "numpy", "libavcodec", "libswresample"} <= set(versions)


def test_a_text_is_decoded_as_its_bytes_and_an_empty_one_is_refused():
    assert bytes(decode("é", Text(), LIMITS, 0.0).values) == "é".encode()
    with pytest.raises(MediaFailure) as failure:
        decode(" ", Text(), LIMITS, 0.0)
    assert (failure.value.reason, failure.value.detail) == ("no-text", "the text is empty")


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (MemoryError("no room"), "too-large", "MemoryError: no room"),
        (ValueError("odd"), "corrupt", "ValueError: odd"),
        (av.error.InvalidDataError(1, "broken"), "corrupt", "InvalidDataError: broken"),
    ],
)
def test_an_error_of_a_decoder_is_a_reason(tmp_path, render, monkeypatch, error, reason, detail):
    def fails(*_):
        raise error

    monkeypatch.setattr("aadml.feature_extraction.media.decoding.decoded_sound", fails)
    with pytest.raises(MediaFailure) as failure:
        decode(str(render(tmp_path / "a.mp4", seconds=0.2)), SOUND, LIMITS, 0.0)
    assert (failure.value.reason, failure.value.detail) == (reason, detail)


def test_a_file_may_have_as_many_streams_as_allowed(tmp_path, render):
    path = render(tmp_path / "a.mp4", seconds=0.2)
    assert reason(path, SOUND, Limits(streams=2)) == "ok"
    assert reason(path, SOUND, Limits(streams=1)) == "too-large"


def held(packets=(), duration=None, flags=0, begin=500_000, kinds=("audio", "data")):
    """A planted container of packets (pts, duration) in tenths of a second."""
    tenth = Fraction(1, 10)
    planted = [SimpleNamespace(pts=pts, duration=lasts, time_base=tenth) for pts, lasts in packets]
    return SimpleNamespace(
        streams=[SimpleNamespace(type=kind) for kind in kinds], duration=duration, start_time=begin,
        format=SimpleNamespace(flags=flags, name="mov,mp4"), demux=lambda streams: planted[: len(streams) * 9],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("container", "seconds"),
    [
        (held([(10, 5), (None, 9), (30, None), (20, 9)]), 2.5),
        (held([(10, 5), (30, 4)], begin=None), 3.4),
        (held([(30, 4)], duration=4_000_000), 4.0),
        (held([(30, 4)], duration=4_000_000, flags=Flags.generic_index.value, kinds=["video"]), 2.9),
        (held(begin=0), 0.0),
    ],
)
def test_the_length_of_a_recording_is_stated_or_ends_with_its_last_packet(monkeypatch, container, seconds):
    monkeypatch.setattr(decoding, "_container", lambda *_: contextlib.nullcontext((container, None)))
    assert decoding.recording_seconds("a") == pytest.approx(seconds)


def test_a_file_without_sound_and_video_has_no_length(monkeypatch):
    monkeypatch.setattr(decoding, "_container", lambda *_: contextlib.nullcontext((held(kinds=["data"]), None)))
    with pytest.raises(MediaFailure) as failure:
        decoding.recording_seconds("a")
    assert (failure.value.reason, failure.value.detail) == ("corrupt", "the file has neither sound nor video")


@pytest.mark.parametrize(
    ("name", "streams", "reason", "detail"),
    [
        ("mov,concat", 1, "refused", "files of format mov,concat refer to other files"),
        ("hls", 1, "refused", "files of format hls refer to other files"),
        ("mov", 65, "too-large", "the file has 65 streams; the limit is 64"),
        ("mov", 64, None, None),
    ],
)
def test_formats_that_refer_to_other_files_and_many_streams_are_refused(name, streams, reason, detail):
    container = SimpleNamespace(format=SimpleNamespace(name=name), streams=[None] * streams)
    if reason is None:
        decoding._check_container(container, LIMITS)
        return
    with pytest.raises(MediaFailure) as failure:
        decoding._check_container(container, LIMITS)
    assert (failure.value.reason, failure.value.detail) == (reason, detail)


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        (b" \r\n\t#EXTM3U\n#EXT", "the file is a playlist that begins with b'#EXTM3U\\n#EXT'"),
        (b"\xef\xbb\xbfffconcat version 1.0", "the file is a playlist that begins with b'ffconcat ver'"),
        (b" " * 57 + b"#EXTM3U", "the file is a playlist that begins with b'#EXTM3U'"),
        (b" " * 58 + b"#EXTM3U", None),
        (b"a #EXTM3U", None),
    ],
)
def test_a_playlist_is_recognized_by_its_beginning(content, detail):
    file = io.BytesIO(content)
    if detail is None:
        decoding._refuse_pointers(file)
        assert file.tell() == 0
        return
    with pytest.raises(MediaFailure) as failure:
        decoding._refuse_pointers(file)
    assert (failure.value.reason, failure.value.detail) == ("refused", detail)


def test_a_path_that_cannot_be_opened_says_why(tmp_path, monkeypatch):
    def detail(path):
        with pytest.raises(MediaFailure) as failure:
            decode(str(path), SOUND, LIMITS, 0.0)
        assert failure.value.reason == "missing"
        return failure.value.detail

    assert detail(tmp_path / "none") == "the file does not exist"
    assert detail(tmp_path / ("n" * 300)) == "File name too long"
    assert detail(tmp_path) == "the path is a folder"
    (tmp_path / "a.wav").write_bytes(b"RIFF")

    def denied(path, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(decoding.Path, "open", denied)
    assert detail(tmp_path / "a.wav") == "Permission denied"


def test_remarks_on_the_end_of_a_file_come_before_those_on_its_sound(tmp_path, encode):
    path = encode(tmp_path / "a.wav", np.zeros((1, 4800), np.float32), "pcm_s16le")
    path.write_bytes(path.read_bytes()[:-6])
    assert decode(str(path), SOUND, LIMITS, 0.0).remarks == (
        "the file states 6 bytes more than it contains", "all samples of the sound are zero"
    )  # fmt: skip


@pytest.mark.parametrize("reads", [0, 1, 3, 6])
def test_a_file_that_cannot_be_read_is_missing(tmp_path, render, monkeypatch, reads):
    path = render(tmp_path / "a.mp4", seconds=2.0)

    class Failing(io.FileIO):
        left = reads

        def read(self, size=-1):
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(size)

    monkeypatch.setattr(decoding.Path, "open", lambda path, mode: Failing(path))
    for decoded in (lambda: decode(str(path), FRAMES, LIMITS, 0.0), lambda: decoding.recording_seconds(str(path))):
        with pytest.raises(MediaFailure) as failure:
            decoded()
        assert (failure.value.reason, failure.value.detail) == ("missing", "Input/output error")


def test_a_file_that_states_an_impossible_position_is_corrupt(tmp_path):
    (tmp_path / "a.mkv").write_bytes(b"\x1a\x45\xdf\xa3" + b"\x01" + b"\xff" * 6 + b"\xfe")  # length of the header
    with pytest.raises(MediaFailure, match="Invalid argument") as failure:
        decode(str(tmp_path / "a.mkv"), SOUND, LIMITS, 0.0)
    assert failure.value.reason == "corrupt"
