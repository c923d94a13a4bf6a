"""The front end against its definition, written here once more, in float64 and frame by frame."""

import importlib.util
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.frontends.log_mel import (
    _SCALES,
    CRNN,
    DESCRIPTOR,
    PANNS,
    VGGISH,
    LogMelSettings,
    log_mel,
    mel_filters,
)
from aadml.feature_extraction.ground.errors import InputError

ALL = {"vggish": VGGISH, "panns": PANNS, "crnn": CRNN, "descriptor": DESCRIPTOR}


def mel_of(hertz: float, scale: str) -> float:
    if scale == "htk":
        return 1127.0 * np.log(1.0 + hertz / 700.0)
    return 3.0 * hertz / 200.0 if hertz < 1000.0 else 15.0 + 27.0 * np.log(hertz / 1000.0) / np.log(6.4)


def hertz_of(mel: float, scale: str) -> float:
    if scale == "htk":
        return 700.0 * (np.exp(mel / 1127.0) - 1.0)
    return 200.0 * mel / 3.0 if mel < 15.0 else 1000.0 * 6.4 ** ((mel - 15.0) / 27.0)


def filters_by_definition(settings: LogMelSettings) -> np.ndarray:
    low, high = mel_of(settings.low, settings.scale), mel_of(settings.high, settings.scale)
    corners = [low + (high - low) * i / (settings.bands + 1) for i in range(settings.bands + 2)]
    filters = np.zeros((settings.fft // 2 + 1, settings.bands))
    for bin_ in range(1, settings.fft // 2 + 1):
        hertz = bin_ * settings.sample_rate / settings.fft
        for band in range(settings.bands):
            left, middle, right = corners[band : band + 3]
            point = mel_of(hertz, settings.scale)
            if settings.edges == "hertz":
                left, middle, right = (hertz_of(corner, settings.scale) for corner in (left, middle, right))
                point = hertz
            weight = max(0.0, min((point - left) / (middle - left), (right - point) / (right - middle)))
            if settings.area:
                weight *= 2.0 / (hertz_of(corners[band + 2], settings.scale) - hertz_of(corners[band], settings.scale))
            filters[bin_, band] = weight
    return filters


def log_mel_by_definition(samples: np.ndarray, settings: LogMelSettings) -> np.ndarray:
    """Periodic Hann window, centered in the transform where there is padding, exponent, triangles, logarithm."""
    samples = samples.astype(np.float64)
    hann = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(settings.window) / settings.window)
    length, window = settings.window, hann
    if settings.padding != "none":
        left = (settings.fft - settings.window) // 2
        window = np.pad(hann, (left, settings.fft - settings.window - left))
        samples = np.pad(samples, settings.fft // 2, mode="reflect" if settings.padding == "reflect" else "constant")
        length = settings.fft
    filters, rows = filters_by_definition(settings), []
    for start in range(0, len(samples) - length + 1, settings.hop):
        spectrum = np.abs(np.fft.rfft(samples[start : start + length] * window, settings.fft))
        bands = np.maximum(spectrum**settings.power @ filters, settings.floor) + settings.offset
        rows.append(np.log(bands) if settings.logarithm == "natural" else 10.0 * np.log10(bands))
    return np.array(rows)


def sound(settings: LogMelSettings, seconds: float, seed: int = 0) -> torch.Tensor:
    """A chord that fades, over a hiss: what the networks hear, loud and soft."""
    generator = np.random.default_rng(seed)
    time = np.arange(int(seconds * settings.sample_rate)) / settings.sample_rate
    chord = sum(np.sin(2 * np.pi * f * time + f) for f in (220.0, 1000.0, 3300.0))
    return torch.from_numpy((0.2 * chord * np.exp(-time) + 0.05 * generator.normal(size=len(time))).astype(np.float32))


@pytest.mark.parametrize("name", ALL)
def test_equals_its_definition_in_float64(name):
    settings = ALL[name]
    samples = sound(settings, 0.7)
    expected = log_mel_by_definition(samples.numpy(), settings)
    result = log_mel(samples.double(), settings)
    assert result.dtype == torch.float64
    for values in (result.numpy(), log_mel(samples.double().numpy(), settings)):
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_the_float32_path_stays_within_1e_5_of_the_definition(name):
    settings = ALL[name]
    samples = sound(settings, 1.3, seed=1)
    expected = log_mel_by_definition(samples.numpy(), settings)
    result = log_mel(samples, settings)
    assert result.dtype == torch.float32
    for values in (result.numpy(), log_mel(samples.numpy(), settings)):
        assert values.dtype == np.float32
        assert np.abs(values - expected).max() / np.abs(expected).max() < 1e-5


@pytest.mark.parametrize("name", ALL)
def test_the_filters_equal_their_definition(name):
    np.testing.assert_allclose(mel_filters(ALL[name]), filters_by_definition(ALL[name]), rtol=1e-9, atol=1e-12)


def test_vggish_hears_with_a_periodic_window_the_htk_scale_magnitudes_and_an_offset_of_a_hundredth():
    assert (VGGISH.window, VGGISH.hop, VGGISH.fft, VGGISH.bands) == (400, 160, 512, 64)
    assert (VGGISH.low, VGGISH.high, VGGISH.power, VGGISH.scale, VGGISH.edges) == (125.0, 7500.0, 1, "htk", "mel")
    silence = log_mel(torch.zeros(1600), VGGISH)
    torch.testing.assert_close(silence, torch.full_like(silence, np.log(0.01)))
    constant = log_mel(torch.ones(1600), replace(VGGISH, fft=400))  # a periodic window leaks nothing past 80 Hz
    torch.testing.assert_close(constant, torch.full_like(constant, np.log(0.01)), atol=0.01, rtol=0)
    tone = torch.sin(2 * torch.pi * 1000.0 * torch.arange(16_000) / 16_000)
    centers = [
        hertz_of(mel_of(125, "htk") + (mel_of(7500, "htk") - mel_of(125, "htk")) * i / 65, "htk") for i in range(66)
    ]
    assert log_mel(tone, VGGISH).mean(0).argmax().item() == int(np.argmin(np.abs(np.array(centers[1:-1]) - 1000.0)))


def test_panns_hears_silence_at_minus_100_decibel_and_the_crnn_at_its_smallest_number():
    torch.testing.assert_close(log_mel(torch.zeros(32_000), PANNS), torch.full((101, 64), -100.0))
    expected = torch.full((51, 64), float(np.log(np.spacing(1.0))))
    torch.testing.assert_close(log_mel(torch.zeros(44_100), CRNN), expected)


def test_ten_seconds_have_998_frames_without_padding_and_1001_with_it():
    assert log_mel(torch.zeros(160_000), VGGISH).shape == (998, 64)
    assert log_mel(torch.zeros(320_000), PANNS).shape == (1001, 64)


@given(
    name=st.sampled_from(sorted(ALL)),
    samples=st.integers(0, 3000),
    clips=st.integers(0, 3),
)
def test_any_length_gives_finite_frames_in_the_number_announced(name, samples, clips):
    settings = ALL[name]
    result = log_mel(torch.full((clips, samples), 0.5), settings)
    if settings.padding == "none":
        frames = 1 + max(0, samples - settings.window) // settings.hop
    else:
        frames = 1 + max(samples, 1 if settings.padding == "zeros" else settings.fft // 2 + 1) // settings.hop
    assert result.shape == (clips, frames, settings.bands)
    assert torch.isfinite(result).all()


@pytest.mark.parametrize("name", ["vggish", "panns"])
def test_a_batch_gives_what_its_clips_give_alone(name):
    settings = ALL[name]
    clips = torch.stack([sound(settings, 12.0, seed=seed) for seed in range(3)])
    batched = log_mel(clips, settings)
    for clip, alone in zip(clips, batched, strict=True):
        assert torch.equal(log_mel(clip, settings), alone)
        np.testing.assert_allclose(log_mel(clip.numpy(), settings), alone.numpy(), rtol=1e-5, atol=1e-4)


def test_the_number_of_threads_changes_no_bit_and_is_left_as_it_was():
    samples = sound(VGGISH, 60.0)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            results.append(log_mel(samples, VGGISH))
            assert torch.get_num_threads() == threads
            with ThreadPoolExecutor(1) as pool:
                assert pool.submit(torch.get_num_threads).result() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)


def test_a_decoding_process_needs_no_pytorch():
    code = "import sys, numpy as np; from aadml.feature_extraction.frontends.log_mel import *; "
    code += "log_mel(np.zeros(999), VGGISH)"
    code += "; assert 'torch' not in sys.modules"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], check=False, env={**os.environ, "PYTHONPATH": str(root)})
    assert done.returncode == 0


def test_reflection_beyond_the_ends_is_another_padding_than_zeros():
    settings = replace(CRNN, padding="reflect")
    samples = sound(settings, 0.3)
    assert not torch.allclose(log_mel(samples, settings)[0], log_mel(samples, CRNN)[0], atol=1e-3)
    np.testing.assert_allclose(
        log_mel(samples.double(), settings).numpy(), log_mel_by_definition(samples.numpy(), settings), rtol=1e-9
    )


def test_integers_are_refused_by_name():
    with pytest.raises(InputError, match=r"the samples are int16 of shape \(16000,\)"):
        log_mel(torch.zeros(16_000, dtype=torch.int16), VGGISH)


YAMNET = """
import sys, numpy as np, tensorflow as tf
samples = np.load(sys.argv[2])
interpreter = tf.lite.Interpreter(model_path=sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], samples[None].astype(np.float32))
interpreter.invoke()
outputs = [interpreter.get_tensor(o["index"]) for o in interpreter.get_output_details()]
np.save(sys.argv[3], next(o for o in outputs if o.shape == (96, 64)))
"""


@pytest.mark.slow
def test_equals_the_log_mel_patch_inside_a_published_network_of_the_same_front_end(shared_data: Path, tmp_path):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("tensorflow is not installed")
    samples = sound(VGGISH, 1.0)[:15_600]
    np.save(tmp_path / "in.npy", samples.numpy())
    model = shared_data / "yamnet" / "yamnet.tflite"
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        YAMNET,
        str(model),
        str(tmp_path / "in.npy"),
        str(tmp_path / "out.npy"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    published = np.load(tmp_path / "out.npy")
    ours = log_mel(samples, replace(VGGISH, offset=0.001)).numpy()
    difference = np.abs(ours - published)  # that network keeps its transform and triangles as 8-bit integers
    assert np.median(difference) < 0.01
    assert np.corrcoef(ours.ravel(), published.ravel())[0, 1] > 0.999


def test_the_settings_are_json_ready():
    assert json.loads(json.dumps(asdict(VGGISH)))["window"] == 400


@pytest.mark.parametrize(
    ("scale", "known"),
    [("htk", {0: 0, 700: 781.17, 1000: 999.99, 6400: 2611}), ("slaney", {0: 0, 500: 7.5, 1000: 15, 6400: 42})],
)
def test_the_mel_scales_have_their_known_values_and_inverses(scale, known):
    mel, hertz = _SCALES[scale]
    values = np.asarray([*known], np.float64)
    np.testing.assert_allclose(mel(values), [*known.values()], rtol=1e-5)
    np.testing.assert_allclose(hertz(mel(values)), values, rtol=1e-12)
