"""Options of pretrained networks that are trained further."""

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from annotated_types import Interval

from aadml.data.sources.loading import Loading
from aadml.feature_extraction.ground.option_types import Written
from aadml.feature_extraction.weights.hub_names import PREFIX, without_folder

HubModel = Annotated[str, Written(PREFIX, f"{PREFIX}MODEL[@revision][#pooling]")]
"""A pretrained network of `transformers`."""
Blocks = Annotated[int, Interval(ge=0, le=10_000)] | Literal["all"]
"""How many of a network's blocks are trained, from the end."""
Mebibytes = Annotated[int, Interval(ge=0, le=1 << 24)]
Workers = Annotated[int, Interval(ge=0, le=256)]
TRAINED: tuple[Literal["audio", "visual", "text"], ...] = ("audio", "visual", "text")


@dataclass(frozen=True, kw_only=True)
class PretrainedOptions:
    """The `towers` section: pretrained networks in front of a method, whose data are then a manifest of media.

    Attributes:
        audio: hf:MODEL for a network of `transformers` (docs/encoders.md); null reads no sound.
        visual: of the frames, alike.
        text: of the column `text` or `caption`, alike.
        blocks: of each network that are trained, from the end, with what follows them; 0 trains what follows them alone
            (its own projection), "all" the whole network.
        train: whose networks are trained; the others are frozen, and what they make is computed once. [] freezes all:
            then the method's own layers alone are trained.
        memory_mib: prepared windows, frames and texts kept in memory instead of decoding them again.
        disk_mib: decoded media of trained networks that are kept in `$AADML_CACHE/decoded`, in all.
        workers: processes that decode for the steps to come what is not in memory; 0 decodes between two steps.
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
        """Say how media are decoded and kept."""
        return Loading.of(memory_mib=self.memory_mib, disk_mib=self.disk_mib, workers=self.workers)

    @property
    def networks(self) -> dict[Literal["audio", "visual", "text"], str]:
        """Name the network of each modality that has one."""
        named = {"audio": self.audio, "visual": self.visual, "text": self.text}
        return {modality: name for modality in TRAINED if (name := named[modality]) is not None}

    def without_folders(self) -> "PretrainedOptions":
        """Leave of folders only their last part: a model travels, and needs none of them."""
        audio, visual, text = (name and without_folder(name) for name in (self.audio, self.visual, self.text))
        return replace(self, audio=audio, visual=visual, text=text)
