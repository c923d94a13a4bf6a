"""Colors of decoded frames against FFmpeg's own conversion of the same files."""

import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.filter import Graph
from av.video.reformatter import ColorTrc

from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.frames import _rgb
from aadml.feature_extraction.media.inputs import Frames, Limits

FORMATS = ["yuv420p", "yuv420p10le", "yuv422p10le", "yuv444p10le", "yuv420p12le"]
MATRICES = {"ITU601": 6, "ITU709": 1, "BT2020": 9}
RANGES = {"MPEG": 1, "JPEG": 2}


def pattern():
    """Ramps of hue and gray, and small squares, with odd edges: (98, 130, 3)."""
    down, across = np.mgrid[:98, :130]
    squares = np.random.default_rng(0).integers(0, 256, (25, 33, 3)).repeat(4, 0).repeat(4, 1)[:98, :130]
    ramps = np.stack([across * 255 / 129, down * 255 / 97, (down + across) * 255 / 226], axis=2)
    return np.where(((down // 16) % 2 == 0)[:, :, None], ramps, squares).astype(np.uint8)


def written(path, kind, matrix="ITU709", limits="MPEG", transfer=1):
    with av.open(str(path), "w") as file:
        stream = file.add_stream("ffv1", rate=5, options={"strict": "-2"})
        stream.height, stream.width = pattern().shape[:2]
        stream.pix_fmt = kind
        stream.codec_context.colorspace, stream.codec_context.color_range = MATRICES[matrix], RANGES[limits]
        stream.codec_context.color_trc = transfer
        colors = av.VideoFrame.from_ndarray(pattern(), format="rgb24")
        frame = colors.reformat(format=kind, dst_colorspace=matrix, dst_color_range=limits)
        frame.pts, frame.time_base = 0, Fraction(1, 5)
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def threads():
    return len(list(Path("/proc/self/task").iterdir()))


def decoded(path):
    return decode(str(path), Frames(), Limits(), 0.0)


@pytest.mark.parametrize("limits", RANGES)
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("kind", FORMATS)
def test_colors_are_those_of_the_filter_of_ffmpeg(tmp_path, kind, matrix, limits):
    path = written(tmp_path / "a.mkv", kind, matrix, limits)
    with av.open(str(path)) as file:
        (frame,) = file.decode(video=0)
        assert (frame.format.name, frame.colorspace, frame.color_range) == (kind, MATRICES[matrix], RANGES[limits])
        graph = Graph()
        source = graph.add_buffer(template=file.streams.video[0])
        graph.link_nodes(
            source, graph.add("scale", "flags=bicubic"), graph.add("format", "rgb24"), graph.add("buffersink")
        )
        graph.configure()
        graph.push(frame)
        expected = graph.pull().to_ndarray()
        if kind == "yuv420p":
            np.testing.assert_array_equal(_rgb(frame), frame.to_ndarray(format="rgb24"))
    (picture,) = decoded(path).values
    assert np.abs(picture.astype(float) - expected).mean() < 0.1
    assert np.abs(picture.astype(float) - pattern()).mean() < (1.5 if "444" in kind else 30), "chroma of 420 is coarse"


@pytest.mark.skipif(not shutil.which("ffmpeg"), reason="needs the command ffmpeg")
@pytest.mark.parametrize("limits", RANGES)
@pytest.mark.parametrize("matrix", MATRICES)
def test_ten_bits_are_converted_as_the_command_ffmpeg_does(tmp_path, matrix, limits):
    path = written(tmp_path / "a.mkv", "yuv420p10le", matrix, limits)
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-pix_fmt", "rgb24", "-f", "rawvideo", "-"]
    expected = np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, np.uint8)
    (picture,) = decoded(path).values
    assert np.abs(picture.astype(float) - expected.reshape(picture.shape)).mean() < 0.5


@pytest.mark.parametrize(("transfer", "name"), [(ColorTrc.SMPTE2084, "PQ"), (ColorTrc.ARIB_STD_B67, "HLG")])
def test_high_dynamic_range_is_remarked_on(tmp_path, transfer, name):
    clip = decoded(written(tmp_path / "a.mkv", "yuv420p10le", "BT2020", "MPEG", transfer))
    assert clip.remarks == (f"the video has high dynamic range ({name}), which is not mapped to sRGB",)
    assert decoded(written(tmp_path / "b.mkv", "yuv420p10le", "BT2020", "MPEG", ColorTrc.BT2020_10)).remarks == ()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system has no /proc")
def test_the_conversion_of_a_frame_starts_no_threads():
    frames = [av.VideoFrame.from_ndarray(pattern(), format="rgb24").reformat(format="yuv420p") for _ in range(3)]
    before = threads()
    seen = []
    for frame in frames:
        assert _rgb(frame).shape == pattern().shape
        seen.append(threads())
    assert max(seen) <= before
