"""List the media of a data set (AVE, VEGAS, one folder per class) as a manifest."""

from functools import partial
from typing import Any

import click

from aadml.cli.settings import flags_of
from aadml.cli.terminal import echo, echo_path

_flag = flags_of("aadml.data.manifests.making:manifest")
_of_table, _of_form = flags_of("aadml.data.manifests.table:table"), flags_of("aadml.data.manifests.table:TableForm")
_of_ave, _of_vegas = flags_of("aadml.data.manifests.ave:ave"), flags_of("aadml.data.manifests.vegas:vegas")


@click.command(name="manifest")
@click.argument("places", metavar="[DATASET] FOLDER|TABLE.csv", nargs=-1, required=True, type=click.Path())
@_flag("-o", "--output", type=click.Path(dir_okay=False))
@_of_table("--columns", metavar="NEW=OLD,...")
@_of_form("--header", metavar="NAMES")
@_of_form("--comment", metavar="SIGN")
@_of_form("--media-name", metavar="TEMPLATE")
@_flag("--split", metavar="RULE")
@_flag("--split-by", metavar="COLUMN")
@_flag("--seed", type=click.IntRange(min=0))
@_of_table("--labels-separator", metavar="SEP")
@_of_table("--first-label", is_flag=True)
@_of_table("--no-labels", is_flag=True)
@_flag("--skip-missing", is_flag=True)
@click.option(
    "--media",
    type=click.Path(),
    help="Folder of the media of a table or data set.  [default: folder of the table; ave: DIR/AVE]",
)
@click.option(
    "--whole-recordings",
    is_flag=True,
    help="For a data set with times: the media are whole videos, and the columns start and end cut the clips.",
)
@_of_ave("--classes", type=int)
@_of_ave("--clock-limit")
@_of_vegas("--folds", type=click.Path())
def command(places: tuple[str, ...], **options: Any) -> None:
    """Write a manifest of the media in a folder or table, for `aadml extract`, and print its path.

    FOLDER contains media without labels, or one folder of media per class. The folders of classes may be below
    train, valid and test. A sound in class/sound and a picture in class/images are read as a pair if their names
    are equal. TABLE.csv has one row per clip and any columns, separated by comma, semicolon or tab. DATASET is the
    layout of a data set (see `aadml list datasets`): ave, vegas, vggsound, audioset, audiocaps, clotho,
    kinetics-sounds or music. Missing and repeated clips, and clips in two splits, are reported on stderr.
    """
    import aadml

    echo_path(aadml.manifest(*places, on_note=partial(echo, err=True), **options))
