"""Search an index with a sound, a picture, a clip or words."""

from typing import Any

import click

from aadml.cli.terminal import echo, echo_json, echo_path
from aadml.cli.trust import trust_option

MODALITIES = click.Choice(["audio", "visual", "text"])


@click.command("search")
@click.argument("index", type=click.Path())
@click.option("--audio", type=click.Path(), metavar="FILE", help="Query: the sound of a file.")
@click.option("--visual", type=click.Path(), metavar="FILE", help="Query: a picture, or the pictures of a video.")
@click.option("--clip", type=click.Path(), metavar="FILE", help="Query: sound and picture of a video together.")
@click.option("--text", metavar="WORDS", help="Query: words, for a model with text.")
@click.option(
    "--to",
    type=MODALITIES,
    help="Modality to search in.  [default: the only modality of the index; for words, all modalities]",
)
@click.option("-k", default=10, show_default=True, type=click.IntRange(min=1), help="Number of hits.")
@click.option("--where", metavar="SQL", help="Filter, such as \"label = 'dog' AND seconds > 3\".")
@click.option("--model", type=click.Path(), metavar="RUN", help="Folder of the model, if it was moved.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--export", type=click.Path(), metavar="NAME", help="Only write vectors: NAME.MODALITY.npy or .parquet.")
@click.option(
    "--format", "kind", type=click.Choice(["npy", "parquet"]), help="Format of exported vectors.  [default: npy]"
)
@trust_option
@click.pass_context
def command(
    context: click.Context,
    /,
    index: str,
    model: str | None,
    as_json: bool,
    export: str | None,
    kind: str | None,
    **query: Any,
) -> None:
    """Search INDEX with a query.

    Scores are computed as in `aadml evaluate`. Hits of equal score are ordered by id. With posteriors, hits of
    equal score are ordered by the cosine of centered log-posteriors, and then by id. --where reads the columns id,
    split, label, audio, visual, and the columns of the manifest.
    """
    import aadml
    from aadml.cli.settings import typed_beside

    if kind is not None and export is None:
        raise click.UsageError("--format applies to --export only; pass --export as well")
    if export is not None and (flag := typed_beside(context, "model", "export", "kind", "trust_code")):
        raise click.UsageError(f"--export writes all vectors, so {flag} has no effect; omit {flag}")
    with aadml.Index(index, model=model) as opened:
        if export is not None:
            for path in opened.export(export, kind=kind or "npy"):
                echo_path(path)
            return
        results = opened.search(**query)
    if as_json:
        echo_json(results.to_json())
    else:
        echo(*_lines(results))


def _lines(results: Any) -> list[str]:
    items = "captions" if results.to == "text" and any(hit.item.caption for hit in results.hits) else "clips"
    lines = [
        f"{'-'.join(results.asked)} to {results.to}: {len(results.hits)} of {results.among:,} {items}, by "
        f"{results.similarity}"
    ]
    calibration = results.calibration
    if results.uncalibrated:
        lines.append(f"no probabilities: {results.uncalibrated}")
    elif calibration is not None and results.nothing_fits:
        lines.append(
            f"no hit is certain: none reaches the threshold of {calibration.threshold:.0%}, above which "
            f"{calibration.precision:.0%} of the best hits are relevant"
        )
    for rank, hit in enumerate(results.hits, 1):
        place = hit.media.get(next(iter(hit.ranks), results.to)) or next(iter(hit.media.values()), "")
        ranks = ", ".join(f"{modality} {position}" for modality, position in hit.ranks.items())
        moment = "" if hit.moment is None else f"at {hit.item.segment.start + hit.moment.seconds:.1f} s"
        words = "" if hit.item.caption is None else hit.item.caption.text
        parts = (hit.id.replace("\n", " "), words, hit.item.label, place, hit.range, moment, ranks)
        chance = "" if hit.probability is None else f"{hit.probability:>5.0%}  "
        lines.append(f"{rank:>4}  {hit.score:>9.4f}  {chance}{'  '.join(filter(None, parts))}")
    return lines
