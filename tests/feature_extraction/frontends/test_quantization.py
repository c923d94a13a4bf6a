import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from aadml.feature_extraction.frontends.quantization import dequantize, quantize


def test_known_values_of_both_roundings():
    x = np.array([-9.0, -2.0, -1.99, 0.0, 1.99, 2.0, 9.0])
    np.testing.assert_array_equal(quantize(x, rounding="floor"), [0, 0, 0, 127, 254, 255, 255])
    np.testing.assert_array_equal(quantize(x, rounding="nearest"), [0, 0, 1, 128, 254, 255, 255])
    assert dequantize(np.array([0, 128, 255], dtype=np.uint8)).tolist() == pytest.approx(
        [-1.9921875, 128 * 4 / 255 + 4 / 512 - 2, 2.0078125]
    )


@given(hnp.arrays(np.float32, 20, elements=st.floats(-2, 2, width=32)))
def test_eight_bits_lose_less_than_a_step(x):
    step = 4 / 255
    assert np.abs(dequantize(quantize(x, rounding="nearest")) - x).max() <= step / 2 + 4 / 512 + 1e-6
    assert np.abs(dequantize(quantize(x, rounding="floor")) - x).max() <= step + 1e-6
    again = quantize(dequantize(quantize(x, rounding="nearest")), rounding="nearest")
    np.testing.assert_array_equal(again, quantize(x, rounding="nearest"))
