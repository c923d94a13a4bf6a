"""Options of pretrained networks that compute the input vectors of a method."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_types import Interval

from aadml.comparison.options import CountOrZero, LearningRate
from aadml.data.sources.loading import Loading
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Written
from aadml.feature_extraction.ground.options import removing
from aadml.feature_extraction.weights.hub_names import PREFIX

HubModel = Annotated[str, Written(PREFIX, f"{PREFIX}MODEL[@revision][#pooling]")]
"""A pretrained network of `transformers`."""
Blocks = Annotated[int, Interval(ge=0, le=10_000)] | Literal["all"]
"""Number of trained blocks of a network, counted from the end, or "all"."""
Mebibytes = Annotated[int, Interval(ge=0, le=1 << 24)]
TRAINED: tuple[Literal["audio", "visual", "text"], ...] = ("audio", "visual", "text")


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """Options of training pretrained networks of `transformers`, without effect on frozen networks.

    Attributes:
        blocks: number of trained blocks of each network hf:MODEL, counted from the end. The layers after the blocks
            are trained too. 0 trains only these layers, such as the network's own projection, and "all" trains the
            whole network.
        lora_rank: rank of low-rank adapters (LoRA) in the linear layers of the trained blocks and of the layers
            after the blocks. Adapters need the extra `lora`. Training changes only the adapters of a network, and a
            saved model contains no other weights of the network. 0 trains the weights, without adapters.
        lora_alpha: strength of the adapters, which are multiplied by `lora_alpha / lora_rank`.
        micro_batch: number of items that a network processes together in training; 0 for the whole batch. Each part
            of the batch is computed again for its gradient (GradCache). Gradients and dropout do not depend on this
            number.
        checkpointing: whether the activations inside the trained blocks are computed again for the gradient instead
            of stored. The repeated computation needs less memory and more time, and yields the same gradients.
        learning_rate: learning rate of the networks hf:MODEL; null for `training.learning_rate`, the rate of all
            other layers. `training.schedule` and `training.warmup` apply to both rates.
    """

    blocks: Blocks = "all"
    lora_rank: Annotated[int, Interval(ge=0, le=65_536)] = 0
    lora_alpha: Annotated[float, Interval(gt=0, le=1e6)] = 16.0
    micro_batch: CountOrZero = 0
    checkpointing: bool = False
    learning_rate: LearningRate | None = None


@removing(workers=...)
@dataclass(frozen=True, kw_only=True)
class PretrainedOptions(FineTuning):
    """The `towers` section: pretrained networks that compute a method's inputs from the media of a manifest.

    Attributes:
        audio: network of `transformers` for sound, hf:MODEL (docs/encoders.md); null reads no sound.
        visual: network for frames, hf:MODEL; null reads no frames.
        text: network for the column `text` or `caption`, hf:MODEL; null reads no text.
        train: modalities of trained networks. The other networks are frozen, and their vectors are computed once.
            [] freezes all networks, so that only the method's own layers are trained.
        memory_mib: size limit of the memory cache of prepared windows, frames and texts, in MiB. Cached items are
            not prepared again.
        disk_mib: size limit of `$AADML_CACHE/decoded`, the cache of decoded media of trained networks, in MiB; 0
            for no cache on disk.

    Raises:
        InputError: no network is set.
    """

    audio: HubModel | None = None
    visual: HubModel | None = None
    text: HubModel | None = None
    train: tuple[Literal["audio", "visual", "text"], ...] = TRAINED
    memory_mib: Mebibytes = 1024
    disk_mib: Mebibytes = 4096

    def __post_init__(self) -> None:
        if not self.networks:
            raise InputError(
                "towers: the section names no network; set towers.audio, towers.visual or towers.text, or leave out "
                "the section"
            )

    @property
    def loading(self) -> Loading:
        """Caches of decoded media."""
        return Loading.of(memory_mib=self.memory_mib, disk_mib=self.disk_mib)

    @property
    def networks(self) -> dict[Literal["audio", "visual", "text"], str]:
        """Sources of the networks by modality."""
        return {modality: source for modality in TRAINED if (source := getattr(self, modality)) is not None}

    def renamed(self, change: Callable[[str], str]) -> "PretrainedOptions":
        """Return the options with `change` applied to the source of each network."""
        audio, visual, text = (source and change(source) for source in (self.audio, self.visual, self.text))
        return replace(self, audio=audio, visual=visual, text=text)
