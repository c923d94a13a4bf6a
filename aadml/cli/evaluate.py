"""`aadml evaluate`: scores of a run or of external embeddings."""

import json
from pathlib import Path
from typing import Any

import click

from aadml.cli.feature_options import other_features_option
from aadml.cli.run_path import RunPath
from aadml.cli.trust import trust_option


@click.command()
@click.argument("run", required=False, type=RunPath())
@click.option(
    "--embeddings",
    type=click.Path(path_type=Path),
    help="npz or HDF5 file with audio, visual (or text), label, and optionally id, split; several captions per clip as "
    "text (n, c, d), or (m, d) with text_row (m,).",
)
@click.option("--data", help="Data to score the model on, instead of the data of the run.")
@other_features_option
@click.option("--split", help="Split to score: train, valid or test.  [default: test]")
@click.option(
    "--protocol",
    help="Protocol of the embeddings.  [default: the protocol of the run, or 'unstated']",
)
@click.option(
    "--similarity",
    help="cosine, dot, euclidean or hamming, instead of the similarity of the embeddings.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[@K]",
    help="Additional metric of `aadml list metrics`, such as recall@3; without K, all cutoffs of the table. "
    "Separate several metrics by commas, or repeat the option.",
)
@click.option(
    "--relevance",
    metavar="RULE",
    help="Relevance: own (only the partner), label, labels (a shared class), labels-graded, or a file of judgments "
    "(query,item,grade, or TREC qrels).  [default: the rule of the run or of the data]",
)
@click.option(
    "--exclude-partner",
    is_flag=True,
    help="Remove each query's own clip from its gallery.",
)
@click.option(
    "--disjoint",
    is_flag=True,
    help="Split the clips of each class into two fixed halves; queries of each half rank the other half.",
)
@click.option(
    "--queries",
    type=int,
    metavar="N",
    help="Use N random queries of each direction against the whole gallery, to estimate MAP in less time.",
)
@click.option(
    "--cluster",
    metavar="COLUMN",
    help="Column of the data (speaker, recording) whose groups of clips are resampled for the intervals of MAP.  "
    "[default: the choice of the run, or single clips]",
)
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

    Every query ranks the whole gallery, including its own clip; MAP without that clip is printed too. MAP is the mean
    over queries of the mean precision at the ranks of all relevant items. Ties count by the expectation over their
    orders, with the worst and the best order as bounds. Chance is the MAP of a random order.
    """
    import aadml
    from aadml.cli.progress import note

    if (run is None) == (embeddings is None):
        problem = "neither RUN nor --embeddings is given" if run is None else "both RUN and --embeddings are given"
        raise click.UsageError(f"{problem}; pass either a run or model folder, or --embeddings FILE")
    if per_query and not as_json:
        raise click.UsageError("--per-query applies to --json only; pass --json as well")
    evaluation = aadml.evaluate(run, embeddings=embeddings, on_note=note, **options)
    if as_json:
        click.echo(json.dumps(evaluation.to_json(queries=per_query), indent=2))
    else:
        click.echo(evaluation.table(everything=everything, by_class=by_class))
