"""A law over the commands: each is one call of one public function, with the same names and the same defaults."""

import importlib
import inspect
from operator import attrgetter

import click
import pytest

from aadml.cli import COMMANDS, cli

FUNCTIONS = {
    name: {"train": "fit", "sample-data": "sample_data", "search": "Index.search"}.get(name, name)
    for name in COMMANDS
    if name not in ("demo", "list")
} | {"list": "aadml.configuration.catalog:listing"}
"""Command -> name in `aadml`; `list` has its function in a room, and `demo` calls other commands."""

PRINTING = {"as_json", "by_class", "everything", "per_query", "require_training"}
"""What decides how a result is printed, or the exit status, not what is done."""

OTHER_NAMES = {
    "audit": {"shell": "command"},
    "embed": {"run": "model"},
    "evaluate": {"run": "model"},
    "export": {"run": "model"},
    "merge": {"shards": "paths"},
    "report": {"runs": "run"},
    "verify": {"run": "path"},
}
"""Command -> name of a parameter -> the argument of the function that it is."""

OF_OTHER_FUNCTIONS = {
    "train": {"resume"},
    "list": {"kind", "name"},
    "reproduce": {"yes"},
    "search": {"export", "kind", "index", "model", "trust_code"},
}
"""`aadml train --resume RUN` is `aadml.resume(RUN)`; `aadml list` alone names the kinds that `listing` takes, and with
a name it is `options(kind, name)`, the neighbor of `listing`; `aadml search --export NAME --format KIND` is
`Index.export(NAME, kind=KIND)`, and INDEX, --model and --trust-code open the `Index`.
`aadml reproduce --yes` answers a question that Python leaves to a callback."""

OTHER_DEFAULTS = {
    "extract": {"shard": ("0/1", (0, 1))},
    "compare": {"with_controls": (True, True)},
    "merge": {"shards": (None, inspect.Parameter.empty)},  # none: the shards named after the output
    "train": {"runs": ("runs", None)},  # Python trains in memory where no folder is named
}
"""Command -> parameter -> (default of the command line, default of the function)."""


def command_of(name):
    found = importlib.import_module(f"aadml.cli.{name.replace('-', '_')}").command
    assert isinstance(found, click.Command)
    return found


def function_of(name):
    module, _, attribute = FUNCTIONS[name].rpartition(":")
    return attrgetter(attribute)(importlib.import_module(module or "aadml"))


def pairs():
    """Every parameter of every command, with the name of the argument that it is."""
    for name in FUNCTIONS:
        for parameter in command_of(name).params:
            if parameter.name not in PRINTING | OF_OTHER_FUNCTIONS.get(name, set()):
                yield name, parameter, OTHER_NAMES.get(name, {}).get(parameter.name, parameter.name)


def plain(value):
    """Give what a default says: click has a sentinel or False for none, and an empty tuple where an option repeats."""
    return None if value in (None, (), [], False) or "UNSET" in repr(value).upper() else value


def test_every_command_has_its_function():
    assert set(FUNCTIONS) | {"demo"} == set(COMMANDS)  # a session of other commands


@pytest.mark.parametrize(
    ("name", "parameter", "argument"), [pytest.param(*one, id=f"{one[0]} {one[1].name}") for one in pairs()]
)
def test_a_parameter_is_an_argument_with_the_same_default(name, parameter, argument):
    taken = inspect.signature(function_of(name)).parameters
    if argument not in taken:
        assert any(one.kind is one.VAR_KEYWORD for one in taken.values()), f"{name}: the function has no {argument}"
        assert plain(parameter.default) is None
        return
    default = taken[argument].default
    if parameter.name in OTHER_DEFAULTS.get(name, {}):
        assert (plain(parameter.default), default) == OTHER_DEFAULTS[name][parameter.name]
    elif parameter.required:
        assert default is inspect.Parameter.empty
    elif isinstance(parameter, click.Option) and parameter.is_flag:
        assert default is False
        assert not plain(parameter.default)
    else:
        assert plain(parameter.default) == plain(default)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_only_python_can_say_is_told_apart(name):
    """What a function takes beyond its command are callbacks, and data that lie in memory."""
    said = {argument for command, _, argument in pairs() if command == name}
    taken = inspect.signature(function_of(name)).parameters
    more = {n for n, one in taken.items() if one.kind is not one.VAR_KEYWORD} - said
    callbacks = {n for n in more if n.startswith("on_") or n in ("progress", "command", "work", "confirm")}
    assert more - callbacks <= {"list": {"kind"}, "search": {"self", "parameters"}}.get(name, set())


def test_a_function_of_a_command_is_documented():
    assert all(len(inspect.getdoc(function_of(name)).splitlines()) > 1 for name in FUNCTIONS)


def test_a_command_is_repeated_as_it_was_typed_also_where_another_one_calls_it(monkeypatch, tmp_path):
    from aadml.cli.sweeps import command_line

    monkeypatch.setattr("sys.argv", ["aadml", "demo", "my clips"])
    monkeypatch.setattr("aadml.data.inspection.inspection.inspect", lambda *_, **__: pytest.fail(command_line()))
    with pytest.raises(pytest.fail.Exception, match=r"^aadml inspect 'my clips/clips\.h5'$"):
        cli.main(["inspect", "my clips/clips.h5"], standalone_mode=False)
