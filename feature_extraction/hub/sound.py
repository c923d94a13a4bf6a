"""Features of sound from a pretrained network of `transformers`: one vector per window."""

from functools import partial
from typing import Annotated

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.hub.families import Item, SoundTower
from aadml.feature_extraction.hub.loading import processor_of
from aadml.feature_extraction.hub.networks import Precision, Preparation, encoder, tower_of
from aadml.feature_extraction.hub.snapshot import Snapshot, find
from aadml.feature_extraction.hub.windows import TAIL, begins, cut
from aadml.feature_extraction.media import Sound

_BATCH = 4  # windows


def hf_audio(
    *,
    model: str = "",
    revision: str | None = None,
    pooling: str | None = None,
    hop: Annotated[float, Interval(gt=0, le=600)] | None = None,
    precision: Precision = "float32",
    device: str = "auto",
) -> Extractor:
    """Build an extractor from a pretrained network of `transformers` (CLAP, Whisper, wav2vec ...): `--audio hf:MODEL`.

    A clip is cut into windows of a length that depends on the family. The feature of the clip is the mean over its
    windows.

    Args:
        model: folder, or name on the Hugging Face Hub.
        revision: branch, tag or commit on the hub; None for the newest commit.
        pooling: name of a pooling of the outputs; None for the default of the family, see docs/encoders.md.
        hop: seconds from one window to the next; None for the length of a window.
        precision: `float32`; `bfloat16` (autocast); `auto` (bfloat16 if the hardware supports it, otherwise float32).
        device: `auto`, `cpu` or `cuda`.

    Returns:
        The extractor.

    Raises:
        InputError: a model, revision, pooling or device that does not exist, a model of an unknown family or with
            unreadable files, or a missing package `transformers`.
    """
    snapshot = find(model, revision)
    tower = tower_of(snapshot, "audio", SoundTower)
    preparation = sound_preparation(snapshot, tower, hop=hop)
    network = encoder(
        snapshot, tower, preparation, pooling=pooling, device=chosen_device(device, "hf-audio"), precision=precision
    )
    return network.extractor("audio", 8)


def sound_preparation(snapshot: Snapshot, tower: SoundTower, *, hop: float | None = None) -> Preparation:
    """Read the preparation of sound from the files of a model.

    Args:
        snapshot: files of the model.
        tower: tower of the model's family.
        hop: seconds from one window to the next; None for the length of a window.

    Raises:
        InputError: the processor of the sound cannot be read.
    """
    processor = processor_of(snapshot, "AutoFeatureExtractor", ("preprocessor_config.json", "processor_config.json"))
    rate, window = int(processor.sampling_rate), tower.window(processor)
    settings = sorted(processor.to_dict().items())
    step = window if hop is None else max(1, round(hop * rate))

    def items(samples: NDArray[np.float32]) -> list[Item]:
        return [tower.item(processor, part) for part in cut(samples, window, step)]

    return Preparation(
        inputs=Sound(rate),
        items=items,
        trial=np.zeros(max(tower.shortest, 1), dtype=np.float32),
        parameters={
            "window": window / rate, "hop": step / rate, "tail": TAIL,
            "short": "filled by the processor" if tower.filled else "at its own length",
            "processor": {key: value for key, value in settings if isinstance(value, str | int | float | None)},
        },
        batch=_BATCH if tower.filled else 1,
        begins=partial(begins, window, step, rate),
        minimum_seconds=tower.shortest / rate,
    )  # fmt: skip
