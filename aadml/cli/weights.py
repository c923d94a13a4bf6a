"""List, download or verify the weight files of published networks."""

from typing import TYPE_CHECKING, Literal

import click

from aadml.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from aadml.feature_extraction.jobs.weights import WeightState


@click.command("weights")
@click.argument("action", type=click.Choice(["list", "get", "verify"]), default="list")
@click.argument("name", required=False, metavar="[NAME|RECIPE]")
@click.option("--from", "folder", type=click.Path(), metavar="FOLDER", help="Copy the files from FOLDER, offline.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(action: Literal["list", "get", "verify"], name: str | None, folder: str | None, as_json: bool) -> None:
    """List, download or verify the weight files of the published networks.

    NAME is a file of `aadml weights list`. RECIPE is a recipe of `aadml list feature-recipes`, and selects all
    files of the recipe. `get` also accepts hf:MODEL[@revision]. Run the same `get` again to continue an interrupted
    download. The files are in $AADML_CACHE/weights. $AADML_MIRROR replaces all addresses by one folder of files on
    a server.

    A file without a published checksum is trusted at its first download. Its SHA-256 is printed and recorded in
    $AADML_CACHE/weights/checksums.json. Copy checksums.json to another machine to accept only the same files there.
    The exit status of `verify` is 1 for a damaged file, or for an absent file of NAME or RECIPE.
    """
    import aadml

    states = aadml.weights(action, name, folder=folder)
    if as_json:
        echo_json([vars(state) for state in states])
    else:
        echo(*map(_line, states))
    absent = name is not None and not all(state.present for state in states)
    if action == "verify" and (absent or any(state.problem for state in states)):
        raise click.exceptions.Exit(1)


def _line(state: "WeightState") -> str:
    if state.problem:
        return f"{state.name}: DAMAGED: {state.problem}"
    presence = f"present, SHA-256 {state.sha256 or 'not recorded'}" if state.present else "absent"
    return f"{state.name}: {presence}; checked: {state.check}; {state.license}; {state.url}"
