import colorsys
import subprocess
import sys

import numpy as np
import pytest

from aadml.feature_extraction.backbones import EXTRACTORS, extractor, mean_over_time, options_of
from aadml.feature_extraction.backbones.descriptors import (
    HUES,
    LEVELS,
    SIDE,
    TILE,
    describe_frames,
    describe_sound,
    pool_statistics,
)
from aadml.feature_extraction.frontends.log_mel import DESCRIPTOR, filled_log_mel
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media import Frames, Sound

SAMPLE_RATE, WINDOW, HOP, OFFSET = DESCRIPTOR.sample_rate, DESCRIPTOR.window, DESCRIPTOR.hop, DESCRIPTOR.offset


def log_mel_bands(samples):
    return filled_log_mel(samples, DESCRIPTOR, WINDOW)


def noise(seconds, seed=0):
    return (0.1 * np.random.default_rng(seed).normal(size=round(seconds * SAMPLE_RATE))).astype(np.float32)


def test_decoding_processes_describe_without_torch():
    code = "import sys; from aadml.feature_extraction.backbones.descriptors import describe_sound; import numpy; "
    code += "describe_sound(numpy.zeros(9000, numpy.float32)); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_louder_tone_shows_in_the_band_of_its_pitch():
    tone = np.sin(2 * np.pi * 1000 * np.arange(SAMPLE_RATE) / SAMPLE_RATE).astype(np.float32)
    bands = log_mel_bands(tone).mean(axis=0)
    edges = np.linspace(*(1127 * np.log1p(np.array([50, 8000]) / 700)), 66)
    assert np.argmax(bands) == np.argmin(np.abs(edges[1:-1] - 1127 * np.log1p(1000 / 700)))


@pytest.mark.parametrize("seconds", [0.0001, 0.5, 0.96, 1.5, 3.0, 10.0])
def test_pooled_statistics_are_those_of_the_whole_sound(seconds):
    description = describe_sound(noise(seconds))
    bands = log_mel_bands(noise(seconds)).astype(np.float64)
    assert description.shape == (max(1, round(len(bands) / 96)), 128)
    expected = np.concatenate([bands.mean(axis=0), bands.std(axis=0)])
    np.testing.assert_allclose(pool_statistics(description), expected, atol=0.02)


def test_silence_is_the_logarithm_of_the_offset():
    np.testing.assert_allclose(
        pool_statistics(describe_sound(np.zeros(20_000, np.float32))), [np.log(OFFSET)] * 64 + [0] * 64, atol=1e-4
    )


def test_no_sample_is_left_out():
    samples = noise(1.4)
    count = 1 + (len(samples) - WINDOW) // HOP
    assert len(log_mel_bands(samples)) == count
    late = samples.copy()
    late[(count - 1) * HOP :] *= 5
    assert not np.array_equal(describe_sound(late), describe_sound(samples))


def picture(angle=0.0, color=(200, 200, 200)):
    y, x = np.mgrid[:64, :64]
    wave = 0.5 + 0.5 * np.sin((x * np.cos(angle) + y * np.sin(angle)) * 0.6)
    return (wave[..., None] * np.array(color)).astype(np.uint8)


def test_stripes_fill_the_bins_of_their_direction():
    for angle in [0.0, np.pi / 4, np.pi / 2, 3 * np.pi / 4]:
        gradients = describe_frames(picture(angle)[None])[0, :576].reshape(8, 8, 9).sum(axis=(0, 1))
        strongest = np.argsort(gradients)[-2:]
        centers = (strongest + 0.5) * np.pi / 9
        assert np.abs((centers - angle + np.pi / 2) % np.pi - np.pi / 2).min() <= np.pi / 18 + 1e-6


def test_color_changes_colors_and_place_changes_places():
    red, green = describe_frames(np.stack([picture(color=(200, 0, 0)), picture(color=(0, 200, 0))]))
    assert np.argmax(red[576:604][:12]) == 0
    assert np.argmax(green[576:604][:12]) == 4
    half = picture()
    half[:, 32:] = 0
    mirrored = half[:, ::-1]
    one, other = describe_frames(np.stack([half, mirrored]))
    assert np.abs(one - other).max() > 0.1


def test_every_color_part_is_a_histogram():
    frames = np.random.default_rng(0).integers(0, 256, size=(3, 64, 64, 3), dtype=np.uint8)
    tiles = describe_frames(frames)[:, 576:].reshape(3, 16, 28) ** 2
    np.testing.assert_allclose(tiles[..., 12:20].sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(tiles[..., 20:].sum(axis=-1), 1, atol=1e-5)


def test_extreme_pictures_stay_finite():
    frames = np.stack([np.zeros((64, 64, 3)), np.full((64, 64, 3), 255), np.eye(64)[..., None] * [255, 0, 255]])
    assert np.isfinite(describe_frames(frames.astype(np.uint8))).all()


def test_frames_are_described_one_by_one():
    frames = np.stack([picture(angle) for angle in (0.0, 1.0, 2.0)])
    whole = describe_frames(frames)
    assert whole.shape == (3, 1024)
    for number in range(3):
        np.testing.assert_array_equal(describe_frames(frames[number : number + 1])[0], whole[number])


def test_the_table_gives_extractors_with_their_dimensions():
    audio, visual = extractor("log-mel", "audio"), extractor("hog-color", "visual", {"frames_per_second": 2.0})
    assert (audio.dimension, audio.inputs) == (128, Sound(16_000))
    assert audio.pool(audio.prepare(noise(1.0))).shape == (128,)
    assert (visual.dimension, visual.inputs) == (1024, Frames(2.0, 64, 64))
    assert visual.pool(visual.prepare(np.zeros((2, 64, 64, 3), np.uint8))).shape == (1024,)
    assert audio.parameters["weights"] is None
    assert visual.parameters["frames_per_second"] == 2.0


def test_the_table_refuses_unknown_names_and_options():
    for arguments, message in [
        (("log-mell", "audio"), "did you mean 'log-mel'"),
        (("hog-color", "audio"), "no audio extractor 'hog-color'; choose from "),
        (("hog-color", "visual", {"frames_per_secnd": 1}), "did you mean 'frames_per_second'"),
    ]:
        with pytest.raises(InputError, match=message):
            extractor(*arguments)
    assert options_of("hog-color", "visual") == ["frames_per_second"]
    assert set(EXTRACTORS) == {"audio", "visual", "text"}


def test_the_mean_over_time_is_taken_in_double_precision():
    description = np.array([[1e8], [1.0], [-1e8]], np.float32)
    assert mean_over_time(description)[0] == np.float32(1 / 3)


def test_a_plain_color_is_its_hue_saturation_and_value():
    corners = [(r, g, b) for r in (40, 200) for g in (40, 200) for b in (40, 200)]
    colors = np.array([*corners, *np.random.default_rng(0).integers(0, 256, (60, 3))], dtype=np.uint8)
    frames = np.broadcast_to(colors[:, None, None], (len(colors), SIDE, SIDE, 3))
    tiles = describe_frames(frames)[:, -((SIDE // TILE) ** 2) * (HUES + 2 * LEVELS) :]
    tiles = tiles.reshape(len(colors), -1, HUES + 2 * LEVELS)
    for color, parts in zip(colors / 255, tiles, strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*color)
        hue -= color[0] == color.max() and hue > 0.5  # the first bin holds the hues on both sides of red
        expected = np.zeros(HUES + 2 * LEVELS)
        expected[int(hue * HUES + np.sign(hue) * 1e-5) % HUES] = np.sqrt(color.max() - color.min())
        expected[HUES + min(int(saturation * LEVELS + 1e-6), LEVELS - 1)] = 1
        expected[HUES + LEVELS + min(int(value * LEVELS), LEVELS - 1)] = 1
        np.testing.assert_allclose(parts, np.broadcast_to(expected, parts.shape), atol=1e-3)


def test_descriptions_stay_the_same():
    frames = describe_frames(np.stack([picture(0.3, (200, 100, 40)), picture(1.2, (30, 60, 220))]))
    assert frames.sum(axis=1) == pytest.approx([162.037, 148.822], rel=1e-4)
    np.testing.assert_allclose(
        frames[:, 100:105], [[0.57628, 0.0, 0.0, 0.0, 0.0], [0.0, 0.11202, 0.9371, 0.00591, 0.0]], atol=1e-4
    )
    np.testing.assert_allclose(
        frames[:, 576:600],
        [
            [0.58545, 0.01464, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
             0.19764, 0.0, 0.0, 0.0, 0.0, 0.0, 0.94786, 0.25, 0.46771, 0.33072, 0.30619, 0.33072],
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.62674, 0.01706, 0.0, 0.0, 0.0,
             0.19764, 0.0, 0.0, 0.0, 0.0, 0.0, 0.85923, 0.47186, 0.47599, 0.32476, 0.29974, 0.30619],
        ],
        atol=1e-4,
    )  # fmt: skip
    np.testing.assert_allclose(
        describe_sound(noise(1.4))[:, [0, 20, 63, 64, 84, 127]],
        [[0.112, 0.8271, 2.6746, 0.9393, 0.7858, 0.3328]],
        atol=1e-3,
    )


@pytest.mark.parametrize(
    ("rows", "seconds", "times"), [(1, 0.001, [0]), (2, 1.96, [0, 0.97]), (3, 3.0, [0, 1.0, 2.0]), (1, 0.96, [0])]
)
def test_patches_begin_at_equal_parts_of_the_frames(rows, seconds, times):
    assert extractor("log-mel", "audio").times(rows, seconds).tolist() == pytest.approx(times, abs=0.011)
    description = describe_sound(noise(seconds))
    assert len(description) == rows
