"""`aadml list`: what there is to choose from."""

import click

KINDS = (
    "losses",
    "proxies",
    "selections",
    "methods",
    "extractors",
    "datasets",
    "protocols",
    "metrics",
    "label-losses",
    "readouts",
    "configs",
)


@click.command("list")
@click.argument("kind", required=False, metavar=f"[{'|'.join(KINDS[:8])}]")
@click.option("--json", "as_json", is_flag=True, help="Print names, descriptions and origins as JSON.")
def command(kind: str | None, as_json: bool) -> None:
    """List what there is to choose from, each with a line of what it is, and where it comes from if not from here."""
    from aadml.configuration.listing import listing
    from feature_extraction.ground.errors import InputError
    from feature_extraction.ground.tables import OWN, suggestion

    if kind is None:
        click.echo("\n".join(KINDS))
        return
    if kind not in KINDS:
        raise InputError(f"list: nothing called '{kind}'; {suggestion(kind, KINDS)}")
    entries = listing(kind)
    if as_json:
        import json

        facts = {e.name: {"description": e.description, "from": e.origin, "place": e.place} for e in entries}
        click.echo(json.dumps(facts, indent=2))
        return
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        origin = "" if entry.origin == OWN else f"  [{entry.place} of {entry.origin}]"
        click.echo(f"{entry.name:<{width}}  {entry.description}{origin}".rstrip())
