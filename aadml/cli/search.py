"""`aadml search`: a sound, a picture, a clip or words ask an index."""

import json
from typing import TYPE_CHECKING, Any

import click

from aadml.cli.trust import trust_option

if TYPE_CHECKING:
    from aadml.search.results import Found

MODALITIES = click.Choice(["audio", "visual", "text"])


@click.command("search", short_help="Ask an index with a sound, a picture, a clip or words.")
@click.argument("index", type=click.Path())
@click.option("--audio", type=click.Path(), metavar="FILE", help="Ask with the sound of a file.")
@click.option("--visual", type=click.Path(), metavar="FILE", help="Ask with a picture, or the pictures of a video.")
@click.option("--clip", type=click.Path(), metavar="FILE", help="Ask with sound and picture of a video together.")
@click.option("--text", metavar="WORDS", help="Ask with words, where the model reads them.")
@click.option("--to", type=MODALITIES, help="Modality to search in; may be left out where there is only one.")
@click.option("-k", default=10, show_default=True, type=click.IntRange(min=1), help="How many hits.")
@click.option("--where", metavar="SQL", help="Search only where this holds, as \"label = 'dog' AND seconds > 3\".")
@click.option("--model", type=click.Path(), metavar="RUN", help="Where the index's model lies, if it was moved.")
@click.option("--exact", is_flag=True, help="Look at every item, where the index was made with --approximate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--export", type=click.Path(), metavar="NAME", help="Write the vectors as NAME.MODALITY.npy instead.")
@click.option("--format", "kind", type=click.Choice(["npy", "parquet"]), help="Of exported vectors.  [default: npy]")
@trust_option
@click.pass_context
def command(
    context: click.Context,
    /,
    index: str,
    to: Any,
    k: int,
    where: str | None,
    exact: bool,
    model: str | None,
    as_json: bool,
    export: str | None,
    kind: str | None,
    **question: Any,
) -> None:
    """Search INDEX for what fits a question best.

    Scores are those that `aadml evaluate` ranks by; equal scores stand in the order of their ids. --where reads the
    columns id, split, label, audio, visual, and those of the manifest.
    """
    from aadml.search.index import Index, search

    if export is not None:
        if any(question.values()):
            raise click.UsageError("give either a question or --export")
        _refuse_beside_export(context)
        with Index(index, model=model) as opened:
            click.echo("\n".join(map(str, opened.export(export, kind=kind or "npy"))))
        return
    if kind is not None:
        raise click.UsageError("--format goes with --export")
    found = search(index, to=to, k=k, where=where, exact=exact, model=model, **question)
    click.echo(json.dumps(found.to_json(), indent=2) if as_json else _table(found))


def _refuse_beside_export(context: click.Context) -> None:
    """Refuse flags that say which hits are shown: all vectors are written."""
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and option.name in ("to", "k", "where", "exact", "as_json"):
            raise click.UsageError(f"--export writes all vectors; leave out {option.opts[0]}")


def _table(found: "Found") -> str:
    lines = [
        f"{'-'.join(found.asked)} to {found.to}: {len(found.hits)} of {found.among:,} clips, by {found.similarity}"
    ]
    if found.looked_at is not None and found.looked_at < found.among:
        lines.append(f"approximate: {found.looked_at:,} clips were looked at; --exact looks at all")
    one = found.calibration
    if one is None:
        lines.append("no probabilities: the index has no validation clips for such a question")
    elif found.nothing_fits:
        lines.append(
            f"nothing here fits: no hit reaches {one.threshold:.2f}, from which {one.precision:.0%} of best hits fit"
        )
    for rank, hit in enumerate(found.hits, 1):
        place = hit.media.get(found.to) or next(iter(hit.media.values()), "")
        when = "" if hit.moment is None else f"at {hit.moment.seconds:.1f} s"
        shown = "  ".join(filter(None, (hit.id.replace("\n", " "), hit.item.label, place, when)))
        chance = "" if hit.probability is None else f"{hit.probability:>5.0%}  "
        lines.append(f"{rank:>4}  {hit.score:>9.4f}  {chance}{shown}")
    return "\n".join(lines)
