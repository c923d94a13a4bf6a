"""Print every flag of every command as a Markdown table, and count flags and options.

Usage: .venv/bin/python scripts/flags.py [--options]

Flags are read from the commands themselves. `--options` prints the keys of configs instead, as `docs/options.md` and
`docs/losses.md` list them.
"""

import re
import sys
from pathlib import Path

import click

from aadml.cli import cli

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("options.md", "losses.md")


def flags() -> list[tuple[str, str, str, str]]:
    """Return (command, names, type, default) of every flag and argument."""
    context = click.Context(cli)
    commands = {"": cli} | {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return [
        (name, ", ".join([*parameter.opts, *parameter.secondary_opts]), _type(parameter), _default(parameter))
        for name, command in commands.items()
        if command is not None
        for parameter in command.get_params(click.Context(command))
        if "--help" not in parameter.opts
    ]


def _type(parameter: click.Parameter) -> str:
    several = ", repeatable" if parameter.multiple or parameter.nargs == -1 else ""
    if isinstance(parameter, click.Argument):
        return f"argument, {parameter.type.name}{several}"
    switch = isinstance(parameter, click.Option) and parameter.is_flag
    return ("switch" if switch else parameter.type.name) + several


def _default(parameter: click.Parameter) -> str:
    default = parameter.to_info_dict()["default"]
    return "required" if parameter.required else "" if default in (None, (), False) else str(default)


def options() -> list[tuple[str, str, str]]:
    """Return (page, section, option) of every row of the tables of options."""
    found = []
    for page in PAGES:
        section, in_table = "", False
        for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
            section = line.lstrip("# ") if line.startswith("#") else section
            in_table = line.startswith("| option |") or (in_table and line.startswith("|"))
            if in_table and (match := re.match(r"\| `([^`]+)` \| ", line)):
                found.append((page, section, match[1]))
    return found


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def main() -> None:
    if sys.argv[1:] not in ([], ["--options"]):
        sys.exit(f"{__doc__}\n{' '.join(sys.argv[1:])} was given.")
    if sys.argv[1:]:
        keys = options()
        print(table(("page", "section", "option"), keys))
        print(f"\n{len(keys)} options in {len({key[:2] for key in keys})} sections")
        return
    rows = flags()
    named = [row for row in rows if row[0] and not row[2].startswith("argument")]
    print(table(("command", "flag", "type", "default"), rows))
    commands, distinct = {row[0] for row in rows} - {""}, {row[1] for row in named}
    print(
        f"\n{len(commands)} commands: {len(named)} flags ({len(distinct)} different ones) and "
        f"{len([row for row in rows if row[2].startswith('argument')])} arguments; --help and --version are not counted"
    )


if __name__ == "__main__":
    main()
