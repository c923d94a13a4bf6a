"""Assembly of a config from a file and arguments that override the values of the file."""

from aadml.configuration.config import Config, ConfigFile
from aadml.configuration.files import open_config
from aadml.configuration.overrides import Flag, Settings, flag_settings
from aadml.configuration.presets import preset_path
from aadml.feature_extraction.ground.registry import lookup
from aadml.methods import METHODS


def assemble(
    settings: Settings = (),
    *,
    config: str | None = None,
    method: str | None = None,
    sample: bool = False,
    **flags: Flag,
) -> Config:
    """Build a complete config from the arguments of a command or function.

    Args:
        settings: values of any keys; these override the other arguments.
        config: see `starting_file`.
        method: see `starting_file`.
        sample: see `starting_file`.
        flags: values of single keys, such as data, loss, seed and training.epochs; None does not set the key.

    Raises:
        InputError: an argument names nothing, or the arguments do not match.
    """
    return starting_file(config, method, sample=sample).changed(flag_settings(flags)).changed(settings).resolve()


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
    preset = preset_path(default if method in (None, "", "aadml") else method)
    if method and not config and not preset.is_file():
        return ConfigFile({"method": method})  # a method from outside aadml defines its defaults in code
    started = open_config(config or preset)
    chosen = started.values.get("method")
    same = method == (chosen.get("name") if isinstance(chosen, dict) else chosen)
    return started.changed({"method": method}) if method and config and not same else started
