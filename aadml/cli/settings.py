"""The flags that make a config, shared by all commands that train."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from aadml.configuration.config import Config


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
    return resolved(
        starting_values(config, method, data),
        [
            ("loss", loss),
            ("proxy.k", k),
            ("data", data),
            ("seed", seed),
            ("training.epochs", epochs),
            ("device", device),
        ],
        settings,
    )


def starting_values(config: str | None, method: str | None, data: str | None) -> dict[str, Any]:
    """Read the config to start from: the one named, else the method's where one is shipped, else `aadml`.

    On the sample clips it is `METHOD_sample`, where there is one, or `sample`.
    """
    from aadml.configuration.config import configs_folder, read_yaml, with_setting
    from aadml.methods import METHODS
    from feature_extraction.ground.places import search_beside
    from feature_extraction.ground.tables import lookup

    if data is not None:
        search_beside(Path(data))
    if method:
        lookup(METHODS, method, "method")
    default = "sample" if data is None else "aadml"
    name = (method or default).replace("-", "_") if method != "aadml" else default
    if data is None and (configs_folder() / f"{name}_sample.yaml").is_file():
        name = f"{name}_sample"
    if method and not config and not (configs_folder() / f"{name}.yaml").is_file():
        return {"method": method}  # one from outside has all its defaults in its code
    values = read_yaml(config or name)
    own = values.get("method")
    same = method == (own.get("name") if isinstance(own, dict) else own)
    return with_setting(values, "method", method) if method and config and not same else values


def resolved(values: dict[str, Any], flags: list[tuple[str, Any]], settings: tuple[str, ...]) -> "Config":
    """Lay flags (where given) and `--set` over the values of a file, and resolve."""
    from aadml.configuration.config import parse_setting, resolve, with_setting

    for path, value in [(path, value) for path, value in flags if value is not None]:
        values = with_setting(values, path, value)
    for text in settings:
        values = with_setting(values, *parse_setting(text))
    return resolve(values)
