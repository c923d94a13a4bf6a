"""Evaluations as tables of the main metrics or of all metrics."""

from collections.abc import Iterable, Iterator

from aadml.comparison.relevance import LABEL, RULES, Judgments
from aadml.feature_extraction.ground.terminal import escaped
from aadml.retrieval.metric_names import CHANCE_OF, OTHER_GALLERIES, Gallery, place_of
from aadml.retrieval.results import DirectionResult, Evaluation
from aadml.retrieval.sampling import QuerySample

GALLERY_IN_WORDS: dict[Gallery, str] = {
    "full": "full: all clips, including the query's own",
    "without-partner": "without-partner: all clips except the query's own",
    "disjoint": "disjoint: the half of the clips without the query, both halves in turn",
}

RELEVANCE_IN_WORDS = {
    **{rule.name: rule.words for rule in (*RULES.values(), Judgments({}))},
    "events": "an item that shares a perceptible event with the query",  # in evaluations of earlier versions
}

Rows = list[list[str]]

_FIRST = ("recall@1", "recall@5", "recall@10", "precision@10", "median rank of the first relevant")
"""Rows beside MAP in the short table, in their order."""

_ROW_OF = {
    "map-at-r": "MAP@R",
    "mean-rank": "mean rank of the first relevant",
    "median-rank": "median rank of the first relevant",
}
"""Row of a metric without cutoff that every evaluation has."""


def summary(evaluation: Evaluation, *, everything: bool = False) -> str:
    """Return the table of an evaluation as text.

    Args:
        evaluation: evaluation of any number of directions.
        everything: whether to show all metrics with their chance levels. Otherwise the table shows the main metrics and
            the requested metrics.
    """
    lines = [f"protocol {evaluation.protocol}, split {evaluation.split}, similarity {evaluation.similarity}"]
    if evaluation.relevance != LABEL.name:
        lines += [f"relevance {evaluation.relevance}: {RELEVANCE_IN_WORDS[evaluation.relevance]}"]
    if everything or evaluation.gallery != "full":
        lines += [f"gallery {GALLERY_IN_WORDS[evaluation.gallery]}"]
    lines += [] if evaluation.sample is None else [in_words(evaluation.sample)]
    lines += ["; ".join(_counts(result) for result in evaluation.directions), ""]
    lines += aligned(table_of(evaluation, everything=everything))
    if everything and evaluation.label_space:
        known = (f"{m} {accuracy:.4f} ({loss:.3f} nats)" for m, (accuracy, loss) in evaluation.label_space.items())
        lines += ["", f"accuracy (log-loss) of each modality as a classifier: {', '.join(known)}"]
    return "\n".join(lines)


def table_of(evaluation: Evaluation, *, everything: bool = False) -> Rows:
    """Return the header and the rows of cells, with a column per direction and a column of means."""
    results = evaluation.directions
    table = [["", *(result.name for result in results), "mean"]]
    rows = {name: (values, form) for name, values, form in _rows(evaluation)}
    short = ["MAP", *_others(rows, evaluation.requested), *(name for name in _FIRST if name in rows), "tie rate"]
    for name in rows if everything else dict.fromkeys(short):
        values, form = rows[name]
        table.append([name, *(form.format(value) for value in (*values, sum(values) / len(values)))])
        if name == "MAP":
            table += _ranges(evaluation, everything=everything)
    return table


def figures_of(evaluation: Evaluation) -> dict[str, list[float]]:
    """Return every metric by name, with one value per direction."""
    return {name: values for name, values, _ in _rows(evaluation)}


def _others(rows: Iterable[str], requested: Iterable[str]) -> list[str]:
    """Return the names of some rows of the short table: chance level, other galleries and requested metrics.

    These rows are below the row of MAP.
    """
    fixed = ("precision@", "recall@", "hit rate@", "median rank", "mean rank", "chance level", "MAP@R")
    shown = {_ROW_OF.get(metric, metric.replace("-", " ")) for metric in requested}
    wanted = {name for name in rows if name in shown or name.partition("@")[0] in shown}
    others = (name for name in rows if name not in ("MAP", "tie rate"))
    return ["chance level of MAP", *(name for name in others if name in wanted or not name.startswith(fixed))]


def _ranges(evaluation: Evaluation, *, everything: bool) -> Rows:
    """Return the row of intervals of MAP. If `everything` is true, also return the row of bounds of MAP."""
    intervals = ["{:.4f}..{:.4f}".format(*result.map_interval) for result in evaluation.directions]
    bounds = ["{:.4f}..{:.4f}".format(*result.map_bounds) for result in evaluation.directions]
    units = f"{len(evaluation.directions[0].units)} clusters" if evaluation.clustered else "test sets"
    units += ", with a fixed gallery" if "legacy:running-map" in evaluation.protocol.split("+") else ""
    rows = [[f"MAP, 95 % interval over {units}", *intervals, "{:.4f}..{:.4f}".format(*evaluation.map_interval)]]
    return rows + ([["MAP, worst..best order of ties", *bounds, ""]] if everything else [])


def in_words(sample: QuerySample) -> str:
    """Return a phrase that states the size and the seed of a query sample."""
    counts = sorted(set(sample.of.values()))
    queries = str(counts[0]) if len(counts) == 1 else ", ".join(f"{n} ({name})" for name, n in sample.of.items())
    return f"a random sample: {sample.queries} of {queries} queries (seed {sample.seed}) against the whole gallery"


def class_table(result: DirectionResult) -> str:
    """Return the MAP of each class of queries as text."""
    table = [[result.name, "queries", "MAP", "chance"]]
    table += [[escaped(row.name), str(row.queries), f"{row.map:.4f}", f"{row.chance:.4f}"] for row in result.by_class]
    return "\n".join(aligned(table))


def _rows(evaluation: Evaluation) -> Iterator[tuple[str, list[float], str]]:
    """Yield the name, the value per direction and the number format of every metric of all directions."""
    record = evaluation.record()
    records, places = list(record.directions.values()), record.places

    def figures(*path: str) -> list[float]:
        return [float(record.figures[path]) for record in records]

    def keys(*path: str) -> dict[str, None]:
        return dict.fromkeys(place[len(path)] for place in places if place[: len(path)] == path)

    def with_chance(name: str, form: str, *path: str) -> Iterator[tuple[str, list[float], str]]:
        yield name, figures(*path), form
        if (CHANCE_OF, *path) in places:
            yield f"chance level of {name}", figures(CHANCE_OF, *path), form

    yield "MAP", [record.map for record in records], "{:.4f}"
    for place in (place_of(metric)[0] for metric in OTHER_GALLERIES):
        if place in keys():
            gallery = place.replace("_", " ")
            yield f"MAP, {gallery}", figures(place, "map"), "{:.4f}"
            yield f"chance level, {gallery}", figures(place, "chance"), "{:.4f}"
    yield "chance level of MAP", [record.chance for record in records], "{:.4f}"
    yield "tie rate", [record.tie_rate for record in records], "{:.2%}"
    for name, key in (("precision", "precision_at"), ("recall", "recall_at"), ("hit rate", "hit_rate_at")):
        for cutoff in keys(key):
            yield from with_chance(f"{name}@{cutoff}", "{:.4f}", key, cutoff)
    yield from with_chance("MAP@R", "{:.4f}", "map_at_r")
    for normalizer in keys("map_at"):
        for cutoff in keys("map_at", normalizer):
            yield from with_chance(f"MAP@{cutoff}, over {normalizer}", "{:.4f}", "map_at", normalizer, cutoff)
    yield from with_chance("median rank of the first relevant", "{:.1f}", "median_rank")
    yield from with_chance("mean rank of the first relevant", "{:.1f}", "mean_rank")
    if "running_map" in keys():
        yield from with_chance("running MAP (not MAP: see `aadml list metrics`)", "{:.4f}", "running_map")
    for name in keys("metrics"):
        yield from with_chance(name, "{:.4f}", "metrics", name)


def _counts(result: DirectionResult) -> str:
    skipped = f" ({result.without_relevant} more without a relevant item)" if result.without_relevant else ""
    return f"{result.name}: {len(result.ids)} queries{skipped} against {result.gallery}"


def aligned(table: Rows) -> list[str]:
    """Return the lines of a table, the first column aligned left, the others right."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
