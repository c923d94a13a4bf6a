import numpy as np

from aadml.data.samples.clip import FRAME_RATE, SIZE, render_clip
from aadml.data.samples.sound import RATE


def clip(index=0, seed=0, seconds=1.0):
    return render_clip("bird", index, seconds=seconds, seed=seed)


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
