"""The page of a run, one self-contained HTML file: a summary, figures, tables, and clips with players."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.embeddings import Embeddings
from aadml.comparison.relevance import LABEL
from aadml.configuration.config import Config
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.atomic import refuse_links, refuse_other_kind, write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.figures import svg
from aadml.methods.training.session import Record
from aadml.model.facts import Facts
from aadml.model.model import Model
from aadml.protocols.audit import Finding
from aadml.reports import figures, page, players
from aadml.reports import queries as queries_part
from aadml.reports.page import Fact, Section
from aadml.reports.tables import Table
from aadml.retrieval.evaluation import evaluate
from aadml.retrieval.frame_word import FRAME_WORD
from aadml.retrieval.record import EvaluationRecord
from aadml.retrieval.results import Evaluation
from aadml.retrieval.summary import RELEVANCE_IN_WORDS, in_words
from aadml.runs.data import with_complete_clusters
from aadml.runs.environment import Environment, read_environment
from aadml.runs.loading import failed_checks, load, load_run, read_evaluation
from aadml.runs.manifest import newest_run
from aadml.runs.model_data import nonempty_split, read_for
from aadml.runs.run_names import file_name
from aadml.runs.session import read_records

MAP_POINTS = 1500
REPORT = "report.html"
LARGEST = 9_500_000
"""Largest number of characters of a page; further media are left out."""


@with_consent("run", "data")
def write_report(
    run: str | Path,
    *,
    data: str | Path | None = None,
    media: str | Path | None = None,
    output: str | Path | None = None,
    allow_other_features: bool = False,
    queries: int | None = None,
    trust_code: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> Path:
    """Write the page of a finished run, or of its model on other data.

    Args:
        run: a finished run folder, or a model folder, which needs `data`.
        data: data whose test clips are reported, instead of the data of the run.
        media: manifest with the media of the clips, for pictures and players; by default manifest.csv next to the
            features.
        output: path of the page; by default `report.html` in the folder of `run`, or `report-NAME.html` for data NAME.
        allow_other_features: accept features of a different extractor than that of the training features.
        queries: number of queries of each direction, drawn at random; by default all test clips.
        trust_code: import the code from outside aadml that the run names as `module:name`.
        on_note: called with notes for the user.

    Returns:
        The path of the page.

    Raises:
        InputError: an unfinished run, data that cannot be used or contain no test clips, an argument that does not
            apply, a missing matplotlib, a file of another kind at the output, or a symbolic link as the page in the
            folder of `run`.
    """
    folder = newest_run(Path(run))
    if allow_other_features and data is None:
        raise InputError(
            "report: allow_other_features applies only to data other than those of the run; pass data as well"
        )
    name = REPORT if data is None else f"report-{file_name(Path(shown_address(data)).stem)}.html"
    target = Path(output) if output else folder / name
    if not output:
        refuse_links(target)
    refuse_other_kind(target, "a page", page.is_page)
    if data is None:
        opened = load_run(folder)
        model, splits, place = opened.model, opened.splits, opened.config.data
        verdicts, records = read_evaluation(folder).verdicts or [], read_records(folder)
        kind = f"Run report, seed {model.facts.seed}"
        last = _provenance(opened.config, read_environment(folder))
    else:
        model, place, verdicts, records = load(folder), str(data), [], []
        splits = read_for(model, data, allow_other_features=allow_other_features, on_note=on_note)
        kind = f"Report of a model of {model.facts.data.name}"
        last = Section("The model", page.preformatted(model.card()))
    splits = with_complete_clusters(splits, "test")
    embeddings = replace(model.embed_clips(nonempty_split(splits, "test")), clusters=splits.clusters)
    evaluation = evaluate(embeddings, protocol=model.facts.protocol, split="test", queries=queries)
    summary = _summary(evaluation, model, failed_checks(folder), verdicts, splits.notes)
    parts = [_training(records, model.facts), _scope(evaluation), _classes(evaluation, embeddings)]
    taken = len(summary) + sum(len(part.content) for part in (*parts, last))
    clips = players.find_media(Path(media) if media else None, place)
    shown, played = queries_part.queries(embeddings, evaluation, clips, LARGEST - taken, on_note=on_note)
    sections = [*parts, shown, last]
    write_text(target, page.document(_title(model.facts, data), kind, summary, sections, played.media()))
    return target


def _title(facts: Facts, data: str | Path | None) -> str:
    """Return the title of a report: data, method and, if the method has a loss, the loss."""
    method = facts.method.name
    loss = facts.label.removeprefix(method).removeprefix("-")
    trained = f"{method} with loss {loss}" if loss else method
    return f"{Path(shown_address(data)).name if data else facts.data.name}: {trained}"


def _summary(
    evaluation: Evaluation, model: Model, failed: Sequence[Finding], verdicts: Sequence[str], notes: Sequence[str]
) -> str:
    record, facts = evaluation.record(), model.facts
    times = f"{evaluation.map_mean / evaluation.chance:.1f} times chance" if evaluation.chance else ""
    directions = "both" if len(record.directions) == 2 else "all"
    shown = [
        Fact(f"test MAP, mean of {directions} directions", f"{evaluation.map_mean:.3f}", times),
        Fact("chance", f"{evaluation.chance:.3f}", "MAP of a random order"),
        *(
            Fact(f"MAP {name}", f"{scores.map:.3f}", "95 % interval {:.3f} to {:.3f}".format(*scores.map_interval))
            for name, scores in record.directions.items()
        ),
    ]
    verdict, rule = _verdict(record), evaluation.relevance
    units = f"{len(evaluation.directions[0].units)} clusters" if evaluation.clustered else "test sets"
    remarks = [
        *([verdict] if failed else []),
        f"Protocol {evaluation.protocol}: every item is embedded independently, and every query ranks the whole "
        f"gallery, including its own clip{_without_partner(record)}. Items are compared by {evaluation.similarity}; "
        f"ties count by exact expectation (tie rate {evaluation.tie_rate:.2%}).",
        *([] if rule == LABEL.name else [f"A relevant result is {RELEVANCE_IN_WORDS[rule]}."]),
        *([] if evaluation.sample is None else [f"The queries are {in_words(evaluation.sample)}."]),
        *([] if facts.selected_epoch is None else [_epoch(model)]),
        f"The scores are those of one training run. Intervals are over {units}, not over seeds.",
        f"Audit for leaks: {model.audit or 'not audited; run aadml audit RUN'}.",
        *notes,
    ]
    warnings = [f"{verdict}." for verdict in verdicts]
    alarm = [
        f"The audit failed: {', '.join(finding.check for finding in failed)}. These scores may come from a leak.",
        *(f"{finding.check}: {finding.evidence}." for finding in failed),
    ]
    summary = page.summary(shown, verdict="" if failed else verdict, warnings=warnings, alarm=alarm if failed else ())
    return summary + page.drawings([page.table(_scores(evaluation)), page.notes(remarks)])


def _without_partner(record: EvaluationRecord) -> str:
    score = record.figure("map-without-partner")
    return "" if score is None else f" (MAP {score:.3f} without that clip)"


def _verdict(record: EvaluationRecord) -> str:
    """Return a sentence that compares the results with a random order."""
    groups: dict[str, list[str]] = {}
    for name, scores in record.directions.items():
        low, high = scores.map_interval
        is_certain = low > scores.chance or high < scores.chance
        words = ("better than" if low > scores.chance else "worse than") if is_certain else "not distinguishable from"
        groups.setdefault(words, []).append(name)
    if len(groups) == 1:
        (words,) = groups
        return f"The scores are {words} chance in every direction, by the 95 % intervals over test sets."
    parts = [f"{words} chance in {_enumerated(names)}" for words, names in groups.items()]
    return f"The scores are {_enumerated(parts)}, by the 95 % intervals over test sets."


def _enumerated(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _epoch(model: Model) -> str:
    facts, total = model.facts, len(model.records())
    chosen = "the last epoch" if facts.training.select == "last" else "chosen on the validation clips, never on test"
    return f"The weights are those of epoch {facts.selected_epoch}{f' of {total}' if total else ''}, {chosen}."


def _scores(evaluation: Evaluation) -> Table:
    cutoffs = sorted({k for result in evaluation.directions for k in result.cutoffs})  # galleries may differ in size
    names = ["MAP", "MAP, worst order of ties", "MAP, best order of ties", "chance", "queries", "gallery"]
    precisions = [f"precision@{k}" for k in cutoffs]
    directions = evaluation.record().directions
    columns = [
        [of.map, *of.map_bounds, of.chance, of.queries, of.gallery, *(of.figure(name) for name in precisions)]
        for of in directions.values()
    ]
    rows = zip([*names, *precisions], *columns, strict=True)
    return Table(("metric", *directions), tuple(rows), "Scores of each direction")


def _training(records: Sequence[Record], facts: Facts) -> Section:
    drawn = figures.training_curves(records, facts.selected_epoch)
    panels = [page.drawing(curve, f"{name} over {len(records)} epochs") for name, curve in drawn.items()]
    return Section("Training", page.drawings(panels))


def _scope(evaluation: Evaluation) -> Section:
    if any(len(result.curves.scope.cutoffs) < 2 for result in evaluation.directions):
        return Section("Scope", "")
    panels = [
        page.drawing(svg(evaluation.plot_scope(name)), f"{name} among the first K results, one line per direction")
        for name in ("precision", "recall")
    ]
    note = "The AADML paper plots precision@K as precision-scope@K; its text describes recall@K."
    return Section("Scope", page.drawings(panels), [note])


def _classes(evaluation: Evaluation, embeddings: Embeddings) -> Section:
    chance = {row.name: row.chance for result in reversed(evaluation.directions) for row in result.by_class}
    if not chance:
        return Section("Classes", "")
    by_class = {result.name: {row.name: row.map for row in result.by_class} for result in evaluation.directions}
    names = list(dict.fromkeys(name for scores in by_class.values() for name in scores))
    values = {name: [scores.get(of_class, float("nan")) for of_class in names] for name, scores in by_class.items()}
    bars = figures.class_bars(names, values, [chance[name] for name in names])
    drawn = page.drawing(bars, f"MAP of the queries of each of {len(names)} classes", "MAP by class of the query.")
    maps = [] if embeddings.similarity == FRAME_WORD else [_map(embeddings)]  # sequences are not points
    return Section("Classes", page.drawings([drawn, *maps]))


def _map(embeddings: Embeddings) -> str:
    """Draw the embeddings of all modalities in one plane."""
    count = min(len(embeddings), MAP_POINTS // len(embeddings.vectors))
    drawn = np.sort(np.random.default_rng(0).permutation(len(embeddings))[:count])
    rows = {
        m: drawn[embeddings.present[m].numpy()[drawn]] if m in embeddings.present else drawn for m in embeddings.vectors
    }
    parts = {m: embeddings.of(m, torch.from_numpy(places)).double().numpy() for m, places in rows.items()}
    if embeddings.similarity == "cosine":
        parts = {m: v / np.linalg.norm(v, axis=1, keepdims=True).clip(1e-12) for m, v in parts.items()}
    plane, caption = _plane(np.concatenate(list(parts.values())))
    ends = np.cumsum([len(places) for places in rows.values()])[:-1]
    points: dict[str, NDArray[np.float64]] = dict(zip(parts, np.split(plane, ends), strict=True))
    labels = {m: embeddings.labels.numpy()[places] for m, places in rows.items()}
    figure = figures.class_map(points, labels, embeddings.class_names)
    return page.drawing(figure, f"Map of {count} clips: color is the class, shape the modality", caption)


def _plane(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Project vectors (n, d) to a plane (n, 2) by t-SNE, or by PCA for n below 30; also return a caption."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if len(vectors) < 30:
        caption = "Map of the embeddings: the first two principal components of all modalities together."
        return np.asarray(PCA(2).fit_transform(vectors)), caption
    projection = TSNE(2, perplexity=min(30.0, len(vectors) / 5), init="pca", random_state=0, max_iter=500)
    return np.asarray(projection.fit_transform(vectors)), (
        "Map of the embeddings: t-SNE of all modalities together. Neighboring points are similar; long distances have "
        "no meaning."
    )


def _provenance(config: Config, environment: Environment) -> Section:
    versions = ", ".join(f"{name} {version}" for name, version in environment.versions.items() if version)
    rows = [
        ("data", f"{environment.data.name} (SHA-256 {environment.data.sha256[:16]}...)"),
        ("clips", ", ".join(f"{count} {split}" for split, count in environment.clips.items())),
        ("commit", str(environment.commit or "not in a repository")),
        ("device", f"{environment.device} ({environment.device_name}, {environment.threads} threads)"),
        ("versions", versions),
    ]
    return Section("How the run was made", page.properties(rows) + page.details("config.yaml", config.shown.yaml()))
