"""Assembly of a config from a file and arguments that override the values of the file."""

from pathlib import Path

from aadml.configuration.config import Config, ConfigFile
from aadml.configuration.files import open_config
from aadml.configuration.overrides import Settings, flag_settings
from aadml.configuration.presets import configs_folder
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods import METHODS


def assemble(
    *,
    data: str | None = None,
    method: str | None = None,
    loss: str | None = None,
    config: str | None = None,
    settings: Settings = (),
    seed: int | None = None,
    epochs: int | None = None,
    sample: bool = False,
) -> Config:
    """Build a config from a file, the named arguments and `settings`, in ascending priority.

    Args:
        data: path of the data.
        method: a key of METHODS.
        loss: a loss or recipe, with or without the prefix of a proxy, such as "aa-".
        config: path of a YAML file, or the name of a preset.
        settings: values of any keys of the config.
        seed: see `Common`.
        epochs: `training.epochs`.
        sample: whether the training data are the sample clips, which have a preset.

    Raises:
        InputError: a file that cannot be read or is not a config, an unknown name or key, or an invalid value.
    """
    if data is not None:
        search_beside(Path(data))
    flags = flag_settings({"loss": loss, "data": data, "seed": seed, "training.epochs": epochs})
    return starting_file(config, method, sample=sample).changed(flags).changed(settings).resolve()


def starting_file(config: str | None, method: str | None, *, sample: bool) -> ConfigFile:
    """Return the config to start from: the file `config`, or else the preset of `method`, by default `aadml`.

    With `sample`, the preset `sample` is read instead of the preset `aadml`. `method` replaces the method of the file.
    A method without a preset starts from the defaults in its code.

    Raises:
        InputError: the method is unknown, or the file cannot be read or is not a config.
    """
    if method:
        lookup(METHODS, method, "method")
    default = "sample" if sample else "aadml"
    name = (method or default).replace("-", "_") if method != "aadml" else default
    if method and not config and not (configs_folder() / f"{name}.yaml").is_file():
        return ConfigFile({"method": method})  # a method from outside aadml defines its defaults in code
    started = open_config(config or name)
    chosen = started.values.get("method")
    same = method == (chosen.get("name") if isinstance(chosen, dict) else chosen)
    return started.changed({"method": method}) if method and config and not same else started
