"""Config and folder of a pretrained model that a training run needs."""

import hashlib
from pathlib import Path

from aadml.configuration.config import Config, resolve
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.options import schema, sections
from aadml.methods import METHODS
from aadml.methods.method import Prior
from aadml.runs.environment import initial_weights, installed_version


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
    for name, checksum in initial_weights(config).items():
        digest.update(f"{name} {checksum}".encode())
    return place / f"{prior.name}-{digest.hexdigest()[:12]}_seed{config.common.seed}"
