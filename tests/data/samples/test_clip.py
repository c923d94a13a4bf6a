import numpy as np
import pytest

from aadml.data.samples.clip import FRAME_RATE, SIZE, render_clip
from aadml.data.samples.setting import draw_setting
from aadml.data.samples.sound import RATE, loudness


def clip(index=0, seed=0, difficulty=0.5, label="bird", seconds=1.0):
    return render_clip(label, index, seconds=seconds, seed=seed, difficulty=difficulty)


def test_has_as_much_sound_as_picture():
    rendered = clip(seconds=1.5)
    assert rendered.sound.shape == (1.5 * RATE,)
    assert rendered.pictures.shape == (1.5 * FRAME_RATE, SIZE, SIZE, 3)
    assert np.abs(rendered.sound).max() < 1


def test_is_the_same_for_the_same_seed_and_number_and_another_otherwise():
    one, same = clip(), clip()
    assert np.array_equal(one.sound, same.sound)
    assert np.array_equal(one.pictures, same.pictures)
    assert one.setting == same.setting
    for other in (clip(index=10), clip(seed=1)):
        assert not np.array_equal(one.sound, other.sound)
        assert not np.array_equal(one.pictures, other.pictures)


def test_difficulty_zero_has_no_second_event_and_no_grain():
    settings = [clip(index=index, difficulty=0.0).setting for index in range(20)]
    assert all(setting.heard is None and setting.seen is None and setting.grain == 0 for setting in settings)


@pytest.mark.parametrize("quantity", ["size", "noise_level"])
def test_a_harder_set_has_smaller_events_in_louder_noise(quantity):
    means = [
        np.mean(
            [getattr(draw_setting("bird", 1.0, amount, np.random.default_rng(seed)), quantity) for seed in range(50)]
        )
        for amount in (0.2, 0.8)
    ]
    assert (means[0] > means[1]) == (quantity == "size")


def test_harder_clips_are_further_from_the_clean_sound():
    shares = []
    for difficulty in (0.0, 1.0):
        rendered = [clip(index=index, difficulty=difficulty, label="metronome") for index in range(6)]
        quiet = [np.quantile(np.abs(one.sound), 0.3) / loudness(one.sound) for one in rendered]
        shares.append(np.mean(quiet))
    assert shares[1] > 2 * shares[0]
