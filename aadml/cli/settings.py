"""Options with help texts from docstrings, and options that set configuration keys."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

import click

DECLARED = {
    "": "aadml.configuration.config:Common",
    "training": "aadml.methods.training.settings:Training",
    "proxy": "aadml.proxies.correlation:GraphOptions",
}
"""Section -> import path of the class that declares the keys of the section."""


class DescribedFlag(click.Option):
    """Option that takes its help text from a docstring: the sentence on the argument of the same name.

    Args:
        flags: names of the option, such as `--epochs`.
        place: function or class with the docstring, as `module:name`.
        ending: text after the sentence.
        options: arguments of `click.Option`.
    """

    def __init__(self, flags: list[str], *, place: str, ending: str = "", **options: Any) -> None:
        super().__init__(flags, **options)
        self._place, self._ending = place, ending

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help text."""
        sentence = _sentences(self._place)[str(self.name)]
        self.help = f"{sentence[:1].upper()}{sentence[1:]}{self._ending}"
        return super().get_help_record(ctx)


@cache
def _sentences(place: str) -> Mapping[str, str]:
    from aadml.feature_extraction.ground.import_paths import documentation
    from aadml.feature_extraction.ground.options import sentences

    return sentences(documentation(place))


def flags_of(place: str) -> Callable[..., Callable[[Any], Any]]:
    """Return `click.option` with help texts from the docstring of `place`, a function or class as `module:name`."""
    return partial(click.option, cls=DescribedFlag, place=place)


def key_flag(key: str, kind: type | None = None) -> Callable[[Any], Any]:
    """Return a decorator that adds an option for a configuration key: `--epochs` for `training.epochs`."""
    section, _, name = key.rpartition(".")
    return flags_of(DECLARED[section])(f"--{name}", type=kind, ending=f"  [{key}]" if section else "")


set_option = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a configuration key, for example proxy.k=5; see `aadml list sections` and `aadml list methods NAME`.",
)


def option_group(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator that adds several options to a command, in the order of the arguments."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


config_options = option_group(
    click.option("--config", help="YAML file, or a preset of `aadml list configs`."), set_option
)
"""`--config` and `--set`."""


def advice(error: click.UsageError) -> str:
    """Return a suggestion for an unknown option or argument of a command; "" if there is no suggestion."""
    flags = {flag for option in error.ctx.command.params for flag in option.opts} if error.ctx else set()
    if isinstance(error, click.NoSuchOption) and "--set" in flags:
        several = ", or --over {0}=A,B to compare values" if "--over" in flags else ""
        form = f"pass --set {{0}}=VALUE{several}"
        return next((form.format(key) for key in _keys_named(error.option_name)), "")
    if "--data" in flags and error.message.startswith("Got unexpected extra argument"):
        return "pass data as --data FILE"
    return ""


def _keys_named(flag: str) -> Iterator[str]:
    """Yield the configuration keys whose last part is the name of a flag: `training.batch` for `--batch`."""
    name = flag.lstrip("-").replace("-", "_")
    if name == "loss":
        yield name
    for section, declared in DECLARED.items():
        module, _, kind = declared.partition(":")
        if name in getattr(import_module(module), kind).__dataclass_fields__:
            yield f"{section}.{name}" if section else name


def typed_beside(context: click.Context, *names: str) -> str:
    """Return the flag, such as "--json", of a typed option that is not in `names`; "" without such an option.

    Of several such options, the flag of the first option in the definition of the command is returned.
    """
    for option in context.command.params:
        typed = context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
        if typed and isinstance(option, click.Option) and option.name not in names:
            return option.opts[0]
    return ""
