"""A pretrained network of `transformers` in a tower: trained whole, in its last blocks, or not at all."""

import json
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from aadml.comparison.features import Features
from aadml.data.sources.loading import Loading
from aadml.data.sources.log_mels import at_most_once
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.network_items import Item, ItemBatch, NetworkItems, text_items
from aadml.data.sources.texts import Captions
from aadml.data.sources.vector_cache import kept_vectors
from aadml.data.sources.waveforms import PackedWaveforms, Waveforms
from aadml.feature_extraction.backbones import mean_over_time
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.hub.blocks import train_only, trained_parts
from aadml.feature_extraction.hub.networks import Preparation, Runner
from aadml.feature_extraction.hub.towers import Kind, blank_tower, open_tower, preparation_in
from aadml.feature_extraction.media import Sound, Text
from aadml.methods.towers.options import Blocks

_AT_ONCE = 32


class HubInput(nn.Module):
    """A pretrained network with what prepares its inputs, which is kept with the weights, as bytes.

    While it is trained, items of one shape go through it together, and a clip's vector is the mean over its windows. In
    evaluation a vector is that of the extractor `hf:MODEL`, whatever stands beside it in a batch.

    Args:
        source: `hf:MODEL[@revision][#pooling]`.
        modality: whose tower of the model.
        blocks: of the network that are trained, from the end, with what follows them.
        architecture: what a saved model says of the network; None reads the model that `source` names.

    Attributes:
        dimension: d of a vector.
    """

    files: Tensor

    def __init__(self, source: str, modality: Kind, blocks: Blocks, architecture: JsonObject | None) -> None:
        super().__init__()
        self.modality: Kind = modality
        self._parts: list[nn.Module] = []
        self._blocks = blocks
        self._to_be_trained = not architecture
        files = b""
        if architecture:
            self._architecture = architecture
            self.network, self._pool = blank_tower(architecture, modality)
        else:
            found = open_tower(source, modality, torch.device("cpu"))
            self._architecture, files = found.architecture, found.files
            self.network, self._pool = found.encoder.run.network, found.encoder.run.pool
            self.preparation = found.encoder.preparation
        self.register_buffer("files", torch.tensor(list(files), dtype=torch.uint8))
        self.dimension: int = int(str(self._architecture["dimension"]))

    @cached_property
    def preparation(self) -> Preparation:
        """What makes the items of a sound or text."""
        return preparation_in(bytes(self.files.tolist()), str(self._architecture["model"]), self.modality)

    def architecture(self) -> JsonObject:
        """Describe the network, so that it can be built without the files of its model."""
        return self._architecture

    def train_blocks(self, *, frozen: bool) -> None:
        """Let the last blocks of a network be trained that was read from its own files; nothing where it is frozen."""
        here = self._to_be_trained and not frozen
        self._parts = trained_parts(self.network, self._try_out, self._blocks) if here else []
        train_only(self.network, self._parts)

    @property
    def still(self) -> bool:
        """Say whether nothing of the network is trained."""
        return not self._parts

    def train(self, mode: bool = True) -> "HubInput":
        """Set the mode; what is not trained stays in evaluation mode."""
        super().train(False)
        self.training = mode and bool(self._parts)
        for part in self._parts:
            part.training = mode
        return self

    def prepared(self, features: Features, loading: Loading) -> Features:
        """Lay the preparation over media or captions; what is laid out already passes unchanged.

        Args:
            features: of n items.
            loading: how media are decoded and kept; of a network of which nothing is trained, on disk are its vectors.
        """
        made, loading = self.preparation, loading.without_disk() if self.still else loading
        if isinstance(features, Captions):
            return text_items(features, made.items, loading)
        if isinstance(features, PackedWaveforms):
            assert isinstance(made.inputs, Sound)
            return NetworkItems(features.at(made.inputs.sample_rate), made.items, features.items, loading)
        if isinstance(features, Waveforms | MediaFiles):
            assert not isinstance(made.inputs, Text)
            shortest, known = getattr(made, "minimum_seconds", 0.0), getattr(features, "known", {})
            files = MediaFiles(
                features.paths, features.items, made.inputs, shortest, loading.disk, features.failures, known
            )  # fmt: skip
            return NetworkItems(files, made.items, files.items, loading)
        return features

    def forward(self, batch: ItemBatch) -> Tensor:
        """Describe a batch of b clips -> (b, dimension); zeros for one that is not present."""
        return self._trained(batch) if self.training else self._described(batch)

    def describe(self, source: NetworkItems, *, kept: bool) -> tuple[Tensor, Tensor]:
        """Describe all n items of a source in evaluation mode, each sound, clip or text once.

        Args:
            source: as `prepared` lays it out.
            kept: whether vectors are taken from disk where they are there, and kept there.

        Returns:
            Vectors (n, dimension) on the CPU, zeros for what could not be decoded, and which could (n,).
        """
        once, place = at_most_once(source.items), source.items.unique(return_inverse=True)[1]
        store = kept_vectors(self._fingerprint()) if kept else None
        known, sums = (store.read(), source.sums(once)) if store else ({}, [b""] * len(once))
        rows = [known.get(key) for key in sums]
        missing = [number for number, row in enumerate(rows) if row is None]
        for start in range(0, len(missing), _AT_ONCE):
            numbers = missing[start : start + _AT_ONCE]
            batch = source.batch(once[torch.tensor(numbers)])
            for number, vector, there in zip(
                numbers, self._described(batch).cpu(), batch.present.tolist(), strict=True
            ):
                rows[number] = vector if there else None
        added = {sums[n]: row for n in missing if (row := rows[n]) is not None}
        if store and added:
            store.add(added)
        nothing = torch.zeros(self.dimension)
        vectors = torch.stack([nothing if row is None else row for row in rows]) if rows else nothing[None][:0]
        return vectors[place], torch.tensor([row is not None for row in rows], dtype=torch.bool)[place]

    def _fingerprint(self) -> str:
        """Name everything that decides a vector, on this machine."""
        weights = sha256()
        for value in self.network.state_dict().values():
            weights.update(value.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        said = {key: self._architecture[key] for key in ("config", "pooling")}
        versions = [version(name) for name in ("torch", "transformers")]
        decides = [said, self.preparation.parameters, weights.hexdigest(), versions, self._device.type]
        return json.dumps(decides, sort_keys=True)

    @property
    def _device(self) -> torch.device:
        device: torch.device = next(self.network.parameters()).device
        return device

    def _try_out(self) -> None:
        self._described(
            ItemBatch((tuple(self.preparation.items(self.preparation.trial)),), torch.ones(1, dtype=torch.bool))
        )

    def _described(self, batch: ItemBatch) -> Tensor:
        made = self.preparation
        run = Runner(self.network, self._pool, self._device, False, made.batch)
        there = [clip for clip in batch.clips if clip]
        found = iter(run(there, filled=made.filled) if there else ())
        zeros = np.zeros(self.dimension, dtype=np.float32)
        rows = [mean_over_time(next(found)) if clip else zeros for clip in batch.clips]
        return torch.from_numpy(np.stack(rows)).to(self._device)

    def _trained(self, batch: ItemBatch) -> Tensor:
        owners = [owner for owner, clip in enumerate(batch.clips) for _ in clip]
        items = [item for clip in batch.clips for item in clip]
        groups: dict[Any, list[int]] = {}
        for number, item in enumerate(items):
            groups.setdefault(tuple((name, values.shape) for name, values in item.items()), []).append(number)
        total = torch.zeros(len(batch), self.dimension, device=self._device)
        for numbers in groups.values():
            vectors = self._pool(self.network, self._stacked([items[number] for number in numbers]))
            place = torch.tensor([owners[number] for number in numbers], device=self._device)
            total = total.index_add(0, place, vectors.float())
        counts = torch.tensor([max(1, len(clip)) for clip in batch.clips], device=self._device)
        return total / counts[:, None]

    def _stacked(self, items: list[Item]) -> dict[str, Tensor]:
        return {name: torch.from_numpy(np.stack([item[name] for item in items])).to(self._device) for name in items[0]}
