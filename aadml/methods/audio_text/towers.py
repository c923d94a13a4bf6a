"""A tower: the network of one modality and the layers that bring it into the common space."""

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features
from aadml.data.sources.loading import Loading
from aadml.data.sources.log_mels import LogMels, at_most_once, log_mels
from aadml.data.sources.network_items import ItemBatch, NetworkItems
from aadml.data.sources.padding import Padded
from aadml.data.sources.sound_batches import SoundBatch
from aadml.data.sources.texts import Captions
from aadml.data.sources.waveforms import PackedWaveforms, Waveforms
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS, load_published
from aadml.feature_extraction.frontends.log_mel import PANNS, LogMelSettings
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, nested
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.weights.hub_names import PREFIX
from aadml.feature_extraction.weights.tensor_files import read_tensors
from aadml.methods.audio_text.options import UNTRAINED, Freezing, TowerOptions
from aadml.methods.audio_text.text_input import BertInput, WordInput
from aadml.methods.method import Context
from aadml.methods.networks import layers
from aadml.methods.towers.hub_input import HubInput

_AT_ONCE = 32


class PannsInput(nn.Module):
    """A PANNs network with its front end."""

    settings: LogMelSettings = PANNS

    def __init__(self, network: str, weights: str, *, width: int, dropout: float, augment: bool) -> None:
        super().__init__()
        self.network = lookup(PANNS_NETWORKS, network, "audio network")(width=width, dropout=dropout, augment=augment)
        self.dimension = self.network.dimension
        if weights != UNTRAINED:
            if not Path(weights).is_file():
                raise InputError(f"{weights}: no such file; PANNs' weights are in Zenodo record 3987831")
            load_published(self.network, read_tensors(Path(weights)))

    def forward(self, batch: Padded) -> Tensor:
        """Describe spectrograms (b, t, bands) -> (b, dimension)."""
        full = bool((batch.lengths == batch.values.shape[1]).all())
        vectors = self.network(batch.values, None if full else batch.lengths)
        assert isinstance(vectors, Tensor)
        return vectors


class Tower(nn.Module):
    """A network and its head: two linear layers (Mei et al. 2022, section 3), or none.

    Attributes:
        network: padded batch -> (b, f).
        head: (b, f) -> (b, d).
        frozen: whether the network is not trained; the head always is, where there is one.
        frozen_mode: whether a frozen network runs in "eval" mode (statistics stand, nothing is drawn) or in "train"
            mode as in the released code, where batch norm statistics move and dropout and SpecAugment act.
    """

    def __init__(self, network: nn.Module, head: nn.Module, *, frozen: bool, frozen_mode: str) -> None:
        super().__init__()
        self.network, self.head = network, head
        self.frozen = frozen
        self.frozen_mode = "eval" if isinstance(network, HubInput) else frozen_mode
        if isinstance(network, HubInput):
            network.train_blocks(frozen=frozen)
        else:
            network.requires_grad_(not frozen)

    @property
    def settled(self) -> bool:
        """Say whether the network gives an item the same vector each time, so that it can be kept."""
        return self.frozen and self.frozen_mode == "eval"

    def train(self, mode: bool = True) -> "Tower":
        """Set the mode; a settled network stays in evaluation mode."""
        super().train(mode)
        if self.settled:
            self.network.eval()
        return self

    def forward(self, batch: Padded | ItemBatch | Tensor) -> Tensor:
        """Embed a padded batch, or network vectors (b, f) that were kept -> (b, d)."""
        vectors = self.head(batch if isinstance(batch, Tensor) else self.network(batch))
        assert isinstance(vectors, Tensor)
        return vectors


def audio_tower(options: TowerOptions, freezing: Freezing, context: Context) -> Tower:
    """Build the audio tower that the options of a method describe."""
    if options.audio.startswith(PREFIX):
        return _hub_tower(options.audio, "audio", options, freezing, context)
    network = PannsInput(
        options.audio, options.audio_weights, width=options.audio_width, dropout=options.dropout,
        augment=options.augment,
    )  # fmt: skip
    hidden = options.hidden or (2048 if network.dimension >= 2048 else 1024)
    return _tower(network, hidden, options, freezing, "audio")


def text_tower(options: TowerOptions, freezing: Freezing, context: Context) -> Tower:
    """Build the text tower that the options of a method describe."""
    if options.text.startswith(PREFIX):
        return _hub_tower(options.text, "text", options, freezing, context)
    architecture = context.architecture or {}
    if options.text == "bert":
        network: nn.Module = BertInput(
            options.text_weights, layers=options.text_layers, dimension=options.text_dimension,
            vocabulary=options.vocabulary, dropout=options.dropout, config=nested(architecture, "bert") or None,
        )  # fmt: skip
        return _tower(network, options.hidden or 2048, options, freezing, "text")
    network = WordInput(options.text_weights, dimension=options.text_dimension, seed=context.seed)
    return _tower(network, options.hidden or 1024, options, freezing, "text")


def _hub_tower(
    source: str, modality: Literal["audio", "text"], options: TowerOptions, freezing: Freezing, context: Context
) -> Tower:
    architecture: JsonObject = nested(context.architecture or {}, modality)
    network = HubInput(source, modality, options.blocks, architecture or None)
    return _tower(network, options.hidden or 1024, options, freezing, modality)


def _tower(network: nn.Module, hidden: int, options: TowerOptions, freezing: Freezing, modality: str) -> Tower:
    width = network.dimension
    assert isinstance(width, int)
    if options.heads == "none" and width != options.dimension:
        raise InputError(
            f"method.dimension: {options.dimension} given; without heads it is that of the networks, and that of the "
            f"{modality} network is {width}"
        )
    sizes = (width, hidden, options.dimension)
    head = layers(sizes, last=False) if options.heads == "layers" else nn.Identity()
    frozen = freezing.freeze in (modality, "both")
    return Tower(network, head, frozen=frozen, frozen_mode=freezing.frozen_mode)


def prepared(features: Features, network: nn.Module, loading: Loading) -> Features:
    """Lay a network's input over captions or sound; what is laid out already passes unchanged."""
    if isinstance(network, HubInput):
        if network.modality == "audio" and loading.log_mel == "device":
            raise InputError(
                "method.log_mel: device given; a network of transformers prepares its own sound, leave it out"
            )
        return network.prepared(features, loading)
    if isinstance(features, Captions):
        assert isinstance(network, BertInput | WordInput)
        return network.tokens(features)
    if isinstance(features, Waveforms | PackedWaveforms):
        settings = network.settings
        assert isinstance(settings, LogMelSettings)
        return log_mels(features, settings, loading)
    return features


def describe(features: Features, network: nn.Module, device: torch.device) -> tuple[Tensor, Tensor]:
    """Run a network over all items of a source, each sound once -> vectors (n, f) and which are present (n,).

    A row whose sound could not be decoded holds zeros.

    Raises:
        InputError: none of it could be decoded.
    """
    if isinstance(features, NetworkItems):
        tower, own = (network, network.network) if isinstance(network, Tower) else (None, network)
        assert isinstance(own, HubInput)
        found, there = own.describe(features, kept=own.still)
        with torch.no_grad():
            found = tower.head(found.to(device)).float().cpu() * there[:, None] if tower else found
        return found, there
    once, place = each_once(features)
    vectors, present = [], []
    for rows in once.split(_AT_ONCE):
        batch = input_batch(features, rows)
        present.append(batch.present)
        if bool(batch.present.any()):
            with torch.no_grad():
                vectors.append(network(batch.to(device)).float().cpu()[batch.present])
    there = torch.cat(present)
    _refuse_none(features, there)
    described = torch.cat(vectors)
    spread = described.new_zeros(len(there), described.shape[1])
    spread[there] = described
    return spread[place], there[place]


def with_sound(clips: Clips) -> Clips:
    """Leave out the clips whose sound cannot be decoded; each such file has been named in a warning.

    Spectrograms are kept in memory and on disk as far as that goes, so that nothing is decoded twice for this.

    Raises:
        InputError: none are left.
    """
    sounds = clips.features.get("audio")
    if not isinstance(sounds, LogMels | NetworkItems) or not len(sounds):
        return clips
    once, place = each_once(sounds)
    present = torch.cat([sounds.batch(rows).present for rows in once.split(_AT_ONCE)])[place]
    _refuse_none(sounds, present)
    return clips if bool(present.all()) else clips.select(present.nonzero()[:, 0])


def nothing_to_learn(index: Tensor) -> dict[str, Tensor]:
    """Give what a batch (b,) costs of which no sound could be decoded."""
    zero = torch.zeros((), device=index.device)
    return {"loss": zero, "active": zero}


def each_once(features: Features) -> tuple[Tensor, Tensor]:
    """Give rows (m,) that hold every sound once, and for each item (n,) which of them is its own."""
    if isinstance(features, LogMels | NetworkItems):
        return at_most_once(features.items), features.items.unique(return_inverse=True)[1]
    every = torch.arange(len(features))
    return every, every


def input_batch(features: Features, rows: Tensor) -> Padded | SoundBatch | ItemBatch:
    """Make the batch of a source's rows (b,), as its network takes it.

    Raises:
        InputError: the features are vectors.
    """
    if isinstance(features, Tensor):
        raise InputError("audio-text: wants sound and captions, not vectors")
    batch = features.batch(rows)
    assert isinstance(batch, Padded | SoundBatch | ItemBatch)
    return batch


def padded_batch(features: Features, rows: Tensor) -> Padded | SoundBatch:
    """Make the batch of a source's rows (b,), which is padded once it is on its device."""
    batch = input_batch(features, rows)
    assert isinstance(batch, Padded | SoundBatch)
    return batch


def _refuse_none(features: Features, present: Tensor) -> None:
    if not bool(present.any()):
        path, reason = next(iter(getattr(features, "failures", {}).items()), ("", ""))
        raise InputError(f"audio-text: none of the sounds can be decoded: {path} ({reason}), ...")


def refuse_absent(features: Features, present: Tensor) -> None:
    """Refuse to embed sound that cannot be decoded.

    Raises:
        InputError: some of it is not present (n,); the message names it.
    """
    if not bool(present.all()):
        failures = ", ".join(getattr(features, "failures", {}))
        raise InputError(f"audio-text: cannot embed sound that cannot be decoded: {failures}")
