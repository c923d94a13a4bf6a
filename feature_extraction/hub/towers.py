"""Towers for training: a network with what prepares its inputs, and the same again out of what a saved model holds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.hub.families import PictureTower, Pool, SoundTower, TextTower
from aadml.feature_extraction.hub.loading import Tower, blank_network_of
from aadml.feature_extraction.hub.networks import Preparation, PretrainedEncoder, chosen_pooling, encoder, tower_of
from aadml.feature_extraction.hub.pictures import picture_preparation
from aadml.feature_extraction.hub.snapshot import Snapshot, find, restored
from aadml.feature_extraction.hub.sound import sound_preparation
from aadml.feature_extraction.hub.texts import own_pooling, text_preparation
from aadml.feature_extraction.weights.hub_names import expanded

Kind = Literal["audio", "visual", "text"]
_LABELS = ("id2label", "label2id")  # of a classifier's head, which is not used


@dataclass(frozen=True)
class OpenedTower:
    """A tower that was read from the files of a model.

    Attributes:
        encoder: the network, its preparation and what decides its vectors.
        architecture: what a saved model says of it: config, pooling, where it comes from, its license.
        files: what prepares its inputs, as bytes.
    """

    encoder: PretrainedEncoder
    architecture: JsonObject
    files: bytes


def open_tower(name: str, modality: Kind, device: torch.device) -> OpenedTower:
    """Read a tower.

    Args:
        name: `hf:MODEL[@revision][#pooling]`.
        modality: which tower of the model.
        device: to run on.

    Raises:
        InputError: no such model, one of another family, or files that cannot be read.
    """
    named: Any = expanded(name, modality)[1]
    snapshot = find(named["model"], named.get("revision"))
    tower = _tower(snapshot, modality)
    pooling = named.get("pooling") or (own_pooling(snapshot) if modality == "text" else None)
    found = encoder(snapshot, tower, _preparation(snapshot, tower), pooling=pooling, device=device)
    kept = {key: value for key, value in snapshot.config.items() if key not in _LABELS}
    architecture: JsonObject = {
        "model": snapshot.model, "revision": snapshot.revision, "license": snapshot.license, "config": kept,
        "pooling": found.parameters["pooling"], "weights": found.parameters["weights"], "dimension": found.dimension,
    }  # fmt: skip
    return OpenedTower(found, architecture, _packed(snapshot.small_files()))


def blank_tower(architecture: Mapping[str, Any], modality: Kind) -> tuple[Any, Pool]:
    """Build a network without its weights, and what pools its outputs, of what a saved model says of it."""
    config = {"config.json": json.dumps(architecture["config"]).encode()}
    with restored(architecture["model"], config) as snapshot:
        tower = _tower(snapshot, modality)
        return blank_network_of(snapshot, tower), chosen_pooling(tower, architecture["pooling"])[1]


def preparation_in(files: bytes, model: str, modality: Kind) -> Preparation:
    """Build what prepares inputs of the files that a saved model holds."""
    content = {name: array.tobytes() for name, array in load_arrays(files).items()}
    with restored(model, content) as snapshot:
        return _preparation(snapshot, _tower(snapshot, modality))


def _tower(snapshot: Snapshot, modality: Kind) -> Tower:
    if modality == "audio":
        return tower_of(snapshot, modality, SoundTower)
    return tower_of(snapshot, modality, TextTower) if modality == "text" else tower_of(snapshot, modality, PictureTower)


def _preparation(snapshot: Snapshot, tower: Tower) -> Preparation:
    if isinstance(tower, SoundTower):
        return sound_preparation(snapshot, tower)
    if isinstance(tower, TextTower):
        return text_preparation(snapshot, tower)
    return picture_preparation(snapshot, tower)


def _packed(files: Mapping[str, bytes]) -> bytes:
    return save_arrays({name: np.frombuffer(content, dtype=np.uint8) for name, content in files.items() if content})
