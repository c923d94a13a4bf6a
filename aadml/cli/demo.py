"""`aadml demo`: a first session, from nothing to a score, a page and an index to ask."""

import shlex
import time
from pathlib import Path

import click


@click.command()
@click.argument("folder", default="demo", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Render sample clips into FOLDER, extract, train, evaluate, write the page, and make an index to ask.

    Every command is shown before it runs, so that it can be repeated with other data. Needs the extra `plot` for the
    page, and `serve` to open the index in a browser.
    """
    begun, runs = time.monotonic(), folder / "runs"
    manifest, features, index = folder / "clips" / "manifest.csv", folder / "clips.h5", folder / "clips.index"
    before = set(runs.glob("*"))
    _run("sample-data", folder / "clips")
    _run("extract", manifest, "-o", features, "--audio", "log-mel", "--visual", "hog-color")
    _run("train", "--data", features, "--config", "sample", "--loss", "aa-triplet", "--runs", runs)
    (run,) = set(runs.glob("*")) - before
    _run("evaluate", run)
    _run("report", run, "--media", manifest)
    _run("index", features, "-o", index, "--model", run, "--media", manifest)
    click.echo(f"\nDone in {time.monotonic() - begun:.0f} s. Open {run / 'report.html'} in a browser.")
    click.echo(f"To ask with a sound or a picture: {shlex.join(['aadml', 'serve', str(index)])}")


def _run(*words: str | Path) -> None:
    """Show a command and run it; one that fails ends the session with its exit code."""
    from aadml.cli import cli

    arguments = [str(word) for word in words]
    click.echo(click.style(f"\n$ {shlex.join(['aadml', *arguments])}", bold=True))
    code = cli.main(arguments, prog_name="aadml", standalone_mode=False)
    if code:
        raise click.exceptions.Exit(code)
