"""A tower of a model that is ready to run over items, so that none depends on the items beside it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.frontends.inference import bfloat16_units
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.hub.families import FAMILIES, Item, PictureTower, Pool, SoundTower, TextTower
from aadml.feature_extraction.hub.loading import UNREADABLE, Tower, first_line, network_of
from aadml.feature_extraction.hub.snapshot import Snapshot, remember
from aadml.feature_extraction.media import Pictures, Sound, Text

T = TypeVar("T", SoundTower, PictureTower, TextTower)
Precision = Literal["float32", "bfloat16", "auto"]


@dataclass(frozen=True)
class Preparation:
    """How a decoded clip becomes what a network is given.

    Attributes:
        inputs: what is to be decoded.
        items: one decoded clip -> its windows, its frames, or its text.
        trial: a clip on which a network is tried.
        parameters: what decides the items.
        filled: whether all items of a network have a few shapes; those that have not are run one by one.
        batch: items that are run at once.
    """

    inputs: Sound | Pictures | Text
    items: Callable[[NDArray[Any]], list[Item]]
    trial: NDArray[Any]
    parameters: JsonObject
    filled: bool = True
    batch: int = 16


def tower_of(snapshot: Snapshot, modality: str, kind: type[T]) -> T:
    """Find the tower of a modality in the family of a model.

    Raises:
        InputError: the table does not know the family, or it has no such tower.
    """
    known = sorted(name for name, family in FAMILIES.items() if getattr(family, modality) is not None)
    found = getattr(FAMILIES.get(snapshot.model_type), modality, None)
    if not isinstance(found, kind):
        what = f"a model of type '{snapshot.model_type}'" if snapshot.model_type else "a model of no stated type"
        raise InputError(
            f"--{modality} hf:{snapshot.model}: is {what}, of which no {modality} features are known how to be made; "
            f"known are {', '.join(known)}; for others write an extractor of your own (docs/encoders.md)"
        )
    return found


def chosen_pooling(tower: Tower, pooling: str | None) -> tuple[str, Pool]:
    """Choose how outputs become a vector: by name, else the first way of the table."""
    name = pooling or next(iter(tower.poolings))
    return name, lookup(tower.poolings, name, "pooling of this network")


@dataclass(frozen=True)
class Runner:
    """A tower that is ready to run.

    Attributes:
        network: in evaluation mode, on its device.
        pool: makes one vector of its outputs.
        device: that it runs on.
        half: whether it multiplies in bfloat16.
        batch: items that are run at once.
    """

    network: Any
    pool: Pool
    device: torch.device
    half: bool
    batch: int

    def __call__(self, clips: Iterable[Sequence[Item]], *, filled: bool = True) -> list[NDArray[np.float32]]:
        """Describe items, clip by clip: (t, d) for each clip of t items.

        Items of one shape are run together, across clips, in batches of one fixed size, the last of which is filled up
        with copies: kernels are chosen by shape, and another kernel rounds otherwise. What is run is let go, so that
        items of a clip more than a batch never lie in memory.

        Args:
            clips: items of each clip, made as they are asked for.
            filled: whether all items of a network have one shape; of those that have not, each is run alone.
        """
        size = self.batch if filled else 1
        waiting: dict[object, list[tuple[int, Item]]] = {}
        rows: dict[int, NDArray[np.float32]] = {}
        ends = [0]
        for clip in clips:
            for number, item in enumerate(clip, start=ends[-1]):
                queue = waiting.setdefault(tuple((name, values.shape) for name, values in item.items()), [])
                queue.append((number, item))
                if len(queue) == size:
                    rows |= self._rows(queue)
                    queue.clear()
            ends.append(ends[-1] + len(clip))
        for queue in filter(None, waiting.values()):
            rows |= self._rows(queue, fill=size - len(queue))
        return [np.stack([rows[number] for number in range(*span)]) for span in pairwise(ends)]

    def _rows(self, queue: Sequence[tuple[int, Item]], fill: int = 0) -> dict[int, NDArray[np.float32]]:
        items = [item for _, item in queue]
        found = self._run([*items, *items[:1] * fill])
        return {number: row for (number, _), row in zip(queue, found, strict=False)}

    @torch.inference_mode()
    def _run(self, items: Sequence[Item]) -> NDArray[np.float32]:
        stacked = {name: torch.from_numpy(np.stack([item[name] for item in items])) for name in items[0]}
        if self.device.type == "cuda":
            stacked = {name: values.pin_memory() for name, values in stacked.items()}
        batch = {name: values.to(self.device, non_blocking=True) for name, values in stacked.items()}
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            found: Tensor = self.pool(self.network, batch)
        rows: NDArray[np.float32] = found.float().cpu().numpy()
        return rows


@dataclass(frozen=True)
class PretrainedEncoder:
    """A tower with its preparation.

    Attributes:
        run: runs the network over items.
        preparation: makes the items of a clip.
        dimension: of what comes out.
        parameters: everything that decides it.
    """

    run: Runner
    preparation: Preparation
    dimension: int
    parameters: JsonObject

    def describe(self, clips: Sequence[NDArray[Any]]) -> list[NDArray[np.float32]]:
        """Describe decoded clips, each by itself: (t, d) for each."""
        return self.run((self.preparation.items(clip) for clip in clips), filled=self.preparation.filled)

    def extractor(self, modality: Literal["audio", "visual", "text"], about: JsonObject, **rest: Any) -> Extractor:
        """Give it as an extractor."""
        return Extractor(
            name=f"hf-{modality}", modality=modality, dimension=self.dimension, inputs=self.preparation.inputs,
            parameters=self.parameters, about=about, prepare=np.asarray, describe=self.describe, **rest,
        )  # fmt: skip


def encoder(
    snapshot: Snapshot,
    tower: Tower,
    preparation: Preparation,
    *,
    pooling: str | None,
    device: torch.device,
    precision: Precision = "float32",
) -> PretrainedEncoder:
    """Load a tower and try it out.

    Args:
        snapshot: of the model.
        tower: of its family.
        preparation: of its inputs.
        pooling: how outputs become a vector; None: the first way of the table.
        device: to run on.
        precision: "float32", "bfloat16" or "auto".

    Raises:
        InputError: its files cannot be read, lack a weight of the tower, or do not fit each other.
    """
    name, pool = chosen_pooling(tower, pooling)
    half = precision == "bfloat16" or (precision == "auto" and bfloat16_units(device))
    network = network_of(snapshot, tower).eval().requires_grad_(False).to(device)
    run = Runner(network, pool, device, half, preparation.batch)
    checksum = snapshot.weights_checksum()
    remember(snapshot, checksum)
    parameters: JsonObject = {
        "family": snapshot.model_type,
        "network": tower.network,
        "precision": "bfloat16" if half else "float32",
        "config": snapshot.config_checksum(),
        "weights": checksum,
        "pooling": name,
        **preparation.parameters,
    }
    return PretrainedEncoder(run, preparation, _dimension(snapshot, run, preparation), parameters)


def _dimension(snapshot: Snapshot, run: Runner, preparation: Preparation) -> int:
    """Try a network out on one clip; return how wide its description is."""
    try:
        return int(run([preparation.items(preparation.trial)], filled=preparation.filled)[0].shape[1])
    except UNREADABLE as error:
        raise InputError(
            f"{snapshot.model}: its network and its preparation do not fit ({first_line(error)})"
        ) from error


def about(snapshot: Snapshot, *packages: str) -> JsonObject:
    """Say where a model comes from, and which versions of packages ran it."""
    from importlib.metadata import version

    return {**snapshot.provenance(), **{name: version(name) for name in ("torch", "transformers", *packages)}}


def fixed(values: JsonObject) -> JsonObject:
    """Give settings as plain JSON: tuples become lists."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
