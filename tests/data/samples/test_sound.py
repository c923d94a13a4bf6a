import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.data.samples.sound import RATE, at_level, hiss, lay, loudness, oscillate


def test_a_tone_has_its_frequency():
    spectrum = np.abs(np.fft.rfft(oscillate(440.0, 1.0)))
    assert int(spectrum.argmax()) == 440


def test_noise_stays_between_its_edges():
    power = np.abs(np.fft.rfft(hiss(np.random.default_rng(0), 1.0, 500, 900))) ** 2
    assert power[500:901].sum() > 0.999 * power.sum()


@given(start=st.floats(-0.2, 0.4), length=st.integers(1, 4000))
def test_laying_a_piece_adds_exactly_what_lies_inside(start, length):
    track = lay(np.zeros(RATE // 4), [(start, np.ones(length))])
    wanted = np.zeros(RATE // 4)
    for step in range(length):
        if 0 <= round(start * RATE) + step < wanted.size:
            wanted[round(start * RATE) + step] += 1
    assert np.array_equal(track, wanted)


def test_loudness_is_that_of_the_loudest_quarter_of_a_second():
    signal = np.zeros(RATE)
    signal[RATE // 2 : 3 * RATE // 4] = 0.5
    assert loudness(signal) == pytest.approx(0.5)
    assert loudness(at_level(signal, -6.0)) == pytest.approx(10 ** (-6 / 20))
    assert not at_level(np.zeros(RATE), 0.0).any()
