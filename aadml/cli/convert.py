"""`aadml convert`: any supported layout to a feature file."""

from typing import Any

import click


@click.command(name="convert")
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--layout", help="The layout of IN; recognized by default (`aadml list datasets` names them).")
@click.option("--audio", help="The view that counts as audio, where the layout does not say.")
@click.option("--visual", help="The view that counts as visual, where the layout does not say.")
@click.option("--class-names", type=click.Path(), help="Names of the classes, one a line, in the order of the labels.")
@click.option("--test-fold", type=click.IntRange(min=1), help="Which fold is the test split.  [default: the last]")
@click.option(
    "--incomplete-classes",
    type=click.Choice(["keep", "drop"]),
    default="keep",
    show_default=True,
    help="What is done with classes that miss train or test clips.",
)
def command(source: str, target: str, **options: Any) -> None:
    """Turn IN, of any supported layout, into the feature file OUT.

    'synthetic:ave' and 'synthetic:vegas' as IN draw features of the sizes of AVE's fifteen classes and of VEGAS.
    """
    from aadml.data.conversion import convert

    content = convert(source, target, on_note=lambda note: click.echo(f"note: {note}", err=True), **options)
    shapes = ", ".join(f"{name} {values.shape[1]}-d" for name, values in content.features.items())
    splits = ", ".join(f"{content.splits.count(split)} {split}" for split in ("train", "valid", "test"))
    click.echo(f"{len(content.ids)} clips, {len(content.class_names)} classes, {shapes} ({splits})", err=True)
    click.echo(target)
