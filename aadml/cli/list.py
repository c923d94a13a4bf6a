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
    "label-losses",
    "readouts",
    "configs",
)


@click.command("list")
@click.argument("kind", required=False, metavar=f"[{'|'.join(KINDS[:7])}]")
@click.option("--json", "as_json", is_flag=True, help="Print names and descriptions as JSON.")
def command(kind: str | None, as_json: bool) -> None:
    """List what there is to choose from, each with a line of what it is."""
    from aadml.cli.listing import listing
    from feature_extraction.ground.errors import InputError
    from feature_extraction.ground.options import nearest

    if kind is None:
        click.echo("\n".join(KINDS))
        return
    if kind not in KINDS:
        raise InputError(
            f"list: nothing called '{kind}'; did you mean '{nearest(kind, KINDS)}'? There are: {', '.join(KINDS)}"
        )
    entries = listing(kind)
    if as_json:
        import json

        click.echo(json.dumps(entries, indent=2))
        return
    width = max(len(name) for name in entries)
    for name, line in entries.items():
        click.echo(f"{name:<{width}}  {line}".rstrip())
