import struct
import subprocess
import sys

import av
import numpy as np
import pytest
from PIL import Image, ImageOps

from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Frames, Limits

MATRICES = [
    (1, 0, 0, 1),
    (0, 1, -1, 0),
    (-1, 0, 0, -1),
    (0, -1, 1, 0),
    (-1, 0, 0, 1),
    (1, 0, 0, -1),
    (0, 1, 1, 0),
    (0, -1, -1, 0),
]


def first(path):
    return decode(str(path), Frames(), Limits(), 0.0).values[0]


def quarters(height=32, width=48):
    """Make a picture whose quarters differ."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[: height // 2, : width // 2] = 250
    picture[: height // 2, width // 2 :] = 160
    picture[height // 2 :, : width // 2] = 80
    return picture


def moved(picture, a, b, c, d):
    """Take column x and row y to column a x + c y and row b x + d y, pixel by pixel."""
    spots = [(y, x) for y in range(len(picture)) for x in range(len(picture[0]))]
    places = np.array([(b * x + d * y, a * x + c * y) for y, x in spots])
    places -= places.min(axis=0)
    made = np.zeros((*(places.max(axis=0) + 1), 3), np.uint8)
    for (y, x), (row, column) in zip(spots, places, strict=True):
        made[row, column] = picture[y, x]
    return made


@pytest.fixture
def video(tmp_path):
    with av.open(str(tmp_path / "a.mp4"), "w") as file:
        stream = file.add_stream("mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 32, 48, "yuv420p"
        for packet in [*stream.encode(av.VideoFrame.from_ndarray(quarters(), format="rgb24")), *stream.encode(None)]:
            file.mux(packet)
    return tmp_path / "a.mp4"


@pytest.mark.parametrize("matrix", MATRICES)
def test_a_video_is_turned_and_mirrored_as_its_header_says(video, matrix):
    plain, content = first(video), bytearray(video.read_bytes())
    a, b, c, d = (value * 65_536 for value in matrix)
    at = content.index(b"tkhd") + 44
    content[at : at + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    video.write_bytes(content)
    np.testing.assert_array_equal(first(video), moved(plain, *matrix))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
def test_a_picture_is_turned_and_mirrored_as_its_exif_says(tmp_path, name, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(quarters()).save(tmp_path / name, exif=exif)
    with Image.open(tmp_path / name) as picture:
        expected = np.asarray(ImageOps.exif_transpose(picture)).astype(int)
    found = first(tmp_path / name)
    assert found.shape == expected.shape
    assert np.abs(found - expected).mean() < 3


DECODE = """
import sys
from aadml.feature_extraction.media.decoding import decode
from aadml.feature_extraction.media.inputs import Frames, Limits

for path in sys.argv[1:]:
    print(decode(path, Frames(), Limits(), 0.0).values.shape[1:3])
"""


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_pictures_with_color_profiles_are_decoded_and_turned(tmp_path, suffix):
    chance, exif, pictures = np.random.default_rng(0), Image.Exif(), {}
    for number in range(60):
        path, height = tmp_path / f"{number}{suffix}", int(chance.integers(8, 64))
        exif[0x0112] = number % 8 + 1
        pixels = chance.integers(0, 256, (height, 2 * height, 3), dtype=np.uint8)
        profile = chance.bytes(int(chance.integers(200, 5_000)))
        Image.fromarray(pixels).save(path, icc_profile=profile, exif=exif)
        with Image.open(path) as picture:
            pictures[path] = ImageOps.exif_transpose(picture).size[::-1]
    command = [sys.executable, "-c", DECODE, *map(str, pictures)]
    decoding = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (decoding.returncode, decoding.stderr) == (0, "")  # -11: the decoder took the process down
    assert decoding.stdout.splitlines() == [str(shape) for shape in pictures.values()]
