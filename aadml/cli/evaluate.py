"""Score a run, or external embeddings, under a named protocol."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.feature_options import other_features_option
from aadml.cli.settings import flags_of
from aadml.cli.terminal import echo, echo_json
from aadml.cli.trust import trust_option

_flag = flags_of("aadml.runs.evaluate:evaluate")


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path))
@_flag("--embeddings", type=click.Path(path_type=Path))
@_flag("--data")
@other_features_option
@_flag("--split")
@_flag("--protocol")
@_flag("--metric", "metrics", multiple=True, metavar="NAME[@K]")
@_flag("--relevance", metavar="RULE")
@_flag("--exclude-partner", is_flag=True)
@_flag("--disjoint", is_flag=True)
@_flag("--queries", type=int, metavar="N")
@_flag("--cluster", metavar="COLUMN")
@click.option("--all", "everything", is_flag=True, help="Print all metrics with their chance levels.")
@click.option("--by-class", is_flag=True, help="Also print the MAP of each class.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--per-query", is_flag=True, help="With --json: also print the average precision of each query.")
@trust_option
def command(
    run: Path | None,
    embeddings: Path | None,
    everything: bool,
    by_class: bool,
    as_json: bool,
    per_query: bool,
    **options: Any,
) -> None:
    """Score RUN (a run or a model folder), or external embeddings.

    By default, every query ranks the whole gallery, including its own clip. MAP without that clip is printed too.
    MAP is the mean over queries of the mean precision at the ranks of all relevant items. Ties count by the expectation
    over their orders, with the worst and the best order as bounds. Chance is the MAP of a random order.
    """
    import aadml
    from aadml.cli.progress import note

    if (run is None) == (embeddings is None):
        problem = "neither RUN nor --embeddings was passed" if run is None else "both RUN and --embeddings were passed"
        raise click.UsageError(f"{problem}; pass either a run or model folder, or --embeddings FILE")
    if per_query and not as_json:
        raise click.UsageError("--per-query applies to --json only; pass --json as well")
    evaluation = aadml.evaluate(run, embeddings=embeddings, on_note=note, **options)
    if as_json:
        echo_json(evaluation.to_json(queries=per_query))
    else:
        echo(*evaluation.table(everything=everything, by_class=by_class).split("\n"))
