"""Options that set configuration keys, shared by all commands that train."""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import click

DECLARED = {
    "": "aadml.configuration.config:Common",
    "training": "aadml.methods.training.settings:Training",
    "proxy": "aadml.proxies.correlation:GraphOptions",
}
"""Section -> class that declares the keys with an option of their own."""


class KeyFlag(click.Option):
    """Option that sets one configuration key; its help text is read from the declaration of the key.

    Args:
        flag: name of the option, such as `--epochs`.
        key: configuration key, such as `training.epochs`.
        options: arguments of `click.Option`.
    """

    def __init__(self, flag: list[str], *, key: str, **options: Any) -> None:
        super().__init__(flag, **options)
        self.key = key

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help text."""
        from aadml.feature_extraction.ground.import_paths import documentation
        from aadml.feature_extraction.ground.options import sentences

        section, _, name = self.key.rpartition(".")
        sentence = sentences(documentation(DECLARED[section]))[name]
        self.help = f"{sentence[:1].upper()}{sentence[1:]}" + (f"  [{self.key}]" if section else "")
        return super().get_help_record(ctx)


def key_flag(key: str, kind: type | None = None) -> Callable[[Any], Any]:
    """Add to a command an option that sets a configuration key: `--epochs` for `training.epochs`."""
    return click.option(f"--{key.rpartition('.')[2]}", cls=KeyFlag, key=key, type=kind)


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key, for example proxy.k=5; see `aadml list sections` and `aadml list methods NAME`.",
)


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--config` and `--set` to a command."""
    return click.option("--config", help="YAML file, or a preset of `aadml list configs`.")(set_option(command))


def advice(error: click.UsageError) -> str:
    """Return what to type instead of an option or argument that a command lacks; "" if nothing is known."""
    flags = {flag for option in error.ctx.command.params for flag in option.opts} if error.ctx else set()
    if isinstance(error, click.NoSuchOption) and "--set" in flags:
        several = ", or --over {0}=A,B to compare values" if "--over" in flags else ""
        form = f"pass --set {{0}}=VALUE{several}"
        return next((form.format(key) for key in _keys_named(error.option_name)), "")
    if "--data" in flags and error.message.startswith("Got unexpected extra argument"):
        return "pass data as --data FILE"
    return ""


def _keys_named(flag: str) -> Iterator[str]:
    """Yield the configuration keys whose last part is the name of a flag: `--batch` is `training.batch`."""
    name = flag.lstrip("-").replace("-", "_")
    if name == "loss":
        yield name
    for section, declared in DECLARED.items():
        module, _, kind = declared.partition(":")
        if name in getattr(import_module(module), kind).__dataclass_fields__:
            yield f"{section}.{name}" if section else name


def typed_beside(context: click.Context, *names: str) -> str:
    """Return the flag of the first option on the command line that is not in `names`; "" without such an option."""
    for option in context.command.params:
        typed = context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
        if typed and isinstance(option, click.Option) and option.name not in names:
            return option.opts[0]
    return ""
