"""The flags that make a config, shared by all commands that train."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from aadml.configuration.config import Config
    from aadml.configuration.files import ConfigFile


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` and `--set` to a command."""
    command = click.option(
        "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any key of the config, for example proxy.k=5."
    )(command)
    return click.option("--config", help="A YAML file, or a shipped one by name: aadml, paper, recommended, ...")(
        command
    )


def assemble(
    *,
    data: str | None = None,
    method: str | None = None,
    loss: str | None = None,
    k: int | None = None,
    config: str | None = None,
    settings: tuple[str, ...] = (),
    seed: int | None = None,
    epochs: int | None = None,
    device: str | None = None,
) -> "Config":
    """Put a config together: the file, then the flags, then `--set`, later ones winning.

    Raises:
        InputError: an unknown name or key, or a value of the wrong kind.
    """
    flags = {"loss": loss, "proxy.k": k, "data": data, "seed": seed, "training.epochs": epochs, "device": device}
    return assembled(starting_file(config, method, data), flags, settings)


def assembled(started: "ConfigFile", flags: Mapping[str, str | int | None], settings: Iterable[str]) -> "Config":
    """Lay flags (where given) and `--set` over a file, later ones winning, and resolve."""
    from aadml.configuration.changes import parse_setting, with_setting
    from aadml.configuration.config import resolve

    changes = [(path, value) for path, value in flags.items() if value is not None]
    changes += [parse_setting(text) for text in settings]
    values = started.values
    for path, value in changes:
        values = with_setting(values, path, value)
    return resolve(values, started.without(path for path, _ in changes))


def starting_file(config: str | None, method: str | None, data: str | None) -> "ConfigFile":
    """Read the config to start from: the one named, else the method's, else `aadml`.

    On the sample clips it is `METHOD_sample`, where there is one, or `sample`.
    """
    from aadml.configuration.changes import with_setting
    from aadml.configuration.files import configs_folder, open_config
    from aadml.methods import METHODS
    from feature_extraction.ground.options import lookup

    if method:
        lookup(METHODS, method, "method")
    default = "sample" if data is None else "aadml"
    name = (method or default).replace("-", "_") if method != "aadml" else default
    if data is None and (configs_folder() / f"{name}_sample.yaml").is_file():
        name = f"{name}_sample"
    started = open_config(config or name)
    own = started.values.get("method")
    same = method == (own.get("name") if isinstance(own, dict) else own)
    if not (method and config) or same:
        return started
    return replace(started, values=with_setting(started.values, "method", method))
