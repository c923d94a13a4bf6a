"""`aadml manifest`: a manifest of media for extraction."""

from typing import Any

import click


@click.command(name="manifest")
@click.argument("places", metavar="[DATASET] FOLDER|TABLE.csv", nargs=-1, required=True, type=click.Path())
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False), help="Manifest to write.  [default: SOURCE.manifest.csv]"
)
@click.option("--columns", metavar="NEW=OLD,...", help="Table: columns to rename, as in media=filename,label=class.")
@click.option("--header", metavar="NAMES", help="Table without a header: names of its columns, as in id,start,label.")
@click.option("--comment", metavar="SIGN", help="Table: omit the lines that begin with SIGN, such as '#'.")
@click.option(
    "--media-name", metavar="TEMPLATE", help="Table: name of the media file of a row, as in '{id}_{start:06d}.mp4'."
)
@click.option(
    "--split",
    metavar="RULE",
    help="random:TRAIN/VALID/TEST (shares) or column:NAME.  [default: splits of the source, else random:0.7/0.1/0.2]",
)
@click.option(
    "--split-by", metavar="COLUMN", help="Clips with the same value of COLUMN (a speaker, a video) stay in one split."
)
@click.option("--seed", type=click.IntRange(min=0), help="Random seed of every split.  [default: 0]")
@click.option("--labels-separator", metavar="SEP", help="Table: separator of several labels in a cell, such as '|'.")
@click.option("--first-label", is_flag=True, help="Table: keep only the first of several labels.")
@click.option("--no-labels", is_flag=True, help="Table, folder: omit the labels.")
@click.option("--skip-missing", is_flag=True, help="Omit clips without a media file.")
@click.option(
    "--media",
    type=click.Path(),
    help="Table, data set: folder of the media.  [default: that of the table; ave: DIR/AVE]",
)
@click.option(
    "--whole-recordings",
    is_flag=True,
    help="Data set with times: the media are whole videos, and the columns start and end cut the clips.",
)
@click.option("--classes", type=int, help="ave: 15 (the retrieval papers, default) or 28 (all).")
@click.option("--clock-limit", help="ave: number of clips of Clock, or none for no limit.  [default: 100]")
@click.option(
    "--folds", type=click.Path(), help="vegas: folder with one text file of ids per fold; the last fold is for test."
)
def command(places: tuple[str, ...], **options: Any) -> None:
    """Write a manifest of the media in a folder or table, for `aadml extract`, and print its path.

    FOLDER holds media without labels, or one folder of media per class, which may be below train, valid and test.
    Folders of sounds and pictures, as class/sound and class/images, are read as pairs. TABLE.csv has one row per clip
    and any columns, separated by comma, semicolon or tab. DATASET is the layout of a data set: ave, vegas, vggsound,
    audioset, audiocaps, clotho, kinetics-sounds or music (`aadml list datasets`). Missing and repeated clips, and clips
    in two splits, are reported on stderr.
    """
    import aadml

    click.echo(aadml.manifest(*places, on_note=lambda line: click.echo(line, err=True), **options))
