"""A tower: the network of one modality, and the layers from the network's output to the common space."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features
from aadml.data.sources.loading import Loading
from aadml.data.sources.log_mels import LogMels, log_mels
from aadml.data.sources.network_items import ItemBatch, NetworkItems
from aadml.data.sources.padding import Padded
from aadml.data.sources.texts import Captions
from aadml.data.sources.waveforms import PackedWaveforms, Waveforms
from aadml.feature_extraction.backbones.panns import PANNS_NETWORKS, load_published
from aadml.feature_extraction.frontends.log_mel import PANNS, LogMelSettings
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.weights.hub_names import PREFIX
from aadml.feature_extraction.weights.tensor_files import read_tensors
from aadml.methods.architecture import Architecture
from aadml.methods.audio_text.options import UNTRAINED, Freezing, TowerOptions
from aadml.methods.audio_text.text_input import BertInput, WordInput
from aadml.methods.method import Context
from aadml.methods.networks import layers
from aadml.methods.towers.hub_input import HubInput
from aadml.methods.training.learner import on_device

_AT_ONCE = 32


class PannsInput(nn.Module):
    """A PANNs network with the settings of its front end.

    Raises:
        InputError: the name of the network is unknown, or the file of weights is missing, cannot be read, or belongs to
            another network.
    """

    __call__: Callable[..., Tensor]
    settings: LogMelSettings = PANNS

    def __init__(self, network: str, weights: str, *, width: int, dropout: float, augment: bool) -> None:
        super().__init__()
        self.network = lookup(PANNS_NETWORKS, network, "audio network")(width=width, dropout=dropout, augment=augment)
        self.dimension = self.network.dimension
        if weights != UNTRAINED:
            if not Path(weights).is_file():
                raise InputError(
                    f"{weights}: the file does not exist; download weights of PANNs from Zenodo record 3987831"
                )
            load_published(self.network, read_tensors(Path(weights)))

    def forward(self, batch: Padded) -> Tensor:
        """Compute the vectors (b, dimension) of spectrograms (b, t, bands)."""
        full = bool((batch.lengths == batch.values.shape[1]).all())
        vectors: Tensor = self.network(batch.values, None if full else batch.lengths)
        return vectors


class CaptionTower(nn.Module):
    """A network and its head of two linear layers (Mei et al. 2022, section 3), or a network without a head.

    Reference: Mei et al., On metric learning for audio-text cross-modal retrieval, Interspeech 2022, https://arxiv.org/abs/2203.15537

    Attributes:
        network: batch -> (b, f).
        head: vectors (b, f) -> (b, d).
        frozen: whether the network is frozen; a head is always trained.
        frozen_mode: mode of a frozen network. "eval" fixes the batch norm statistics and draws no random numbers.
            "train", the mode in the released code, updates the batch norm statistics and applies dropout and
            SpecAugment. A network of `transformers` always has "eval".

    Raises:
        InputError: a network of `transformers` cannot be trained with its options.
    """

    __call__: Callable[..., Tensor]

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
        """True if the network always computes the same vector for an item, so that vectors can be cached."""
        return self.frozen and self.frozen_mode == "eval"

    def train(self, mode: bool = True) -> "CaptionTower":
        """Set training or evaluation mode; a settled network stays in evaluation mode."""
        super().train(mode)
        if self.settled:
            self.network.eval()
        return self

    def forward(self, batch: Padded | ItemBatch | Tensor, rows: Tensor | None = None) -> Tensor:
        """Compute the vectors (b, d) of b items.

        Args:
            batch: inputs of the network, or cached vectors (b, f) in place of the network's output.
            rows: see `HubInput.forward`.
        """
        if isinstance(batch, ItemBatch):
            batch = self.network(batch, rows)
        vectors: Tensor = self.head(batch if isinstance(batch, Tensor) else self.network(batch))
        return vectors


def build_tower(
    modality: Literal["audio", "text"], options: TowerOptions, freezing: Freezing, context: Context
) -> CaptionTower:
    """Build the tower of a modality from the options of a method.

    Raises:
        InputError: a network cannot be read or trained with these options, or a tower without a head has another
            dimension than the common space.
    """
    source, architecture, hidden = getattr(options, modality), context.architecture or Architecture(), 1024
    if source.startswith(PREFIX):
        network: nn.Module = HubInput(source, modality, options, architecture.tower(modality))
    elif modality == "audio":
        network = PannsInput(
            source, options.audio_weights, width=options.audio_width, dropout=options.dropout, augment=options.augment
        )
        hidden = 2048 if network.dimension >= 2048 else 1024
    elif source == "bert":
        network = BertInput(
            options.text_weights, layers=options.text_layers, dimension=options.text_dimension,
            vocabulary=options.vocabulary, dropout=options.dropout, config=architecture.bert,
        )  # fmt: skip
        hidden = 2048
    else:
        network = WordInput(options.text_weights, dimension=options.text_dimension, seed=context.seed)
    return _tower(network, options.hidden or hidden, options, freezing, modality)


def _tower(network: nn.Module, hidden: int, options: TowerOptions, freezing: Freezing, modality: str) -> CaptionTower:
    width = network.dimension
    assert isinstance(width, int)
    if options.heads == "none" and width != options.dimension:
        raise InputError(
            f"method.dimension is {options.dimension}, but the {modality} network has dimension {width} and no head; "
            f"set method.dimension to {width}, or method.heads to layers"
        )
    sizes = (width, hidden, options.dimension)
    head = layers(sizes, last=False) if options.heads == "layers" else nn.Identity()
    frozen = freezing.freeze in (modality, "both")
    return CaptionTower(network, head, frozen=frozen, frozen_mode=freezing.frozen_mode)


def prepared(features: Features, network: nn.Module, loading: Loading) -> Features:
    """Return captions or sound as inputs of a network; other features are returned unchanged.

    Raises:
        InputError: the vocabulary is empty, because the method is not fitted, or the network does not support the
            rate of packed sound.
    """
    if isinstance(network, HubInput):
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
    """Compute the vectors of all n items of a source with a network.

    Each distinct sound is processed once. The vector of a sound that cannot be decoded is zero. Vectors of a network
    of `transformers` may come from the cache on disk. Those of a tower never do, so that an audit checks the network.

    Returns:
        Vectors (n, f), and (n,) bool, True for a decoded item. Both tensors are on the CPU.

    Raises:
        InputError: no sound can be decoded (except for networks of `transformers`), or the features are vectors.
    """
    if isinstance(features, NetworkItems):
        tower, hub = (network, network.network) if isinstance(network, CaptionTower) else (None, network)
        assert isinstance(hub, HubInput)
        vectors, present = hub.describe(features, stored=tower is None)
        with torch.no_grad():
            vectors = tower.head(vectors.to(device)).float().cpu() * present[:, None] if tower else vectors
        return vectors, present
    distinct, inverse = distinct_items(features)
    parts, flags = [], []
    for rows in distinct.split(_AT_ONCE):
        batch = input_batch(features, rows, device)
        flags.append(batch.present.cpu())
        if bool(batch.present.any()):
            with torch.no_grad():
                parts.append(network(batch).float().cpu()[flags[-1]])
    present = torch.cat(flags)
    _check_any_present(features, present)
    described = torch.cat(parts)
    vectors = described.new_zeros(len(present), described.shape[1])
    vectors[present] = described
    return vectors[inverse], present[inverse]


def with_sound(clips: Clips) -> Clips:
    """Return the clips with decodable sound; a warning names each undecodable file.

    Decoded sound is cached in memory and on disk, up to the sizes in the options.

    Raises:
        InputError: no sound can be decoded.
    """
    sounds = clips.features.get("audio")
    if not isinstance(sounds, LogMels | NetworkItems) or not len(sounds):
        return clips
    distinct, inverse = distinct_items(sounds)
    present = torch.cat([sounds.batch(rows).present for rows in distinct.split(_AT_ONCE)])[inverse]
    _check_any_present(sounds, present)
    return clips if bool(present.all()) else clips.select(present.nonzero()[:, 0])


def nothing_to_learn(index: Tensor) -> dict[str, Tensor]:
    """Return zero as "loss" and "active", for a batch without decodable sound.

    Args:
        index: (b,) rows of the batch; the result is on the same device.
    """
    zero = torch.zeros((), device=index.device)
    return {"loss": zero, "active": zero}


def distinct_items(features: Features) -> tuple[Tensor, Tensor]:
    """Find the distinct items among n items.

    Only spectrograms and items of `transformers` are compared; the items of other features count as distinct.

    Returns:
        Rows (m,) of the m distinct items, and positions (n,) that assign each of the n items to one of these rows.
    """
    if isinstance(features, LogMels | NetworkItems):
        return features.distinct()
    rows = torch.arange(len(features))
    return rows, rows


def input_batch(features: Features, rows: Tensor, device: torch.device) -> Any:
    """Return the batch of a source's rows (b,) on a device.

    Raises:
        InputError: the features are vectors.
    """
    if isinstance(features, Tensor):
        raise InputError("the features are vectors, but the network reads sound or captions; pass sound or captions")
    return on_device(features, rows, device)


def _check_any_present(features: Features, present: Tensor) -> None:
    if not bool(present.any()):
        path, reason = next(iter(getattr(features, "failures", {}).items()), ("", ""))
        raise InputError(f"no sound can be decoded (for example, {path}: {reason}); restore or replace the files")


def check_present(features: Features, present: Tensor) -> None:
    """Check that all sound could be decoded.

    Raises:
        InputError: some flags of `present` (n,) are False; the message names the files.
    """
    if not bool(present.all()):
        failures = ", ".join(getattr(features, "failures", {}))
        raise InputError(f"the sound of {failures} cannot be decoded; omit or restore these files")
