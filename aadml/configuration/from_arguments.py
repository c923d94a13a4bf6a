"""Assembly of a config from a file and arguments that override the values of the file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aadml.configuration.config import Config, resolve
from aadml.configuration.files import ConfigFile, open_config
from aadml.configuration.overrides import Settings, setting_pairs, with_setting
from aadml.configuration.presets import configs_folder
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.json_values import Json, JsonObject
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods import METHODS


def assemble(
    *,
    data: str | None = None,
    method: str | None = None,
    loss: str | None = None,
    k: int | None = None,
    config: str | None = None,
    settings: Settings = (),
    seed: int | None = None,
    epochs: int | None = None,
    criterion: str | None = None,
    relevance: str | None = None,
    modalities: Sequence[str] | str | None = None,
    device: str | None = None,
    sample: bool = False,
) -> Config:
    """Build a config from a file, the named arguments and `settings`, each of which overrides those before it.

    Args:
        data: path of the data.
        method: a key of METHODS.
        loss: a loss or recipe, with or without the prefix "aa-".
        k: neighbors of the anchor-aware proxy.
        config: path of a YAML file, or the name of a preset.
        settings: values of any keys of the config.
        seed: see `Common`.
        epochs: `training.epochs`.
        criterion: `training.criterion`.
        relevance: see `Common`.
        modalities: see `Common`.
        device: see `Common`.
        sample: whether the training data are the sample clips, for which there is a preset.

    Raises:
        InputError: a name or key is unknown, or a value has the wrong type.
    """
    if data is not None:
        search_beside(Path(data))
    flags: dict[str, Json] = {
        "loss": loss,
        "proxy.k": k,
        "data": data,
        "seed": seed,
        "relevance": relevance,
        "device": device,
    }
    chosen = modalities if modalities is None or isinstance(modalities, str) else list(modalities)
    flags |= {"modalities": chosen, "training.epochs": epochs, "training.criterion": criterion}
    return assembled(starting_file(config, method, sample=sample), flags, settings)


def assembled(started: ConfigFile, flags: JsonObject, settings: Settings) -> Config:
    """Apply flags that are not None, then settings, to the values of a file, and resolve the config."""
    changes = [*((path, value) for path, value in flags.items() if value is not None), *setting_pairs(settings)]
    values = started.values
    for path, value in changes:
        values = with_setting(values, path, value)
    return resolve(values, started.without(path for path, _ in changes))


def starting_file(config: str | None, method: str | None, *, sample: bool) -> ConfigFile:
    """Read the config to start from: `config`, else the preset of `method`, else `aadml` (or `sample`)."""
    if method:
        lookup(METHODS, method, "method")
    default = "sample" if sample else "aadml"
    name = (method or default).replace("-", "_") if method != "aadml" else default
    if method and not config and not (configs_folder() / f"{name}.yaml").is_file():
        return ConfigFile({"method": method})  # a method from outside aadml has all its defaults in its code
    started = open_config(config or name)
    chosen = started.values.get("method")
    same = method == (chosen.get("name") if isinstance(chosen, dict) else chosen)
    if not (method and config) or same:
        return started
    return replace(started, values=with_setting(started.values, "method", method))
