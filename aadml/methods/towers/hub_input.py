"""A pretrained network of `transformers` in a tower: trained entirely, trained in its last blocks, or frozen."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from aadml.comparison.features import Features
from aadml.data.sources.loading import Loading
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.network_items import ItemBatch, NetworkItems, text_items
from aadml.data.sources.texts import Captions
from aadml.data.sources.vector_cache import open_vector_cache
from aadml.data.sources.waveforms import PackedWaveforms
from aadml.feature_extraction.backbones import mean_over_time
from aadml.feature_extraction.frontends.inference import Item, Runner
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub.blocks import train_only, trained_parts
from aadml.feature_extraction.hub.networks import Preparation
from aadml.feature_extraction.hub.saved_tower import SavedTower
from aadml.feature_extraction.hub.snapshot import require_download_consent
from aadml.feature_extraction.hub.towers import Kind, OpenedTower, blank_tower, open_tower, preparation_in
from aadml.feature_extraction.media import Frames, Sound, Text
from aadml.feature_extraction.media.decoding import decoder_versions
from aadml.feature_extraction.weights.hub_names import expanded
from aadml.methods.method import Method
from aadml.methods.towers.adapters import MARK, add_adapters, linear_layers, merge_adapters
from aadml.methods.towers.checkpointing import checkpoint_blocks
from aadml.methods.towers.item_draws import ItemDraws, seed_of
from aadml.methods.towers.options import FineTuning
from aadml.methods.training.learner import ResizedBuffers

_AT_ONCE = 32


def merged(method: Method) -> Method:
    """Return a copy of a method with the adapters of its networks added to the weights.

    Raises:
        InputError: the method has no adapters.
    """
    copy = deepcopy(method)
    learner = getattr(copy, "learner", nn.Module())
    networks = [part for part in learner.modules() if isinstance(part, HubInput) and part.saved.adapted]
    if not networks:
        raise InputError("the model has no adapters to merge; save the model as it is")
    for network in networks:
        network.merge()
    return copy


def _base_of(saved: SavedTower, modality: Kind) -> OpenedTower:
    """Open the network under the adapters of a saved model.

    Raises:
        InputError: the network cannot be read or needs consent to its download, or its weights are not those of the
            saved model.
    """
    source = expanded(saved.base, modality)[1]
    try:
        require_download_consent(source["model"], source.get("revision"))
        tower = open_tower(saved.base, modality, torch.device("cpu"))
    except InputError as error:
        raise InputError(f"the adapters of {saved.model} need the weights of {saved.base}, but {error}") from error
    if tower.architecture.weights != saved.weights:
        raise InputError(
            f"the model has adapters of {saved.model} with weights {saved.weights[:16]}..., but the weights found are "
            f"{tower.architecture.weights[:16]}...; restore the weights that were used in training"
        )
    return tower


class HubInput(ResizedBuffers):
    """A pretrained network and the preparation of its inputs; the preparation is saved as bytes with the weights.

    In training, items of one shape are processed together, and the vector of a clip is the mean over its windows.
    In evaluation, a vector is computed as in the extractor `hf:MODEL`, independently of the other items of the
    batch.

    Args:
        source: `hf:MODEL[@revision][#pooling]`.
        modality: modality of the tower.
        tuning: options of training the network.
        saved: description of the network in a saved model; None reads the model of `source`.

    Attributes:
        dimension: d of a vector.
        saved: description of the network, for a saved model.
        tuning: options of training the network.

    Raises:
        InputError: the network cannot be read, or differs from the network under the adapters of a saved model.
        MissingExtraError: a package that the network or the adapters need is not installed.
    """

    __call__: Callable[..., Tensor]
    files: Tensor
    resized = ("files",)

    def __init__(self, source: str, modality: Kind, tuning: FineTuning, saved: SavedTower | None) -> None:
        super().__init__()
        self.modality: Kind = modality
        self._parts: list[nn.Module] = []
        self.tuning = tuning
        self._epoch, self._calls = 0, 0
        self._to_be_trained = saved is None
        files = b""
        if saved is not None and not saved.adapted:
            self.saved = saved
            self.network, self._pool = blank_tower(saved, modality)
        else:
            tower = _base_of(saved, modality) if saved else open_tower(source, modality, torch.device("cpu"))
            self.saved, files = saved or tower.architecture, tower.files
            self.network, self._pool = tower.encoder.run.network, tower.encoder.run.pool
            self.preparation = tower.encoder.preparation
        if self.saved.adapted:
            self.add_adapters()
        self.register_buffer("files", torch.tensor(list(files), dtype=torch.uint8))
        self.dimension = self.saved.dimension

    @cached_property
    def preparation(self) -> Preparation:
        """Preparation of sounds, frames or texts into items."""
        return preparation_in(bytes(self.files.tolist()), self.saved.model, self.modality)

    def train_blocks(self, *, frozen: bool) -> None:
        """Make the parts selected by `tuning.blocks` trainable.

        With `frozen` or for a saved model, no part is trainable. If `tuning.lora_rank` is above 0, the adapters of
        the linear layers in these parts are trainable instead.

        Raises:
            InputError: the network has too few blocks, or no linear layers for adapters.
            MissingExtraError: `peft` is needed for adapters, but not installed.
        """
        trained = self._to_be_trained and not frozen
        self._parts = trained_parts(self.network, self._try_out, self.tuning.blocks) if trained else []
        weights = self._parts
        if trained and self.tuning.lora_rank:
            self.saved = replace(self.saved, adapted=linear_layers(self.network, self._parts))
            weights = self.add_adapters()
        train_only(self.network, weights)
        if self.tuning.checkpointing:
            checkpoint_blocks(self.network, self._parts)

    def add_adapters(self) -> list[nn.Module]:
        """Add adapters to the layers in `saved.adapted`, and return them."""
        rank, alpha = self.tuning.lora_rank, self.tuning.lora_alpha
        return add_adapters(self.network, self.saved.adapted, rank=rank, alpha=alpha)

    def merge(self) -> None:
        """Merge the adapters into the weights, so that a saved model contains the complete network."""
        merge_adapters(self.network, self.saved.adapted)
        self.saved = replace(self.saved, adapted=())

    def state_dict(self, *args: Any, prefix: str = "", **rest: Any) -> Any:
        """Return the parameters and buffers. For a network with adapters, return only the adapters and `files`."""
        state = super().state_dict(*args, prefix=prefix, **rest)
        if self.saved.adapted:
            for name in [name for name in state if name.startswith(f"{prefix}network.") and MARK not in name]:
                del state[name]
        return state

    def _load_from_state_dict(self, state_dict: Mapping[str, Tensor], prefix: str, *rest: Any) -> None:
        if self.saved.adapted and isinstance(state_dict, dict):
            unchanged = self.network.state_dict(prefix=f"{prefix}network.")
            state_dict.update({name: value for name, value in unchanged.items() if MARK not in name})
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @property
    def frozen(self) -> bool:
        """Whether no part of the network is trained."""
        return not self._parts

    @property
    def rates(self) -> dict[nn.Parameter, float]:
        """Learning rates of the trained parameters; empty if `training.learning_rate` applies."""
        rate = self.tuning.learning_rate
        return {} if rate is None else {p: rate for p in self.network.parameters() if p.requires_grad}

    def train(self, mode: bool = True) -> "HubInput":
        """Set the mode; frozen parts and all batch norms stay in evaluation mode."""
        super().train(False)
        self.training = mode and bool(self._parts)
        for part in self._parts:
            part.training = mode and not isinstance(part, _BatchNorm)
        return self

    def prepared(self, features: Features, loading: Loading) -> Features:
        """Return n media or captions as items of the network; other features are returned unchanged.

        Args:
            features: features of n items.
            loading: caches of decoded media; for a frozen network, the disk caches vectors instead of media.
        """
        preparation, loading = self.preparation, replace(loading, disk=None) if self.frozen else loading
        if isinstance(features, Captions):
            return text_items(features, preparation.items, loading)
        if isinstance(features, PackedWaveforms):
            assert isinstance(preparation.inputs, Sound)
            waveforms = features.at(preparation.inputs.sample_rate)
            return NetworkItems(waveforms, features.items, loading, make=preparation.items)
        if isinstance(features, MediaFiles):
            assert not isinstance(preparation.inputs, Text)
            shortest = preparation.minimum_seconds
            files = MediaFiles(
                features.paths, features.items, preparation.inputs, shortest, loading.disk, features.failures,
                features.known, features.segments,
            )  # fmt: skip
            return NetworkItems(files, files.items, loading, make=preparation.items)
        return features

    def forward(self, batch: ItemBatch, rows: Tensor | None = None) -> Tensor:
        """Compute the vectors (b, dimension) of a batch of b clips; zeros for a clip that could not be decoded.

        Args:
            batch: items of b clips.
            rows: positions (b,) of the clips in the batch of all workers; 0 to b - 1 by default. Dropout depends on
                the positions.
        """
        if not self.training:
            return self._described(batch)
        return self._trained(batch, list(range(len(batch))) if rows is None else rows.tolist())

    def describe(self, source: NetworkItems, *, stored: bool) -> tuple[Tensor, Tensor]:
        """Compute the vectors of all n items of a source, once for each stored file or text.

        The network must be in evaluation mode.

        Args:
            source: result of `prepared`.
            stored: whether vectors are read from the cache on disk, and added to this cache.

        Returns:
            Vectors (n, dimension) on the CPU, and flags (n,) that are True for decoded items. The vector of an item
            that could not be decoded is zero.
        """
        distinct, inverse = source.distinct()
        store = open_vector_cache(self._fingerprint()) if stored else None
        known, sums = (store.read(), source.sums(distinct)) if store else ({}, [b""] * len(distinct))
        rows = [known.get(key) for key in sums]
        missing = [number for number, row in enumerate(rows) if row is None]
        for start in range(0, len(missing), _AT_ONCE):
            numbers = missing[start : start + _AT_ONCE]
            batch = source.batch(distinct[torch.tensor(numbers)])
            for number, vector, present in zip(numbers, self._described(batch).cpu(), batch.present, strict=True):
                rows[number] = vector if present else None
        added = {sums[n]: row for n in missing if (row := rows[n]) is not None}
        if store and added:
            store.add(added)
        zeros = torch.zeros(self.dimension)
        vectors = torch.stack([zeros if row is None else row for row in rows]) if rows else zeros[None][:0]
        return vectors[inverse], torch.tensor([row is not None for row in rows], dtype=torch.bool)[inverse]

    def _fingerprint(self) -> str:
        """Return a string of all facts, apart from the item, that determine a vector on this machine."""
        weights = sha256()
        for value in self.network.state_dict().values():
            weights.update(value.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        architecture = {"config": self.saved.config, "pooling": self.saved.pooling}
        preparation, inputs = self.preparation, self.preparation.inputs
        decoding = [inputs.edition, repr(inputs), preparation.minimum_seconds, decoder_versions()]
        resizing = ["pillow"] if isinstance(inputs, Frames) else []
        versions = [version(name) for name in ("torch", "transformers", *resizing)]
        decides = [architecture, preparation.parameters, decoding, weights.hexdigest(), versions, self._device.type]
        return json.dumps(decides, sort_keys=True)

    @property
    def _device(self) -> torch.device:
        device: torch.device = next(self.network.parameters()).device
        return device

    def _try_out(self) -> None:
        clip = tuple(self.preparation.items(self.preparation.trial))
        self._described(ItemBatch((clip,), torch.ones(1, dtype=torch.bool)))

    def _described(self, batch: ItemBatch) -> Tensor:
        run = Runner(self.network, self._pool, self._device, False, self.preparation.batch)
        clips = [clip for clip in batch.clips if clip]
        outputs = iter(run(clips) if clips else ())
        zeros = np.zeros(self.dimension, dtype=np.float32)
        rows = [mean_over_time(next(outputs)) if clip else zeros for clip in batch.clips]
        return torch.from_numpy(np.stack(rows)).to(self._device)

    def _trained(self, batch: ItemBatch, rows: list[int]) -> Tensor:
        groups: dict[Any, list[tuple[int, int]]] = {}
        for owner, clip in enumerate(batch.clips):
            for number, item in enumerate(clip):
                shapes = tuple((name, values.shape) for name, values in item.items())
                groups.setdefault(shapes, []).append((owner, number))
        step = self._step()
        total = torch.zeros(len(batch), self.dimension, device=self._device)
        for places in groups.values():
            size = self.tuning.micro_batch or len(places)
            for part in (places[start : start + size] for start in range(0, len(places), size)):
                items = self._stacked([batch.clips[owner][number] for owner, number in part])
                seeds = [seed_of(step, rows[owner], number) for owner, number in part]
                targets = torch.tensor([owner for owner, _ in part], device=self._device)
                total = total.index_add(0, targets, self._vectors(items, seeds, step))
        counts = torch.tensor([max(1, len(clip)) for clip in batch.clips], device=self._device)
        return total / counts[:, None]

    def _vectors(self, items: dict[str, Tensor], seeds: Sequence[int], step: int) -> Tensor:
        """Compute the vectors of stacked items; with `micro_batch`, activations are computed again for the gradient."""

        def run() -> Tensor:
            devices = [self._device] if self._device.type == "cuda" else []
            with torch.random.fork_rng(devices), ItemDraws.seeded(seeds, step, self._device):
                torch.manual_seed(step)
                vectors: Tensor = self._pool(self.network, items).float()
                return vectors

        again: Callable[..., Tensor] = checkpoint
        return again(run, use_reentrant=False, preserve_rng_state=False) if self.tuning.micro_batch else run()

    def _step(self) -> int:
        """Return a different seed for every call in an epoch.

        The seed also depends on the epoch, through the seed of the process.
        """
        if torch.initial_seed() != self._epoch:
            self._epoch, self._calls = torch.initial_seed(), 0
        self._calls += 1
        return seed_of(self._epoch, self._calls, *self.modality.encode())

    def _stacked(self, items: list[Item]) -> dict[str, Tensor]:
        return {name: torch.from_numpy(np.stack([item[name] for item in items])).to(self._device) for name in items[0]}
