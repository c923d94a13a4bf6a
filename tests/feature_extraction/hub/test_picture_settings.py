"""Settings of pictures in the files of a model, and the items of its network, by planted processors."""

from types import SimpleNamespace

import numpy as np
import pytest

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub import pictures
from aadml.feature_extraction.hub.pictures import Colors
from aadml.feature_extraction.media import Pictures

PROCESSOR = {
    "size": {"shortest_edge": 40}, "resample": 3, "do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
    "do_normalize": True, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4],
    "crop_size": {"height": 32, "width": 30}, "do_center_crop": True, "patch_size": 16, "max_num_patches": 9,
}  # fmt: skip
PICTURES = {"frames_per_second": 2.0, "limit": 1200, "shortest": 40, "crop": (32, 30)}
COLORS = (1 / 255, (0.5, 0.4, 0.3), (0.2, 0.3, 0.4))


def settings_of(monkeypatch, tower=(), **changes):
    processor = SimpleNamespace(**{k: v for k, v in {**PROCESSOR, **changes}.items() if v is not ...})
    monkeypatch.setattr(pictures, "_processor", lambda *_: processor)
    tower = SimpleNamespace(**{"rate": 4.0, "patches": False, **dict(tower)})
    return pictures._settings(SimpleNamespace(model="tiny"), tower, 2.0)


@pytest.mark.parametrize(
    ("changes", "inputs", "colors"),
    [
        ({}, {}, COLORS),
        ({"do_rescale": False}, {}, (1.0, *COLORS[1:])),
        ({"do_normalize": False}, {}, (1 / 255, (0.0,) * 3, (1.0,) * 3)),
        ({"do_center_crop": ...}, {"crop": None}, COLORS),
        ({"crop_size": None}, {"crop": None}, COLORS),
        ({"crop_size": {"height": 32}}, {"crop": None}, COLORS),
        ({"resample": 0}, {"resample": "nearest"}, COLORS),
        ({"resample": 9}, {"resample": "bicubic"}, COLORS),
        ({"size": {"height": 34, "width": 36}}, {"shortest": None, "resized": (34, 36)}, COLORS),
    ],
)
def test_settings_become_the_size_the_crop_and_the_colors(monkeypatch, changes, inputs, colors):
    assert settings_of(monkeypatch, **changes) == (Pictures(**(PICTURES | inputs)), Colors(*colors))


def test_patches_are_set_by_the_tower(monkeypatch):
    found, _ = settings_of(monkeypatch, {"patches": True, "rate": 1.0}, do_resize=False, crop_size=None)
    assert found == Pictures(frames_per_second=2.0, limit=300, patches=(16, 9))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"do_resize": False}, "tiny: its preprocessor file does not resize pictures to a size"),
        ({"size": {}}, "tiny: its preprocessor file does not resize pictures to a size"),
        ({"do_normalize": ...}, "tiny: the settings of its pictures cannot be read"),
        ({"image_std": ["wide"]}, "tiny: the settings of its pictures cannot be read"),
    ],
)
def test_settings_without_a_size_or_of_another_type_are_refused(monkeypatch, changes, says):
    with pytest.raises(InputError, match=says):
        settings_of(monkeypatch, **changes)


FRAMES = np.arange(2 * 4 * 6 * 3, dtype=np.uint8).reshape(2, 4, 6, 3)
DOUBLED = Colors(2.0, (1.0, 0.0, 0.0), (1.0, 1.0, 4.0))


def test_colors_are_scaled_and_normalized():
    assert DOUBLED.of(FRAMES)[0, 0, :2].tolist() == [[-1, 2, 1], [5, 8, 2.5]]
    items = pictures._frames(FRAMES, None, DOUBLED)
    np.testing.assert_array_equal(items[1]["pixel_values"], DOUBLED.of(FRAMES)[1].transpose(2, 0, 1))


@pytest.mark.parametrize(("filled", "count", "shapes"), [(True, 3, [3]), (False, 3, [2]), (True, 1, [1, 1])])
def test_windows_of_a_video_are_padded_with_the_last_frame_if_the_network_needs_it(filled, count, shapes):
    tower = SimpleNamespace(filled=filled, argument="pixels")
    items = pictures._videos(count, tower, FRAMES, None, DOUBLED)
    assert [item["pixels"].shape for item in items] == [(length, 3, 4, 6) for length in shapes]
    np.testing.assert_array_equal(items[-1]["pixels"][-1], DOUBLED.of(FRAMES)[1].transpose(2, 0, 1))


def test_patches_are_rows_with_a_mask_and_the_shape_of_their_grid():
    items = pictures._patches(FRAMES, Pictures(1.0, patches=(2, 8)), Colors(1.0, (0.0,) * 3, (1.0,) * 3))
    assert len(items) == 2
    assert (items[0]["spatial_shapes"].tolist(), items[0]["pixel_attention_mask"].tolist()) == (
        [2, 3],
        [1] * 6 + [0] * 2,
    )
    rows = items[1]["pixel_values"]
    assert rows.shape == (8, 12)
    np.testing.assert_array_equal(rows[4], FRAMES[1, 2:, 2:4].ravel())
    assert not rows[6:].any()
