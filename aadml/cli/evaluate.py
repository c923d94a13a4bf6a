"""`aadml evaluate`: the score of a run, or of embeddings made elsewhere."""

from pathlib import Path
from typing import Any

import click

from aadml.cli.trust import trust_option


@click.command(short_help="Score a run, or embeddings made elsewhere, under a named protocol.")
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option(
    "--embeddings",
    type=click.Path(path_type=Path),
    help="An npz or HDF5 file with audio, visual (or text), label, and optionally id, split; several captions a clip "
    "as text (n, c, d), or (m, d) with text_row (m,).",
)
@click.option(
    "--once",
    multiple=True,
    metavar="MODALITY",
    help="With --embeddings: rank this modality once a label, where each clip stands in one row a caption. Repeatable.",
)
@click.option("--data", help="Score the model on this data instead of the run's own.")
@click.option(
    "--allow-other-features", is_flag=True, help="Accept features from another extractor than the model was trained on."
)
@click.option("--split", default=None, help="Split to score: train, valid or test.  [default: test]")
@click.option(
    "--protocol",
    default=None,
    help="Protocol under which clips are embedded, or were embedded.  [default: the run's own, or 'unstated']",
)
@click.option(
    "--similarity",
    default=None,
    help="Use cosine, dot, euclidean or hamming instead of the embeddings' own similarity.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME[@K]",
    help="A further metric of `aadml list metrics`, as recall@3; without a K at all of the table's. Several with "
    "commas, or the flag again.",
)
@click.option(
    "--relevance",
    metavar="RULE",
    help="What is relevant: own (the partner alone), label, labels (a class shared), labels-graded, or a file of "
    "judgments (query,item,grade, or TREC qrels) or of events in each modality (id,audio_labels,visual_labels).  "
    "[default: the run's own, or what the data decide]",
)
@click.option(
    "--exclude-partner",
    is_flag=True,
    help="Take each query's own clip out of the gallery and out of what is relevant.",
)
@click.option(
    "--disjoint",
    is_flag=True,
    help="Halve the clips, class by class and by one fixed draw: each half asks, and the other is the gallery.",
)
@click.option(
    "--queries",
    type=int,
    metavar="N",
    help="Let N queries of each direction ask, drawn at random, each the whole gallery; MAP comes with its interval.",
)
@click.option("--query-seed", type=int, default=0, show_default=True, help="Seed of that draw.")
@click.option("--precision", default="float32", show_default=True, help="Precision of the scores: float32 or float64.")
@click.option("--by-class", is_flag=True, help="Also print the MAP of each class.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--per-query", is_flag=True, help="With --json: also print the average precision of each query.")
@trust_option
def command(
    run: Path | None,
    embeddings: Path | None,
    once: tuple[str, ...],
    data: str | None,
    allow_other_features: bool,
    split: str | None,
    protocol: str | None,
    similarity: str | None,
    metrics: tuple[str, ...],
    relevance: str | None,
    exclude_partner: bool,
    disjoint: bool,
    queries: int | None,
    query_seed: int,
    precision: str,
    by_class: bool,
    as_json: bool,
    per_query: bool,
) -> None:
    """Score RUN (a run or a model folder), or embeddings made elsewhere.

    Every query ranks the whole gallery, its own clip included; MAP without that clip stands beside. MAP is the mean
    over queries of the mean precision at the ranks of all relevant items; tied items count by the expectation over
    their orders, with the worst and the best order beside. Chance is the MAP of a random order.
    """
    from aadml.cli.progress import note
    from aadml.runs.evaluate import evaluate

    if (run is None) == (embeddings is None):
        raise click.UsageError("give either a run or model folder, or --embeddings FILE")
    if once and embeddings is None:
        raise click.UsageError("--once is for --embeddings; a run knows what stands in several rows")
    if per_query and not as_json:
        raise click.UsageError("--per-query goes with --json")
    evaluation = evaluate(
        run, embeddings=embeddings, data=data, split=split, protocol=protocol, similarity=similarity, metrics=metrics,
        relevance=relevance, allow_other_features=allow_other_features, once=once, precision=precision,
        exclude_partner=exclude_partner, disjoint=disjoint, queries=queries, query_seed=query_seed, on_note=note,
    )  # fmt: skip
    _print(evaluation, by_class=by_class, as_json=as_json, per_query=per_query)


def _print(evaluation: Any, *, by_class: bool, as_json: bool, per_query: bool) -> None:
    if as_json:
        import json

        click.echo(json.dumps(evaluation.to_json(queries=per_query), indent=2))
        return
    from aadml.retrieval.summary import class_table, summary

    click.echo(summary(evaluation))
    for result in evaluation.directions if by_class else ():
        click.echo("\n" + class_table(result))
