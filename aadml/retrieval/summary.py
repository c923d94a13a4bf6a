"""An evaluation as a table for people."""

from collections.abc import Iterator

from aadml.comparison.relevance import LABEL, RULES, Judgments, Perceived
from aadml.feature_extraction.ground.json_values import inner, nested, number
from aadml.retrieval.metric_names import CHANCE_OF, OTHER_GALLERIES, Gallery, place_of
from aadml.retrieval.results import DirectionResult, Evaluation
from aadml.retrieval.sampling import QuerySample

GALLERY_IN_WORDS: dict[Gallery, str] = {
    "full": "full: every clip, the query's own included",
    "without-partner": "without-partner: every clip but the query's own",
    "disjoint": "disjoint: the half of the clips that the query is not of, both halves in turn",
}

RELEVANCE_IN_WORDS = {rule.name: rule.words for rule in (*RULES.values(), Judgments({}), Perceived({}))}


def summary(evaluation: Evaluation) -> str:
    """Lay out an evaluation: MAP with bounds, chance and tie rate first, then the figures at cutoffs, by direction."""
    results = evaluation.directions
    mean = ["mean"] if len(results) > 1 else []
    table = [["", *(result.name for result in results), *mean]]
    for name, values, form in _rows(results):
        cells = [form.format(value) for value in values]
        average = [form.format(sum(values) / len(values))] if mean else []
        table.append([name, *cells, *average])
    for i, row in enumerate(table):
        if row[0] == "MAP":
            if evaluation.sample is not None:
                within = ["{:.4f}..{:.4f}".format(*result.map_interval) for result in results]
                table.insert(i + 1, ["MAP, 95 % interval over queries (bootstrap)", *within, *("" for _ in mean)])
            bounds = ["{:.4f}..{:.4f}".format(*result.map_bounds) for result in results]
            table.insert(i + 1, ["MAP, worst..best order of ties", *bounds, *("" for _ in mean)])
            break
    lines = [f"protocol {evaluation.protocol}, split {evaluation.split}, similarity {evaluation.similarity}"]
    if evaluation.relevance != LABEL.name:
        lines += [f"relevant {evaluation.relevance}: {RELEVANCE_IN_WORDS[evaluation.relevance]}"]
    lines += [f"gallery {GALLERY_IN_WORDS[evaluation.gallery]}"]
    lines += [] if evaluation.sample is None else [in_words(evaluation.sample)]
    lines += ["; ".join(_counts(result) for result in results), "", *_aligned(table)]
    if evaluation.label_space:
        known = (f"{m} {accuracy:.4f} ({loss:.3f} nats)" for m, (accuracy, loss) in evaluation.label_space.items())
        lines += ["", f"accuracy (log-loss) of one modality alone, read as label space: {', '.join(known)}"]
    return "\n".join(lines)


def in_words(sample: QuerySample) -> str:
    """Say of how many queries some were drawn."""
    of = sorted(set(sample.of.values()))
    there = str(of[0]) if len(of) == 1 else ", ".join(f"{count} ({name})" for name, count in sample.of.items())
    return f"a sample: {sample.queries} queries of {there} drawn at random (seed {sample.seed}), the gallery is whole"


def class_table(result: DirectionResult) -> str:
    """Lay out the MAP of each class of queries."""
    table = [[result.name, "queries", "MAP", "chance"]]
    table += [[row.name, str(row.queries), f"{row.map:.4f}", f"{row.chance:.4f}"] for row in result.by_class]
    return "\n".join(_aligned(table))


def _rows(results: tuple[DirectionResult, ...]) -> Iterator[tuple[str, list[float], str]]:
    """Give name, value of each direction, and format."""
    records = [result.record() for result in results]

    def figures(*path: str) -> list[float]:
        found = (inner(record.figures, *path) for record in records)
        return [float("nan") if value is None else number(value) for value in found]

    def keys(*path: str) -> Iterator[str]:
        yield from nested(records[0].figures, *path)

    def with_chance(name: str, form: str, *path: str) -> Iterator[tuple[str, list[float], str]]:
        yield name, figures(*path), form
        if inner(records[0].figures, CHANCE_OF, *path) is not None:
            yield f"chance level of {name}", figures(CHANCE_OF, *path), form

    yield "MAP", [record.map for record in records], "{:.4f}"
    for place in (place_of(metric)[0] for metric in OTHER_GALLERIES):
        if place in keys():
            what = place.replace("_", " ")
            yield f"MAP, {what}", figures(place, "map"), "{:.4f}"
            yield f"chance level, {what}", figures(place, "chance"), "{:.4f}"
    yield "chance level of MAP", [record.chance for record in records], "{:.4f}"
    yield "tie rate", [record.tie_rate for record in records], "{:.2%}"
    for name, key in (("precision", "precision_at"), ("recall", "recall_at"), ("hit rate", "hit_rate_at")):
        for cutoff in keys(key):
            yield from with_chance(f"{name}@{cutoff}", "{:.4f}", key, cutoff)
    yield "MAP@R", figures("map_at_r"), "{:.4f}"
    for normalizer in keys("map_at"):
        for cutoff in keys("map_at", normalizer):
            yield from with_chance(f"MAP@{cutoff}, over {normalizer}", "{:.4f}", "map_at", normalizer, cutoff)
    yield from with_chance("median rank of the first relevant", "{:.1f}", "median_rank")
    yield from with_chance("mean rank of the first relevant", "{:.1f}", "mean_rank")
    if "running_map" in keys():
        yield from with_chance("running MAP (not MAP: see --help)", "{:.4f}", "running_map")
    for name in keys("metrics"):
        yield from with_chance(name, "{:.4f}", "metrics", name)


def _counts(result: DirectionResult) -> str:
    left = f" ({result.without_relevant} more have nothing relevant)" if result.without_relevant else ""
    return f"{result.name}: {len(result.ids)} queries{left} against {result.gallery}"


def _aligned(table: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    ]
