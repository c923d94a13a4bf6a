"""Towers for training: networks and the preparation of their inputs, from a published or a saved model."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from aadml.feature_extraction.hub.families import PictureTower, Pool, SoundTower, TextTower, Tower
from aadml.feature_extraction.hub.loading import blank_network_of, class_of
from aadml.feature_extraction.hub.networks import (
    Modality,
    Preparation,
    PretrainedEncoder,
    encoder,
    pooling_of,
    tower_of,
)
from aadml.feature_extraction.hub.pictures import picture_preparation
from aadml.feature_extraction.hub.saved_tower import SavedTower
from aadml.feature_extraction.hub.snapshot import Snapshot, find, restored
from aadml.feature_extraction.hub.sound import sound_preparation
from aadml.feature_extraction.hub.texts import own_pooling, text_preparation
from aadml.feature_extraction.weights.hub_names import expanded

Kind = Modality
_LABELS = ("id2label", "label2id")  # of a classifier's head, which is not used


@dataclass(frozen=True)
class OpenedTower:
    """Tower that was read from the files of a model.

    Attributes:
        encoder: network, preparation and parameters.
        architecture: description of the network in a saved model.
        files: settings of the preparation, as bytes.
    """

    encoder: PretrainedEncoder
    architecture: SavedTower
    files: bytes


def open_tower(name: str, modality: Kind, device: torch.device) -> OpenedTower:
    """Read a tower from the files of a model.

    Args:
        name: `hf:MODEL[@revision][#pooling]`.
        modality: modality of the tower.
        device: device of the network.

    Raises:
        InputError: a model, revision or pooling that does not exist, a model of an unknown family or with unreadable
            files, or a package that is not installed.
    """
    options = expanded(name, modality)[1]
    snapshot = find(options["model"], options.get("revision"))
    tower = tower_of(snapshot, modality, Tower)
    pooling = options.get("pooling") or (own_pooling(snapshot) if modality == "text" else None)
    network = encoder(snapshot, tower, _preparation(snapshot, tower), pooling=pooling, device=device)
    config = {key: value for key, value in snapshot.config.items() if key not in _LABELS}
    saved = SavedTower(
        snapshot.model, snapshot.revision, snapshot.license, config, network.pooling, network.weights, network.dimension
    )
    files = {
        name: np.frombuffer(content, dtype=np.uint8) for name, content in snapshot.small_files().items() if content
    }
    return OpenedTower(network, saved, save_arrays(files))


def check_tower(name: str, modality: str) -> None:
    """Check the name, the configuration and the preparation of a tower, without its weights.

    Args:
        name: `hf:MODEL[@revision][#pooling]`.
        modality: modality of the tower.

    Raises:
        InputError: a model, revision, pooling or class of the network that does not exist, a model of an unknown family
            or with unreadable settings, or a package that is not installed.
    """
    options = expanded(name, modality)[1]
    snapshot = find(options["model"], options.get("revision"), weights=False)
    tower = tower_of(snapshot, modality, Tower)
    pooling_of(tower, options.get("pooling") or (own_pooling(snapshot) if modality == "text" else None))
    class_of(snapshot, tower)
    _preparation(snapshot, tower)


def blank_tower(saved: SavedTower, modality: Kind) -> tuple[Any, Pool]:
    """Build the network of a saved model, with random weights; return the network and its pooling.

    Raises:
        InputError: the family, the pooling or the class of the network is unknown, or the configuration does not
            describe a network.
    """
    config = {"config.json": json.dumps(saved.config).encode()}
    with restored(saved.model, config) as snapshot:
        tower = tower_of(snapshot, modality, Tower)
        return blank_network_of(snapshot, tower), pooling_of(tower, saved.pooling)[1]


def preparation_in(files: bytes, model: str, modality: Kind) -> Preparation:
    """Build the preparation of inputs from the files of a saved model.

    Args:
        files: `OpenedTower.files`.
        model: name of the model.
        modality: modality of the tower.

    Raises:
        InputError: the family is unknown, or the settings cannot be read.
    """
    content = {name: array.tobytes() for name, array in load_arrays(files).items()}
    with restored(model, content) as snapshot:
        return _preparation(snapshot, tower_of(snapshot, modality, Tower))


def _preparation(snapshot: Snapshot, tower: Tower) -> Preparation:
    if isinstance(tower, SoundTower):
        return sound_preparation(snapshot, tower)
    if isinstance(tower, TextTower):
        return text_preparation(snapshot, tower)
    assert isinstance(tower, PictureTower)
    return picture_preparation(snapshot, tower)
