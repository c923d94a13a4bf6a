"""Features of frames from a pretrained network of `transformers`: one vector per frame, or per window of frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor, FrameRate
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.archives import damage_as
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub.families import Item, PictureTower
from aadml.feature_extraction.hub.loading import configuration_of, processor_of
from aadml.feature_extraction.hub.networks import Precision, Preparation, encoder, tower_of
from aadml.feature_extraction.hub.snapshot import Snapshot, find
from aadml.feature_extraction.hub.windows import TAIL, starts
from aadml.feature_extraction.media import Pictures
from aadml.feature_extraction.media.pictures import check_sizes, fitted

_BATCH = 16  # frames
_VIDEOS = 2  # windows of frames
_FRAMES = 300  # maximum frames of a clip at one frame per second: five minutes
_FILES = ("preprocessor_config.json", "processor_config.json")
_VIDEO_FILES = ("video_preprocessor_config.json", *_FILES)
_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def hf_visual(
    *,
    model: str = "",
    revision: str | None = None,
    pooling: str | None = None,
    frames_per_second: FrameRate | None = None,
    precision: Precision = "float32",
    device: str = "auto",
) -> Extractor:
    """Build an extractor from a pretrained network of `transformers` (CLIP, DINOv2, VideoMAE ...): `--visual hf:MODEL`.

    The feature of a clip is the mean over its frames, or over its windows of frames. Frames are resized with
    Pillow, not with torchvision.

    Args:
        model: folder, or name on the Hugging Face Hub.
        revision: branch, tag or commit on the hub; None for the newest commit.
        pooling: name of a pooling of the outputs; None for the default of the family, see docs/encoders.md.
        frames_per_second: frames per second to use; None for the default of the family (1, 1.6, 4 or 8). The
            maximum number of frames of a clip corresponds to five minutes at the default rate.
        precision: `float32`; `bfloat16` (autocast); `auto` (bfloat16 if the hardware supports it, otherwise
            float32).
        device: `auto`, `cpu` or `cuda`.

    Returns:
        The extractor.

    Raises:
        InputError: a model, revision, pooling or device that does not exist, a model of an unknown family or with
            unreadable files, or a missing package `transformers`.
    """
    snapshot = find(model, revision)
    tower = tower_of(snapshot, "visual", PictureTower)
    preparation = picture_preparation(snapshot, tower, frames_per_second)
    network = encoder(
        snapshot, tower, preparation, pooling=pooling, device=chosen_device(device, "hf-visual"), precision=precision
    )
    return network.extractor("visual", 8, "pillow")


def picture_preparation(
    snapshot: Snapshot, tower: PictureTower, frames_per_second: float | None = None
) -> Preparation:  # fmt: skip
    """Read the preparation of frames from the files of a model.

    Args:
        snapshot: files of the model.
        tower: tower of the model's family.
        frames_per_second: frames per second to use; None for the default of the family.

    Raises:
        InputError: the settings of pictures cannot be read, or contain no valid size.
    """
    inputs, colors = _settings(snapshot, tower, frames_per_second or tower.rate)
    # number of frames of a window; 0 for single frames
    count = tower.frames if isinstance(tower.frames, int) else int(configuration_of(snapshot, tower.frames))
    items = partial(_videos, count, tower) if count else _patches if tower.patches else _frames
    short = "the last frame held" if tower.filled else "at its own length"
    settings = {key: value for key, value in vars(inputs).items() if value is not None} | vars(colors)
    return Preparation(
        inputs=inputs,
        items=lambda frames: items(frames, inputs, colors),
        trial=fitted(np.zeros((64, 64, 3), dtype=np.uint8), inputs)[None],
        parameters={
            "preprocessing": "Pillow, then float32 by aadml",
            **({"window": count, "tail": TAIL, "short": short} if count else {}),
            **{key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()},
        },
        batch=(_VIDEOS if tower.filled else 1) if count else _BATCH,
        begins=partial(_begins, count, inputs) if count else None,
    )


@dataclass(frozen=True)
class Colors:
    """Normalization of colors: (level * scale - mean) / deviation.

    Attributes:
        scale: factor of the levels 0 to 255.
        mean: mean of red, green and blue.
        deviation: standard deviation of red, green and blue.
    """

    scale: float
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def of(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Normalize frames (t, h, w, 3) uint8 to float32 of the same shape."""
        mean, deviation = np.asarray([self.mean, self.deviation], dtype=np.float32)
        return np.asarray((frames.astype(np.float32) * np.float32(self.scale) - mean) / deviation, dtype=np.float32)


def _settings(snapshot: Snapshot, tower: PictureTower, rate: float) -> tuple[Pictures, Colors]:
    """Read the resizing, cropping and color normalization from the files of a model."""
    known = _processor(snapshot, tower)
    problem, advice = f"{snapshot.model}: the settings of its pictures cannot be read", "correct its preprocessor file"
    with damage_as(problem, advice, (AttributeError, TypeError, ValueError)):
        size = dict(known.size or {})
        inputs = Pictures(
            frames_per_second=rate,
            limit=round(_FRAMES * tower.rate),
            shortest=int(size["shortest_edge"]) if known.do_resize and size.get("shortest_edge") else None,
            resized=_pair(size) if known.do_resize else None,
            patches=(known.patch_size, known.max_num_patches) if tower.patches else None,
            crop=_pair(dict(known.crop_size or {})) if getattr(known, "do_center_crop", False) else None,
            resample=_FILTERS.get(int(known.resample), "bicubic"),
        )
        scale = float(known.rescale_factor) if known.do_rescale else 1.0
        normal = (known.image_mean, known.image_std) if known.do_normalize else ((0.0,) * 3, (1.0,) * 3)
        colors = Colors(scale, *(tuple(map(float, values)) for values in normal))
    if inputs.shortest is None and inputs.resized is None and inputs.patches is None:
        raise InputError(
            f"{snapshot.model}: its preprocessor file does not resize pictures to a size; set `do_resize` and `size` "
            "in that file"
        )
    check_sizes(inputs, snapshot.model)
    return inputs, colors


def _processor(snapshot: Snapshot, tower: PictureTower) -> Any:
    """Load the processor of a model's pictures.

    For video, the result contains only the settings of the processor, if a file contains these settings. The class
    of a video processor would need torchvision.
    """
    if not tower.frames:
        return processor_of(snapshot, "AutoImageProcessor", _FILES, backend="pil")
    *files, nested = (snapshot.settings(name) for name in _VIDEO_FILES)
    for settings in (nested.get("video_processor"), *files):
        if isinstance(settings, Mapping) and "video_processor_type" in settings:
            return SimpleNamespace(**settings)
    return processor_of(snapshot, "AutoImageProcessor", _VIDEO_FILES, backend="pil")


def _pair(size: Mapping[str, int]) -> tuple[int, int] | None:
    return (int(size["height"]), int(size["width"])) if size.get("height") and size.get("width") else None


def _frames(frames: NDArray[np.uint8], _: Pictures, colors: Colors) -> list[Item]:
    return [{"pixel_values": pixels} for pixels in np.ascontiguousarray(colors.of(frames).transpose(0, 3, 1, 2))]


def _videos(count: int, tower: PictureTower, frames: NDArray[np.uint8], _: Pictures, colors: Colors) -> list[Item]:
    """Cut frames (t, h, w, 3) into consecutive windows.

    If `tower.filled`, the last frame of a clip shorter than a window is repeated.
    """
    missing = max(0, count - len(frames)) if tower.filled else 0
    held = np.concatenate([frames, np.repeat(frames[-1:], missing, axis=0)])
    windows = (held[start : start + count] for start in starts(len(held), count, count))
    return [{tower.argument: np.ascontiguousarray(colors.of(window).transpose(0, 3, 1, 2))} for window in windows]


def _begins(count: int, inputs: Pictures, rows: int, seconds: float) -> NDArray[np.float64]:
    """Compute the start times (rows,) of the windows of a clip, in seconds; see `starts`."""
    last = max(0, min(inputs.limit, inputs.steps(seconds)) - count)
    return np.minimum(np.arange(rows, dtype=np.float64) * count, last) / inputs.frames_per_second


def _patches(frames: NDArray[np.uint8], inputs: Pictures, colors: Colors) -> list[Item]:
    """Cut frames (t, h, w, 3) into patches; rows of zeros extend each frame to the network's number of patches."""
    assert inputs.patches is not None
    side, most = inputs.patches
    t, height, width, _ = frames.shape
    grid = (height // side, width // side)
    count = grid[0] * grid[1]
    cells = colors.of(frames).reshape(t, grid[0], side, grid[1], side, 3).swapaxes(2, 3).reshape(t, count, -1)
    rows = np.pad(cells, ((0, 0), (0, most - count), (0, 0)))
    mask = (np.arange(most) < count).astype(np.int64)
    shape = np.asarray(grid, dtype=np.int64)
    return [{"pixel_values": row, "pixel_attention_mask": mask, "spatial_shapes": shape} for row in rows]
