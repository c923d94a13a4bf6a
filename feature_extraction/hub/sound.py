"""Sound by a pretrained network of `transformers`: one vector a window."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.hub.families import Item, SoundTower
from aadml.feature_extraction.hub.loading import processor_of
from aadml.feature_extraction.hub.networks import Precision, Preparation, about, encoder, tower_of
from aadml.feature_extraction.hub.snapshot import Snapshot, find
from aadml.feature_extraction.hub.windows import TAIL, begins, cut
from aadml.feature_extraction.media import Sound

_BATCH = 4  # windows run at once


def hf_audio(
    *,
    model: str = "",
    revision: str | None = None,
    pooling: str | None = None,
    hop: Annotated[float, Interval(gt=0, le=600)] | None = None,
    precision: Precision = "float32",
    device: str = "auto",
) -> Extractor:
    """Describe sound by a pretrained network of `transformers` (CLAP, Whisper, wav2vec 2.0 ...): `--audio hf:MODEL`.

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
    found = encoder(
        snapshot, tower, prepared := sound_preparation(snapshot, tower, hop=hop), pooling=pooling,
        device=chosen_device(device, "hf-audio"), precision=precision,
    )  # fmt: skip
    return found.extractor(
        "audio", about(snapshot), begins=prepared.begins, minimum_seconds=prepared.minimum_seconds, batch_clips=8
    )


@dataclass(frozen=True)
class SoundPreparation(Preparation):
    """How sound becomes windows.

    Attributes:
        begins: says when the windows of a clip begin.
        minimum_seconds: that a clip must last.
    """

    begins: Callable[[int, float], NDArray[np.float64]] | None = None
    minimum_seconds: float = 0.0


def sound_preparation(snapshot: Snapshot, tower: SoundTower, *, hop: float | None = None) -> SoundPreparation:
    """Read how sound is prepared from the model's own files.

    Args:
        snapshot: of the model.
        tower: of its family.
        hop: seconds from one window to the next; None: the length of a window.
    """
    processor = processor_of(snapshot, "AutoFeatureExtractor", ("preprocessor_config.json", "processor_config.json"))
    rate, window = int(processor.sampling_rate), tower.window(processor)
    step = window if hop is None else max(1, round(hop * rate))

    def items(samples: NDArray[np.float32]) -> list[Item]:
        return [tower.item(processor, part) for part in cut(samples, window, step)]

    return SoundPreparation(
        inputs=Sound(rate),
        items=items,
        trial=np.zeros(max(tower.shortest, 1), dtype=np.float32),
        parameters={
            "window": window / rate, "hop": step / rate, "tail": TAIL,
            "short": "filled by the processor" if tower.filled else "at its own length",
            "processor": _settings(processor),
        },
        filled=tower.filled,
        batch=_BATCH,
        begins=partial(begins, window, step, rate),
        minimum_seconds=tower.shortest / rate,
    )  # fmt: skip


def _settings(processor: Any) -> JsonObject:
    """Give the settings of a processor that are plain values."""
    plain = (str, int, float, bool, type(None))
    return {key: value for key, value in sorted(processor.to_dict().items()) if isinstance(value, plain)}
