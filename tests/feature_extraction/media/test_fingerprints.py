import numpy as np
import pytest

from aadml.feature_extraction.media.fingerprints import SIZE, picture_fingerprint, sound_fingerprint

RATE = 16_000


def sound(seed, seconds=2.0, rate=RATE):
    """Sixteen tones, each loud for its own parts of the time."""
    generator = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate)) / rate
    loud = np.repeat(generator.random((16, 20)), len(time) // 20 + 1, axis=1)[:, : len(time)]
    tones = np.sin(2 * np.pi * np.geomspace(150, 5000, 16)[:, None] * time)
    return (0.02 * (loud**2 * tones).sum(axis=0)).astype(np.float32)


def pictures(seed, t=3, side=64):
    coarse = np.random.default_rng(seed).integers(0, 256, (t, 8, 8, 3), dtype=np.uint8)
    return np.kron(coarse, np.ones((1, side // 8, side // 8, 1), np.uint8))


def distance(one, other):
    return np.linalg.norm(one.astype(float) - other.astype(float))


def noisy(samples, decibels, seed=9):
    noise = np.random.default_rng(seed).standard_normal(len(samples)).astype(np.float32)
    return samples + noise * np.sqrt((samples**2).mean() / 10 ** (decibels / 10)) / noise.std()


SOUND_CHANGES = {
    "quieter": lambda samples: 0.1 * samples,
    "turned around": lambda samples: -samples,
    "noise of 40 dB": lambda samples: noisy(samples, 40),
    "noise of 20 dB": lambda samples: noisy(samples, 20),
    "20 ms later": lambda samples: np.concatenate([np.zeros(RATE // 50, np.float32), samples]),
    "20 ms shorter": lambda samples: samples[: -RATE // 50],
}


@pytest.mark.parametrize("change", SOUND_CHANGES)
@pytest.mark.parametrize("seconds", [1.0, 10.0])
def test_the_same_sound_stays_far_nearer_than_another(change, seconds):
    fingerprints = [sound_fingerprint(sound(seed, seconds), RATE) for seed in range(8)]
    changed = sound_fingerprint(SOUND_CHANGES[change](sound(0, seconds)), RATE)
    others = min(distance(fingerprints[0], other) for other in fingerprints[1:])
    assert distance(fingerprints[0], changed) < 0.25 * others


@pytest.mark.parametrize("rate", [8_000, 22_050, 48_000])
def test_any_rate_and_any_length_has_a_fingerprint(rate):
    for length in (1, 100, 5000, 60 * rate):
        samples = np.random.default_rng(0).standard_normal(length).astype(np.float32)
        found = sound_fingerprint(samples, rate)
        assert (found.shape, found.dtype) == ((SIZE,), np.uint8)
        assert found.all() or length == 1  # of which the window lets nothing through


def test_blocks_of_a_long_sound_are_the_whole(monkeypatch):
    whole = sound_fingerprint(sound(1, 20.0), RATE)
    monkeypatch.setattr("aadml.feature_extraction.media.fingerprints._BLOCK", 7)
    np.testing.assert_array_equal(sound_fingerprint(sound(1, 20.0), RATE), whole)


def test_a_band_that_sounds_in_one_part_stands_there():
    samples = np.zeros(4 * RATE, np.float32)
    samples[RATE : 2 * RATE] = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(RATE) / RATE)
    table = sound_fingerprint(samples, RATE).reshape(16, 16)
    edges = np.geomspace(100, 3500, 17)
    band = int(np.searchsorted(edges, 1000)) - 1
    part, found = np.unravel_index(table.argmax(), table.shape)
    assert found == band
    assert 4 <= part < 8
    assert (table[12:] == 1).all()


def shaken(frames, spread):
    noise = np.random.default_rng(3).normal(0, spread, frames.shape)
    return np.clip(frames + noise, 0, 255).astype(np.uint8)


PICTURE_CHANGES = {
    "half the size": lambda frames: frames[:, ::2, ::2],
    "twice the size": lambda frames: frames.repeat(2, axis=1).repeat(2, axis=2),
    "noise": lambda frames: shaken(frames, 10),
    "brighter": lambda frames: np.clip(frames.astype(int) // 2 + 60, 0, 255).astype(np.uint8),
    "every frame twice": lambda frames: frames.repeat(2, axis=0),
}


@pytest.mark.parametrize("change", PICTURE_CHANGES)
@pytest.mark.parametrize("t", [1, 3, 10])
def test_the_same_picture_stays_nearer_than_another(change, t):
    fingerprints = [picture_fingerprint(pictures(seed, t)) for seed in range(8)]
    changed = picture_fingerprint(PICTURE_CHANGES[change](pictures(0, t)))
    others = min(distance(fingerprints[0], other) for other in fingerprints[1:])
    share = 0.5 if change == "brighter" else 0.12  # half the contrast is half the distances
    assert distance(fingerprints[0], changed) < share * others


def test_a_picture_of_one_block_is_its_gray():
    frames = pictures(5, t=4, side=8)
    grays = frames.astype(float) @ [0.299, 0.587, 0.114]
    wanted = np.clip(np.round(128 + grays - grays.mean()), 1, 255)
    assert np.abs(picture_fingerprint(frames).reshape(4, 8, 8) - wanted).max() <= 1


def test_silence_and_a_flat_picture_have_nothing_to_compare():
    assert not sound_fingerprint(np.zeros(RATE, np.float32), RATE).any()
    assert not picture_fingerprint(np.full((3, 20, 30, 3), 200, np.uint8)).any()


def test_fingerprints_stay_the_same_so_that_files_of_all_versions_can_be_compared():
    heard = sound_fingerprint(sound(0), RATE).reshape(16, 16).astype(int)
    seen = picture_fingerprint(pictures(0)).reshape(4, 8, 8).astype(int)
    assert (
        np.abs(
            heard[[0, 7, 15]]
            - [
                [3, 35, 41, 44, 33, 56, 73, 55, 56, 78, 35, 79, 28, 78, 103, 101],
                [5, 97, 116, 98, 88, 94, 102, 83, 32, 84, 98, 67, 60, 58, 87, 81],
                [2, 29, 116, 82, 113, 131, 123, 92, 121, 101, 139, 127, 118, 111, 83, 127],
            ]
        ).max()
        <= 1
    )
    assert (
        np.abs(
            heard.sum(0)
            - [69, 1064, 1464, 1186, 1268, 1539, 1619, 1294, 1128, 1309, 1516, 1230, 1081, 1063, 1426, 1479]
        ).max()
        <= 3
    )
    assert (
        np.abs(
            seen[[0, 1, 3], 2]
            - [
                [175, 124, 127, 156, 99, 188, 192, 47],
                [166, 139, 140, 113, 120, 163, 162, 115],
                [219, 158, 80, 199, 132, 48, 171, 95],
            ]
        ).max()
        <= 1
    )
    assert abs(heard.sum() - 19735) < 16
    assert abs(seen.sum() - 32770) < 16


def test_pictures_of_nearly_one_gray_have_no_fingerprint():
    gray = np.full((2, 8, 8, 3), 100, np.uint8)
    for spread, is_zero in ((3, True), (5, False)):
        gray[:, 0, 0] = 100 + spread
        assert (picture_fingerprint(gray) == 0).all() == is_zero
