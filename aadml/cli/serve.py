"""`aadml serve`: a local page to ask an index."""

import click

from aadml.cli.trust import trust_option


@click.command("serve", short_help="Open a local page to ask an index from.")
@click.argument("index", type=click.Path())
@click.option("--port", default=8765, show_default=True, type=click.IntRange(1024, 65535), help="Port of this machine.")
@click.option("--model", type=click.Path(), metavar="RUN", help="Where the index's model lies, if it was moved.")
@trust_option
def command(index: str, port: int, model: str | None) -> None:
    """Serve a page on which INDEX is asked: drop a sound, a picture or a clip, and play what fits.

    Only this machine can open the page; the index and its media are read, and nothing is written. Each printed address
    opens the page in one browser; the next address is printed then. Ctrl-C ends it.
    """
    from aadml.feature_extraction.ground.errors import InputError

    try:
        from aadml.search.app import serve
    except ModuleNotFoundError as error:
        raise InputError(
            f"aadml serve needs {error.name}, which is not installed: pip install 'aadml[serve]'"
        ) from error
    serve(
        index,
        port=port,
        model=model,
        on_note=lambda address: click.echo(f"{address} (opens one browser; Ctrl-C ends it)"),
    )
