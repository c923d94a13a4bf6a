"""Frames by a pretrained network of `transformers`: one vector a frame, or one a window of frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor, FrameRate
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, typed
from aadml.feature_extraction.ground.transformers_library import transformers_for
from aadml.feature_extraction.hub.families import Item, PictureTower
from aadml.feature_extraction.hub.loading import processor_of
from aadml.feature_extraction.hub.networks import Precision, Preparation, about, encoder, fixed, tower_of
from aadml.feature_extraction.hub.snapshot import Snapshot, find
from aadml.feature_extraction.hub.windows import TAIL, starts
from aadml.feature_extraction.media import Pictures
from aadml.feature_extraction.media.pictures import check_sizes, fitted

_BATCH = 16  # frames run at once
_VIDEOS = 2  # windows of frames run at once
_FRAMES = 300  # of a clip that are described, at one a second: five minutes
_FILES = ("preprocessor_config.json", "processor_config.json")
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
    """Describe frames by a pretrained network of `transformers` (CLIP, DINOv2, VideoMAE ...): `--visual hf:MODEL`.

    The feature of a clip is the mean over its frames, or over windows of frames. They are resized by Pillow, never by
    torchvision.

    Args:
        model: a folder, or a name on the Hugging Face Hub.
        revision: branch, tag or commit on the hub; None: the newest.
        pooling: how outputs become a vector; None: as the family does it, see docs/encoders.md.
        frames_per_second: how many frames of each second are described; None: 1, and 8 by networks of videos. Of a clip
            the first 300 at most, by networks of videos the first 2,400.
        precision: `float32`; `bfloat16` (autocast); `auto` (bfloat16 where the hardware multiplies it).
        device: `auto`, `cpu` or `cuda`.

    Returns:
        The extractor.

    Raises:
        InputError: no such model, one of another family, or files that cannot be read.
    """
    snapshot = find(model, revision)
    tower = tower_of(snapshot, "visual", PictureTower)
    prepared = picture_preparation(snapshot, tower, frames_per_second)
    found = encoder(
        snapshot, tower, prepared, pooling=pooling, device=chosen_device(device, "hf-visual"), precision=precision
    )
    count = prepared.parameters.get("window")
    frames = prepared.inputs
    times = partial(_begins, count, frames) if isinstance(count, int) and isinstance(frames, Pictures) else None
    return found.extractor("visual", about(snapshot, "pillow"), batch_clips=8, begins=times)


def picture_preparation(
    snapshot: Snapshot, tower: PictureTower, frames_per_second: float | None = None
) -> Preparation:  # fmt: skip
    """Read how frames are prepared from the model's own files; None frames a second are those of its family."""
    inputs, colors = _preparation(snapshot, tower, frames_per_second or tower.rate)
    count = typed(snapshot.config, tower.frames, int) if tower.frames else 0
    items = partial(_videos, count) if count else _patches if tower.patches else _frames
    window: JsonObject = {"window": count, "tail": TAIL, "short": "the last frame held"} if count else {}
    sizes = {key: value for key, value in vars(inputs).items() if key not in ("height", "width") and value is not None}
    return Preparation(
        inputs=inputs,
        items=lambda frames: items(frames, inputs, colors),
        trial=fitted(np.zeros((64, 64, 3), dtype=np.uint8), inputs)[None],
        parameters={"preprocessing": "Pillow, then float32 by aadml", **window, **fixed(sizes), **fixed(vars(colors))},
        batch=_VIDEOS if count else _BATCH,
    )


@dataclass(frozen=True)
class Colors:
    """How levels of color become numbers: (level * scale - mean) / deviation.

    Attributes:
        scale: of the levels 0 to 255.
        mean: of red, green and blue.
        deviation: of red, green and blue.
    """

    scale: float
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def of(self, frames: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Turn frames (t, h, w, 3) into (t, h, w, 3) float32."""
        mean, deviation = (np.asarray(one, dtype=np.float32) for one in (self.mean, self.deviation))
        colors: NDArray[np.float32] = (frames.astype(np.float32) * np.float32(self.scale) - mean) / deviation
        return colors


def _preparation(snapshot: Snapshot, tower: PictureTower, rate: float) -> tuple[Pictures, Colors]:
    """Read how frames are prepared from the model's own file; what it leaves out is as the family has it."""
    if not any((snapshot.folder / name).is_file() for name in _FILES):
        raise InputError(f"{snapshot.model}: {' or '.join(_FILES)} is missing beside the weights; copy it there")
    known: Any = processor_of(snapshot, _kind(snapshot, tower), _FILES)
    size, resample = dict(known.size or {}), _FILTERS.get(int(known.resample), "bicubic")
    inputs = Pictures(
        frames_per_second=rate,
        limit=round(_FRAMES * tower.rate),
        shortest=size.get("shortest_edge") if known.do_resize else None,
        resized=_pair(size) if known.do_resize else None,
        patches=(known.patch_size, known.max_num_patches) if tower.patches else None,
        crop=_pair(dict(known.crop_size or {})) if getattr(known, "do_center_crop", False) else None,
        resample=resample,
    )
    if inputs.shortest is None and inputs.resized is None and inputs.patches is None:
        raise InputError(f"{snapshot.model}: its preprocessor_config.json gives no size to resize pictures to")
    check_sizes(inputs, snapshot.model)
    scale = float(known.rescale_factor) if known.do_rescale else 1.0
    normal = (known.image_mean, known.image_std) if known.do_normalize else ((0.0,) * 3, (1.0,) * 3)
    return inputs, Colors(scale, *(tuple(map(float, one)) for one in normal))


def _kind(snapshot: Snapshot, tower: PictureTower) -> str:
    """Name the Pillow variant of the class that the file names; the family's where there is none."""
    from json import loads

    path = next(path for name in _FILES if (path := snapshot.folder / name).is_file())
    try:
        said = loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    own = f"{str(said.get('image_processor_type', '')).removesuffix('Fast')}Pil" if isinstance(said, dict) else ""
    return own if hasattr(transformers_for(f"hf:{snapshot.model}"), own) else tower.processor


def _pair(size: Mapping[str, int]) -> tuple[int, int] | None:
    return (int(size["height"]), int(size["width"])) if size.get("height") and size.get("width") else None


def _frames(frames: NDArray[np.uint8], _: Pictures, colors: Colors) -> list[Item]:
    return [{"pixel_values": one} for one in np.ascontiguousarray(colors.of(frames).transpose(0, 3, 1, 2))]


def _videos(count: int, frames: NDArray[np.uint8], _: Pictures, colors: Colors) -> list[Item]:
    """Cut frames (t, h, w, 3) into windows that follow each other; in a clip shorter than one its last frame stays."""
    held = np.concatenate([frames, np.repeat(frames[-1:], max(0, count - len(frames)), axis=0)])
    windows = (held[start : start + count] for start in starts(len(held), count, count))
    return [{"pixel_values": np.ascontiguousarray(colors.of(one).transpose(0, 3, 1, 2))} for one in windows]


def _begins(count: int, inputs: Pictures, rows: int, seconds: float) -> NDArray[np.float64]:
    """Say when the windows of a clip of so many seconds begin, in seconds: the last one ends with the clip."""
    last = max(0, min(inputs.limit, inputs.steps(seconds)) - count)
    return np.minimum(np.arange(rows, dtype=np.float64) * count, last) / inputs.frames_per_second


def _patches(frames: NDArray[np.uint8], inputs: Pictures, colors: Colors) -> list[Item]:
    """Cut frames (t, h, w, 3) into rows of patches, filled up with zeros to as many as the network takes."""
    assert inputs.patches is not None
    side, most = inputs.patches
    t, height, width, _ = frames.shape
    grid = (height // side, width // side)
    count = grid[0] * grid[1]
    cells = colors.of(frames).reshape(t, grid[0], side, grid[1], side, 3).swapaxes(2, 3).reshape(t, count, -1)
    rows = np.pad(cells, ((0, 0), (0, most - count), (0, 0)))
    mask = (np.arange(most) < count).astype(np.int64)
    shape = np.asarray(grid, dtype=np.int64)
    return [{"pixel_values": one, "pixel_attention_mask": mask, "spatial_shapes": shape} for one in rows]
