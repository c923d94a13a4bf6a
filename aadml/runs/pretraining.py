"""A model that another training needs first: its config, and the folder that holds it and no other."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from aadml.configuration.config import Config, resolve
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.feature_extraction.ground.options import schema, sections
from aadml.methods import METHODS
from aadml.methods.method import Prior
from aadml.model.packing import WEIGHTS
from aadml.runs.environment import installed_version


def prior_config(config: Config, prior: Prior) -> Config:
    """Give the config of the model that a run of `config` needs first.

    Args:
        config: complete.
        prior: what its method asks for.
    """
    build = METHODS[prior.method]
    known, foreign = schema(build), set(sections(METHODS[config.method])) - set(sections(build))
    own = {key: value for key, value in config.options.items() if key in known}
    values = {key: value for key, value in config.values.items() if key not in foreign}
    changed: JsonObject = {"method": {**own, "name": prior.method}, "training": vars(prior.training)}
    return resolve({**values, **changed})


def prior_folder(place: Path, config: Config, prior: Prior) -> Path:
    """Name the folder of a model in `place` by all that determines it: config, weight files, device, versions.

    Its data are not part of the name: their hash stands in the run, and is compared before it is used.

    Args:
        place: that holds such models.
        config: of the model.
        prior: what it is.
    """
    digest = hashlib.sha256(config.yaml().encode())
    digest.update(chosen_device(config.common.device, "config").type.encode())
    digest.update(f"{installed_version('aadml')} {installed_version('torch')}".encode())
    for part in _content(config):
        digest.update(part)
    return place / f"{prior.name}-{digest.hexdigest()[:12]}_seed{config.common.seed}"


def _content(config: Config) -> Iterator[bytes]:
    """Give the bytes of the files that training begins with."""
    for key, value in config.options.items():
        if not isinstance(value, str) or not value or not (key.endswith("_weights") or key == "start"):
            continue
        place = Path(value) / WEIGHTS if key == "start" else Path(value)
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            if path.is_file():
                with path.open("rb") as file:
                    yield path.name.encode() + hashlib.file_digest(file, "sha256").digest()
