"""Turn any supported layout into a feature file."""

from typing import Any

import click

from aadml.cli.feature_options import view_options
from aadml.cli.settings import flags_of
from aadml.cli.terminal import echo, echo_path

_flag = flags_of("aadml.data.conversion:convert")


@click.command(name="convert")
@click.argument("source", metavar="IN", type=click.Path())
@click.argument("target", metavar="OUT", type=click.Path())
@_flag("--layout")
@view_options
@_flag("--class-names", type=click.Path())
@_flag("--incomplete-classes", type=click.Choice(["keep", "drop"]), default="keep", show_default=True)
@_flag("--split", metavar="RULE")
@_flag("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@_flag("--drop-duplicates", type=click.Choice(["train", "test"]))
@_flag("--first-label", is_flag=True)
def command(source: str, target: str, **options: Any) -> None:
    """Convert IN, of any supported layout, into the feature file OUT.

    With 'synthetic:ave' or 'synthetic:vegas' as IN, draw random features with the sizes of AVE or VEGAS.
    'synthetic:pairs' draws clips whose sound and picture share more than their class, with options as in
    'synthetic:pairs:shared=0.8,difficulty=0.3,seed=1'. With --layout split-keys, random features are written in the
    layout of the papers' files.
    """
    import aadml

    content = aadml.convert(source, target, on_note=lambda note: echo(f"note: {note}", err=True), **options)
    shapes = ", ".join(f"{name} {values.shape[1]}-d" for name, values in content.features.items())
    splits = ", ".join(f"{content.splits.count(split)} {split}" for split in ("train", "valid", "test"))
    classes = f"{len(content.class_names)} classes" if content.class_names else "no labels"
    echo(f"{len(content.ids)} clips, {classes}, {shapes} ({splits})", err=True)
    echo_path(target)
