"""Run a first session: sample clips, features, a model, its score and page, an index."""

import shlex
import shutil
import sys
import time
from pathlib import Path

import click

from aadml.cli.terminal import echo


@click.command()
@click.argument("folder", default="demo", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """In FOLDER, create sample clips, features, a trained and evaluated model, the page of the run, and an index.

    Every command is printed before it runs, ready to be repeated with other data. The page needs the extra `plot`.
    The search page of the index needs the extra `serve`.
    """
    start, runs = time.monotonic(), folder / "runs"
    manifest, features, index = folder / "clips" / "manifest.csv", folder / "clips.h5", folder / "clips.index"
    before = set(runs.glob("*"))
    _run("sample-data", folder / "clips")
    _run("extract", manifest, "-o", features, "--audio", "log-mel", "--visual", "hog-color")
    _run("train", "--data", features, "--config", "sample", "--loss", "aa-triplet", "--runs", runs)
    (run,) = set(runs.glob("*")) - before
    _run("evaluate", run)
    _run("report", run, "--media", manifest)
    _run("index", features, "-o", index, "--model", run, "--media", manifest)
    echo("", f"Done in {time.monotonic() - start:.0f} s. Open {run / 'report.html'} in a browser.")
    installed = Path(sys.executable).with_name("aadml")
    program = str(installed) if installed.is_file() and not shutil.which("aadml") else "aadml"
    echo(f"To search with a sound or a picture: {shlex.join([program, 'serve', str(index)])}")


def _run(*words: str | Path) -> None:
    """Print and run a command; exit with the status of a failed command."""
    from aadml.cli import cli

    arguments = [str(word) for word in words]
    echo("", f"$ {shlex.join(['aadml', *arguments])}", bold=True)
    code = cli.main(arguments, prog_name="aadml", standalone_mode=False)
    if code:
        raise click.exceptions.Exit(code)
