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


@pytest.mark.parametrize(
    ("height", "width", "options", "size"),
    [
        (100, 200, {"shortest": 33}, (33, 66)), (200, 100, {"shortest": 33}, (66, 33)),
        (50, 50, {"shortest": 7}, (7, 7)),
        (100, 301, {"shortest": 33}, (33, 99)), (301, 100, {"shortest": 33}, (99, 33)),
        (100, 200, {"shortest": 30, "resized": (8, 9)}, (8, 9)),
        (64, 64, {"patches": (16, 16)}, (64, 64)), (64, 64, {"patches": (16, 15)}, (48, 48)),
        (100, 200, {"patches": (16, 8)}, (32, 64)), (1, 400, {"patches": (16, 5)}, (16, 80)),
        (300, 200, {"patches": (16, 256)}, (304, 208)), (30, 20, {"patches": (2, 1000)}, (76, 52)),
    ],
)  # fmt: skip
def test_the_size_follows_from_the_shorter_edge_the_given_size_or_the_patches(height, width, options, size):
    assert wanted_size(height, width, Pictures(**options)) == size


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        ({"resized": (32, 40), "crop": (32, 40)}, True), ({"resized": (32, 40), "crop": (32, 41)}, False),
        ({"resized": (32, 40), "crop": (33, 40)}, False), ({"shortest": 32, "crop": (32, 32)}, True),
        ({"shortest": 32, "crop": (32, 33)}, False), ({"patches": (16, 9), "crop": (8, 8)}, False), ({}, True),
    ],
)  # fmt: skip
def test_a_crop_fits_into_each_edge(options, fits):
    if fits:
        check_sizes(Pictures(**options), "m")
        return
    with pytest.raises(
        InputError, match=r"m: the crop .* may be larger than the pictures; correct the model's preproce"
    ):
        check_sizes(Pictures(**options), "m")


def test_pictures_are_resized_by_their_filter_and_only_if_their_size_differs():
    picture = np.random.default_rng(2).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    assert fitted(picture, Pictures(shortest=40)) is picture
    for name in ("nearest", "bilinear"):
        whole = np.asarray(Image.fromarray(picture).resize((30, 20), Image.Resampling[name.upper()]))
        np.testing.assert_array_equal(fitted(picture, Pictures(resized=(20, 30), resample=name)), whole)
    cropped = fitted(picture, Pictures(resized=(20, 30), crop=(10, 10)), (7, 7))  # with a crop, sizes are equal anyway
    assert cropped.shape == (10, 10, 3)
