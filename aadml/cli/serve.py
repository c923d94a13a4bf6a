"""Serve a local search page of an index."""

import logging
import signal
from typing import Any

import click

from aadml.cli import Interruption
from aadml.cli.terminal import echo
from aadml.cli.trust import trust_option


@click.command("serve")
@click.argument("index", type=click.Path())
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 for all.")
@click.option("--port", default=8765, show_default=True, type=click.IntRange(1024, 65535), help="Port to listen on.")
@click.option("--root-path", default="", metavar="PATH", help="Path below which a reverse proxy serves the page.")
@click.option(
    "--token-file", type=click.Path(), metavar="FILE", help="File with the token of a team; required beyond localhost."
)
@click.option("--model", type=click.Path(), metavar="RUN", help="Folder of the model, if it was moved.")
@trust_option
def command(index: str, token_file: str | None, **options: Any) -> None:
    """Serve a page to browse INDEX, to search INDEX with a dropped sound, picture or clip, and to play the hits.

    Judgments of hits are written into INDEX.judgments.csv. Each printed address opens the page in one browser. Then the
    next address is printed. With --token-file, the address opens the page in any browser. Each request is logged to
    stderr as a line of JSON. Ctrl-C stops the server.
    """
    import aadml

    if isinstance(signal.getsignal(signal.SIGTERM), Interruption):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the end of a server by SIGTERM is a success for systemd
    log = logging.getLogger("aadml.requests")
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)
    log.propagate = False
    opens = "opens in any browser" if token_file else "opens in one browser"

    def on_note(address: str) -> None:
        echo(f"{address} ({opens}; Ctrl-C stops the server)")

    aadml.serve(index, token_file=token_file, on_note=on_note, **options)
