"""Sound by a pretrained network of `transformers`: one vector a window."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from feature_extraction.backbones import Description, Extractor
from feature_extraction.ground.json_values import JsonObject
from feature_extraction.hub.families import Item, SoundTower
from feature_extraction.hub.networks import about, chosen_pooling, dimension, load, processor_of, tower_of
from feature_extraction.hub.snapshot import find
from feature_extraction.hub.windows import TAIL, begins, cut
from feature_extraction.media import Sound
from feature_extraction.network_run import chosen_device

_BATCH = 4  # windows run at once


def hf_audio(
    *,
    model: str = "",
    revision: str | None = None,
    pooling: str | None = None,
    hop: Annotated[float, Interval(gt=0, le=600)] | None = None,
    precision: Literal["float32", "bfloat16", "auto"] = "float32",
    device: str = "auto",
) -> Extractor:
    """Describe sound by a pretrained network of `transformers` (CLAP, AST, Whisper, PE-AV): `--audio hf:MODEL`.

    The clip is cut into windows as long as the network takes; its feature is the mean over them.

    Args:
        model: a folder, or a name on the Hugging Face Hub.
        revision: branch, tag or commit on the hub; None: the newest.
        pooling: how outputs become a vector; None: as the family does it, see docs/encoders.md.
        hop: seconds from one window to the next; None: the length of a window.
        precision: `float32`; `bfloat16` (autocast); `auto` (bfloat16 where the hardware multiplies it).
        device: `auto`, `cpu` or `cuda`.

    Returns:
        The extractor.

    Raises:
        InputError: no such model, one of another family, or files that cannot be read.
    """
    snapshot = find(model, revision)
    tower = tower_of(snapshot, "audio", SoundTower)
    name, pool = chosen_pooling(tower, pooling)
    processor = processor_of(snapshot, "AutoFeatureExtractor", ("preprocessor_config.json", "processor_config.json"))
    run, parameters = load(snapshot, tower, pool, chosen_device(device, "hf-audio"), precision, _BATCH)
    rate, window = int(processor.sampling_rate), tower.window(processor)
    step = window if hop is None else max(1, round(hop * rate))

    def items(samples: NDArray[np.float32]) -> list[Item]:
        return [tower.item(processor, part) for part in cut(samples, window, step)]

    def describe(clips: Sequence[NDArray[Any]]) -> list[Description]:
        return run([items(clip) for clip in clips], filled=tower.filled)

    return Extractor(
        name="hf-audio",
        modality="audio",
        dimension=dimension(snapshot, describe, np.zeros(max(tower.shortest, 1), dtype=np.float32)),
        inputs=Sound(rate),
        parameters={
            **parameters, "pooling": name, "window": window / rate, "hop": step / rate, "tail": TAIL,
            "short": "filled by the processor" if tower.filled else "at its own length",
            "processor": _settings(processor),
        },
        about=about(snapshot),
        prepare=np.asarray,
        describe=describe,
        begins=partial(begins, window, step, rate),
        minimum_seconds=tower.shortest / rate,
        batch_clips=8,
    )  # fmt: skip


def _settings(processor: Any) -> JsonObject:
    """Give the settings of a processor that are plain values."""
    plain = (str, int, float, bool, type(None))
    return {key: value for key, value in sorted(processor.to_dict().items()) if isinstance(value, plain)}
