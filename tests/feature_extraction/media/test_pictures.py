import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.media.inputs import Pictures
from aadml.feature_extraction.media.pictures import check_sizes, fitted, wanted_size


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"shortest": 30}, (30, 60)),
        ({"resized": (20, 20)}, (20, 20)),
        ({}, (100, 200)),
    ],
)
def test_one_option_determines_the_size(options, size):
    assert wanted_size(100, 200, Pictures(**options)) == size
    picture = np.random.default_rng(0).integers(0, 256, (100, 200, 3), dtype=np.uint8)
    assert fitted(picture, Pictures(**options)).shape == (*size, 3)


@given(st.integers(1, 2000), st.integers(1, 2000), st.integers(1, 400))
def test_patches_are_complete_and_no_more_than_allowed(height, width, most):
    down, across = wanted_size(height, width, Pictures(patches=(16, most)))
    assert down % 16 == across % 16 == 0
    assert (down // 16) * (across // 16) <= max(most, 1)


def test_the_crop_is_the_center_of_what_pillow_resizes():
    picture = np.random.default_rng(1).integers(0, 256, (60, 90, 3), dtype=np.uint8)
    inputs = Pictures(shortest=40, crop=(32, 32))
    whole = np.asarray(Image.fromarray(picture).resize((60, 40), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(fitted(picture, inputs), whole[4:36, 14:46])
    np.testing.assert_array_equal(fitted(picture, Pictures(shortest=40, crop=(20, 50))), whole[10:30, 5:55])


def test_without_a_crop_all_pictures_of_a_clip_have_one_size():
    picture = np.zeros((60, 90, 3), np.uint8)
    assert fitted(picture, Pictures(shortest=30), (30, 50)).shape == (30, 50, 3)


def test_a_crop_larger_than_the_picture_is_an_error():
    check_sizes(Pictures(shortest=32, crop=(32, 32)), "model")
    with pytest.raises(InputError, match=r"model: the crop \(33, 32\) may be larger"):
        check_sizes(Pictures(shortest=32, crop=(33, 32)), "model")
