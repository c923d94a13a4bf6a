"""List losses, proxies, selections, methods, extractors, datasets, protocols, metrics."""

import click

from aadml.cli.terminal import echo, echo_json
from aadml.configuration.catalog import TABLES, listing, options
from aadml.feature_extraction.ground.registry import OWN


@click.command("list")
@click.argument(
    "kind", required=False, metavar="[losses|proxies|selections|methods|extractors|datasets|protocols|metrics]"
)
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kind: str | None, name: str | None, as_json: bool) -> None:
    """List the entries of a kind with their descriptions.

    An entry from a package other than aadml is listed with that package. Without a kind, list the kinds. With a
    NAME, list the options of that entry, as in `aadml list methods dscmr`. `aadml list sections` lists the sections
    of a configuration, and `aadml list sections training` lists the keys of a section.
    """
    if kind is None:
        echo(*TABLES)
    elif name is None:
        _print_entries(kind, as_json)
    else:
        _print_options(kind, name, as_json)


def _print_entries(kind: str, as_json: bool) -> None:
    entries = listing(kind)
    if as_json:
        facts = {e.name: {"description": e.description, "from": e.origin, "place": e.place} for e in entries}
        echo_json(facts)
        return
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        origin = "" if entry.origin == OWN else f"  [{entry.place} of {entry.origin}]"
        echo(f"{entry.name:<{width}}  {entry.description}{origin}".rstrip())


def _print_options(kind: str, name: str, as_json: bool) -> None:
    entries = options(kind, name)
    if as_json:
        echo_json({option.name: option.facts() for option in entries})
        return
    if not entries:
        echo(f"{name} has no options")
    for option in entries:
        echo(f"{option.name} = {option.written_default or '(required)'}    ({option.possible}{option.company})")
        echo(f"    {option.sentence}")
