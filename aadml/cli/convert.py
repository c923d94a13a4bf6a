"""`aadml convert`: any supported layout to a feature file."""

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
def command(
    source: str,
    target: str,
    layout: str | None,
    audio: str | None,
    visual: str | None,
    class_names: str | None,
    test_fold: int | None,
    incomplete_classes: str,
) -> None:
    """Turn IN, of any supported layout, into the feature file OUT.

    'synthetic:ave' and 'synthetic:vegas' as IN draw features of the sizes of AVE's fifteen classes and of VEGAS.
    """
    from aadml.data.raw import read_class_names
    from aadml.data.reading import open_data
    from aadml.data.splits import without_incomplete_classes
    from feature_extraction.feature_file import write_features

    names = read_class_names(class_names) if class_names else None
    content = open_data(source, layout=layout, audio=audio, visual=visual, class_names=names, test_fold=test_fold)
    if incomplete_classes == "drop":
        content, notes = without_incomplete_classes(content, source)
        for note in notes:
            click.echo(f"note: {note}", err=True)
    for note in content.notes():
        click.echo(f"note: {note}", err=True)
    write_features(target, content)
    shapes = ", ".join(f"{name} {values.shape[1]}-d" for name, values in content.features.items())
    splits = ", ".join(f"{content.splits.count(split)} {split}" for split in ("train", "valid", "test"))
    click.echo(f"{len(content.ids)} clips, {len(content.class_names)} classes, {shapes} ({splits})", err=True)
    click.echo(target)
