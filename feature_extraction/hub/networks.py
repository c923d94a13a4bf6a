"""Pretrained towers that are ready to run. The result of an item does not depend on the other items."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.frontends.inference import Runner, uses_bfloat16
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.registry import lookup
from aadml.feature_extraction.hub.families import FAMILIES, Item, Pool, Tower
from aadml.feature_extraction.hub.loading import network_of, refused
from aadml.feature_extraction.hub.snapshot import Snapshot, remember
from aadml.feature_extraction.media import Pictures, Sound, Text

T = TypeVar("T", bound=Tower)
Modality = Literal["audio", "visual", "text"]
Precision = Literal["float32", "bfloat16", "auto"]


@dataclass(frozen=True)
class Preparation:
    """Conversion of a decoded clip to inputs of a network.

    Attributes:
        inputs: kind of data to decode.
        items: function from one decoded clip to items (windows, frames, or the text).
        trial: decoded clip that tests a network.
        parameters: settings that determine the items.
        batch: number of items of a batch; 1 if the items have many shapes.
        begins: see `Extractor`.
        minimum_seconds: see `Extractor`.
    """

    inputs: Sound | Pictures | Text
    items: Callable[[NDArray[Any]], list[Item]]
    trial: NDArray[Any]
    parameters: JsonObject
    batch: int = 16
    begins: Callable[[int, float], NDArray[np.float64]] | None = None
    minimum_seconds: float = 0.0


def tower_of(snapshot: Snapshot, modality: str, kind: type[T]) -> T:
    """Return the tower of a modality in the family of a model.

    Args:
        snapshot: files of the model.
        modality: "audio", "visual" or "text".
        kind: class that the tower must have.

    Raises:
        InputError: the family is unknown, or has no tower for the modality.
    """
    known = sorted(name for name, towers in FAMILIES.items() if modality in towers)
    tower = FAMILIES.get(snapshot.model_type, {}).get(modality)
    if not isinstance(tower, kind):
        model_type = f"of type '{snapshot.model_type}'" if snapshot.model_type else "without a type"
        raise InputError(
            f"hf:{snapshot.model}: a model {model_type} has no known {modality} network; "
            f"choose a model of type {', '.join(known)}, or write an extractor (docs/encoders.md)"
        )
    return tower


def pooling_of(tower: Tower, pooling: str | None) -> tuple[str, Pool]:
    """Return the name and the function of a pooling of a tower; None selects the first pooling of the tower.

    Raises:
        InputError: the tower has no pooling of that name.
    """
    name = pooling or next(iter(tower.poolings))
    return name, lookup(tower.poolings, name, "pooling of this network")


@dataclass(frozen=True)
class PretrainedEncoder:
    """Tower with the preparation of its inputs.

    Attributes:
        snapshot: files of the model.
        tower: tower of the model's family.
        run: runner of the network, called on the items of clips.
        preparation: conversion of a clip to items.
        pooling: name of the pooling.
        weights: checksum of the weights.
        dimension: dimension of the vectors.
    """

    snapshot: Snapshot
    tower: Tower
    run: Runner
    preparation: Preparation
    pooling: str
    weights: str
    dimension: int

    def describe(self, clips: Sequence[NDArray[Any]]) -> list[NDArray[np.float32]]:
        """Compute the vectors (t, d) of each decoded clip, independently of the other clips."""
        return self.run(map(self.preparation.items, clips))

    def extractor(self, modality: Modality, batch_clips: int, *packages: str) -> Extractor:
        """Build the extractor with `batch_clips` clips per batch; its provenance has the versions of `packages`."""
        from importlib.metadata import version

        versions = {name: version(name) for name in ("torch", "transformers", *packages)}
        parameters = {
            "family": self.snapshot.model_type, "network": self.tower.network,
            "precision": "bfloat16" if self.run.half else "float32", "config": self.snapshot.config_checksum(),
            "weights": self.weights, "pooling": self.pooling,
        }  # fmt: skip
        return Extractor(
            name=f"hf-{modality}", modality=modality, dimension=self.dimension, inputs=self.preparation.inputs,
            parameters={**parameters, **self.preparation.parameters}, about={**self.snapshot.provenance(), **versions},
            prepare=np.asarray, describe=self.describe, batch_clips=batch_clips, begins=self.preparation.begins,
            minimum_seconds=self.preparation.minimum_seconds,
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
    """Load a tower and test it on one clip.

    Args:
        snapshot: files of the model.
        tower: tower of the model's family.
        preparation: preparation of the inputs.
        pooling: name of a pooling of the tower; None for its first pooling.
        device: device of the network.
        precision: "float32", "bfloat16" or "auto".

    Returns:
        The encoder, with its network on the device.

    Raises:
        InputError: the pooling does not exist, or the files cannot be read, lack a weight of the tower, or do not match
            each other.
    """
    name, pool = pooling_of(tower, pooling)
    half = uses_bfloat16(precision, device)
    network = network_of(snapshot, tower).eval().requires_grad_(False).to(device)
    run = Runner(network, pool, device, half, preparation.batch)
    checksum = snapshot.weights_checksum()
    remember(snapshot, checksum)
    with refused(snapshot, "its network and its processor do not match"):
        dimension = run([preparation.items(preparation.trial)])[0].shape[1]
    return PretrainedEncoder(snapshot, tower, run, preparation, name, checksum, dimension)
