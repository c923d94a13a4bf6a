"""`aadml serve`: a local search page of an index."""

import click

from aadml.cli.trust import trust_option


@click.command("serve")
@click.argument("index", type=click.Path())
@click.option("--port", default=8765, show_default=True, type=click.IntRange(1024, 65535), help="Local port.")
@click.option("--model", type=click.Path(), metavar="RUN", help="Folder of the model, if it was moved.")
@trust_option
def command(index: str, port: int, model: str | None) -> None:
    """Serve a page that searches INDEX: drop a sound, a picture or a clip, and play the hits.

    The page is served to this machine only, and nothing is written. Each printed address opens the page in one
    browser; after that, the next address is printed. Ctrl-C stops the server.
    """
    import aadml

    aadml.serve(
        index,
        port=port,
        model=model,
        on_note=lambda address: click.echo(f"{address} (opens in one browser; Ctrl-C stops the server)"),
    )
