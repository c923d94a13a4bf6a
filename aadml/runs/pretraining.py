"""Config and folder of a pretrained model that a training run needs."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from aadml.configuration.config import Config, resolve
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.options import schema, sections
from aadml.methods import METHODS
from aadml.methods.method import Prior
from aadml.model.packing import WEIGHTS
from aadml.runs.data import is_path_of_weights
from aadml.runs.environment import installed_version


def prior_config(config: Config, prior: Prior) -> Config:
    """Return the config of the pretrained model that a run of `config` needs.

    Args:
        config: complete config of the run.
        prior: the pretrained model that the method of the run needs.
    """
    build = METHODS[prior.method]
    known, foreign = schema(build), set(sections(METHODS[config.method])) - set(sections(build))
    options = {key: value for key, value in vars(config.options).items() if key in known}
    values = {key: value for key, value in config.values.items() if key not in foreign}
    return resolve(values | {"method": {**options, "name": prior.method}, "training": vars(prior.training)})


def prior_folder(place: Path, config: Config, prior: Prior) -> Path:
    """Return the folder of a pretrained model, a subfolder of `place`.

    The name of the folder consists of the model's name, a hash and the seed. The hash covers config, weight files,
    type of the device, and versions of aadml and torch. The hash does not cover the data: a run compares the
    SHA-256 of the data before using the model.

    Args:
        place: folder of pretrained models.
        config: config of the pretrained model.
        prior: the pretrained model.
    """
    digest = hashlib.sha256(config.yaml().encode())
    digest.update(chosen_device(config.common.device, "config").type.encode())
    digest.update(f"{installed_version('aadml')} {installed_version('torch')}".encode())
    for part in _initial_weights(config):
        digest.update(part)
    return place / f"{prior.name}-{digest.hexdigest()[:12]}_seed{config.common.seed}"


def _initial_weights(config: Config) -> Iterator[bytes]:
    """Yield the name and SHA-256 of each file of initial weights."""
    for key, value in vars(config.options).items():
        if not isinstance(value, str) or not value or not is_path_of_weights(key):
            continue
        place = Path(value) / WEIGHTS if key == "start" else Path(value)
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            if path.is_file():
                with path.open("rb") as file:
                    yield path.name.encode() + hashlib.file_digest(file, "sha256").digest()
