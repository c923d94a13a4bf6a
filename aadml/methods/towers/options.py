"""Options of pretrained networks in front of a method."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_types import Interval

from aadml.data.sources.loading import Loading
from aadml.feature_extraction.ground.option_types import Written
from aadml.feature_extraction.weights.hub_names import PREFIX, without_folder

HubModel = Annotated[str, Written(PREFIX, f"{PREFIX}MODEL[@revision][#pooling]")]
"""A pretrained network of `transformers`."""
Blocks = Annotated[int, Interval(ge=0, le=10_000)] | Literal["all"]
"""Number of trained blocks of a network, from the end."""
Mebibytes = Annotated[int, Interval(ge=0, le=1 << 24)]
Workers = Annotated[int, Interval(ge=0, le=256)]
TRAINED: tuple[Literal["audio", "visual", "text"], ...] = ("audio", "visual", "text")


@dataclass(frozen=True, kw_only=True)
class PretrainedOptions:
    """The `towers` section: pretrained networks in front of a method, which is then trained on a manifest of media.

    Attributes:
        audio: hf:MODEL for a network of `transformers` (docs/encoders.md); null reads no sound.
        visual: the same for frames.
        text: the same for the column `text` or `caption`.
        blocks: trained blocks of each network, from the end, with the layers after them; 0 trains the layers after the
            blocks alone (the network's own projection), "all" the whole network.
        train: modalities whose networks are trained; the others are frozen, and their vectors are computed once. []
            freezes all, so that the method's own layers alone are trained.
        memory_mib: memory for prepared windows, frames and texts, which are not decoded again.
        disk_mib: disk space in `$AADML_CACHE/decoded` for decoded media of trained networks, in all.
        workers: processes that decode media outside memory for the next steps; 0 decodes between two steps.
    """

    audio: HubModel | None = None
    visual: HubModel | None = None
    text: HubModel | None = None
    blocks: Blocks = "all"
    train: tuple[Literal["audio", "visual", "text"], ...] = TRAINED
    memory_mib: Mebibytes = 1024
    disk_mib: Mebibytes = 4096
    workers: Workers = 0

    @property
    def loading(self) -> Loading:
        """How media are decoded and cached."""
        return Loading.of(memory_mib=self.memory_mib, disk_mib=self.disk_mib, workers=self.workers)

    @property
    def networks(self) -> dict[Literal["audio", "visual", "text"], str]:
        """Sources of the networks by modality."""
        return {modality: source for modality in TRAINED if (source := getattr(self, modality)) is not None}

    def without_folders(self) -> "PretrainedOptions":
        """Return the options with only the last part of folder paths: a saved model needs no folder."""
        audio, visual, text = (source and without_folder(source) for source in (self.audio, self.visual, self.text))
        return replace(self, audio=audio, visual=visual, text=text)
