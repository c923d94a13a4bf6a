"""An evaluation as a table for people."""

from collections.abc import Iterator

from aadml.retrieval.metric_names import OTHER_GALLERIES, Gallery, place_of
from aadml.retrieval.results import DirectionResult, Evaluation

GALLERY_IN_WORDS: dict[Gallery, str] = {
    "full": "full: every clip, the query's own included",
    "without-partner": "without-partner: every clip but the query's own",
    "disjoint": "disjoint: the half of the clips that the query is not of, both halves in turn",
}


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
            bounds = ["{:.4f}..{:.4f}".format(*result.map_bounds) for result in results]
            table.insert(i + 1, ["MAP, worst..best order of ties", *bounds, *("" for _ in mean)])
            break
    lines = [f"protocol {evaluation.protocol}, split {evaluation.split}, similarity {evaluation.similarity}"]
    lines += [f"gallery {GALLERY_IN_WORDS[evaluation.gallery]}"]
    lines += ["; ".join(_counts(result) for result in results), "", *_aligned(table)]
    if evaluation.label_space:
        known = (f"{m} {accuracy:.4f} ({loss:.3f} nats)" for m, (accuracy, loss) in evaluation.label_space.items())
        lines += ["", f"accuracy (log-loss) of one modality alone, read as label space: {', '.join(known)}"]
    return "\n".join(lines)


def class_table(result: DirectionResult) -> str:
    """Lay out the MAP of each class of queries."""
    table = [[result.name, "queries", "MAP", "chance"]]
    table += [[row.name, str(row.queries), f"{row.map:.4f}", f"{row.chance:.4f}"] for row in result.by_class]
    return "\n".join(_aligned(table))


def _rows(results: tuple[DirectionResult, ...]) -> Iterator[tuple[str, list[float], str]]:
    """Give name, value of each direction, and format."""
    figures = [result.record().to_json() for result in results]
    for name, key, form in (
        ("MAP", "map", "{:.4f}"),
        ("chance level of MAP", "chance", "{:.4f}"),
        ("tie rate", "tie_rate", "{:.2%}"),
    ):
        yield name, [figure[key] for figure in figures], form
        if key == "map":
            for place in (place_of(metric)[0] for metric in OTHER_GALLERIES):
                if place in figures[0]:
                    what = place.replace("_", " ")
                    yield f"MAP, {what}", [figure[place]["map"] for figure in figures], form
                    yield f"chance level, {what}", [figure[place]["chance"] for figure in figures], form
    for name, key in (("precision", "precision_at"), ("recall", "recall_at"), ("hit rate", "hit_rate_at")):
        for cutoff in figures[0][key]:
            yield f"{name}@{cutoff}", [figure[key].get(cutoff, float("nan")) for figure in figures], "{:.4f}"
    yield "MAP@R", [figure["map_at_r"] for figure in figures], "{:.4f}"
    for normalizer, values in figures[0].get("map_at", {}).items():
        for cutoff in values:
            value = [figure["map_at"][normalizer].get(cutoff, float("nan")) for figure in figures]
            yield f"MAP@{cutoff}, over {normalizer}", value, "{:.4f}"
    yield "median rank of the first relevant", [figure["median_rank"] for figure in figures], "{:.1f}"
    yield "mean rank of the first relevant", [figure["mean_rank"] for figure in figures], "{:.1f}"
    if "running_map" in figures[0]:
        yield "running MAP (not MAP: see --help)", [figure["running_map"] for figure in figures], "{:.4f}"
    for name in figures[0].get("metrics", {}):
        yield name, [figure["metrics"][name] for figure in figures], "{:.4f}"


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
