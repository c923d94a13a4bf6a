"""One self-contained HTML page about a run: figures, tables, and clips one can play."""

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.types import Embeddings
from aadml.configuration.config import Config
from aadml.model.facts import Facts
from aadml.model.model import Model
from aadml.reports import figures
from aadml.reports.gallery import Gallery, find_gallery
from aadml.reports.page import document, section, table
from aadml.retrieval import DirectionResult, Evaluation, evaluate, score_source
from aadml.runs.environment import Environment, read_environment
from aadml.runs.later_data import not_empty, read_for
from aadml.runs.loading import load, load_run, read_evaluation
from aadml.runs.train import read_records
from feature_extraction.ground.atomic import write_text

QUERIES = 6
RESULTS = 6
MAP_POINTS = 1500
REPORT = "report.html"


def write_report(
    run: str | Path,
    *,
    data: str | Path | None = None,
    media: str | Path | None = None,
    output: str | Path | None = None,
    allow_other_features: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> Path:
    """Write the page of a finished run, or of a model on data of its own.

    Args:
        run: a finished run folder, or a model folder, which needs `data`.
        data: report on the test clips of this data instead of those of the run.
        media: the manifest of the clips, for thumbnails and players; by default a `manifest.csv` beside the features.
        output: where to; by default `report.html` in the folder, or `report-NAME.html` for data called NAME.
        allow_other_features: take features of another extractor than the model was trained on.
        on_note: called with notes for the user.

    Returns:
        The page's path.

    Raises:
        InputError: not a finished run, its data are gone, or matplotlib is not installed.
    """
    folder = Path(run)
    if data is None:
        opened, verdicts = load_run(folder), read_evaluation(folder).verdicts or []
        model, splits, place = opened.model, opened.splits, opened.config.data
    else:
        model, verdicts, place = load(folder), [], str(data)
        splits = read_for(model, data, allow_other_features=allow_other_features, on_note=on_note)
    embeddings = model.embed_clips(not_empty(splits, "test"))
    evaluation = evaluate(embeddings, protocol=model.facts.protocol, split="test")
    gallery = find_gallery(Path(media) if media else None, place)
    parts = [_summary(evaluation, model.facts, verdicts, splits.notes)]
    records = read_records(folder) if data is None else []
    if records:
        drawn = figures.training_curves(records, model.facts.selected_epoch)
        parts.append(section("Training", drawn, "The epoch was chosen on the validation clips, never on test."))
    parts += [_scope(evaluation), _classes(evaluation), _map(embeddings), _queries(embeddings, evaluation, gallery)]
    parts.append(_provenance(opened.config, read_environment(folder)) if data is None else _card(model))
    page = Path(output) if output else folder / (REPORT if data is None else f"report-{Path(data).stem}.html")
    write_text(page, document(f"{model.facts.label}, seed {model.facts.seed}", "".join(parts)))
    return page


def _summary(evaluation: Evaluation, facts: Facts, verdicts: Sequence[str], notes: Sequence[str]) -> str:
    rows = [
        [result.name, f"{result.map:.4f}", "{:.4f} .. {:.4f}".format(*result.map_bounds), f"{result.chance.mean():.4f}"]
        + [f"{value:.3f}" for value in result.curves.at(result.cutoffs).precision]
        for result in evaluation.directions
    ]
    cutoffs = evaluation.directions[0].cutoffs
    header = ["direction", "MAP", "worst .. best order of ties", "chance", *(f"precision@{k}" for k in cutoffs)]
    figure = f'<p class="figure">{evaluation.map_mean:.4f}<span>test MAP, mean of both directions</span></p>'
    remarks = [
        f"Protocol <b>{escape(evaluation.protocol)}</b>: every item embedded alone; the whole gallery ranked; ties by "
        f"exact expectation (tie rate {evaluation.tie_rate:.2%}); chance {evaluation.chance:.4f}; compared by "
        f"{escape(evaluation.similarity)}."
        + (
            ""
            if facts.selected_epoch is None
            else f" Epoch {facts.selected_epoch} of {facts.training.epochs}, chosen on validation clips."
        ),
        *(f"<b>Warning</b>: {escape(verdict)}." for verdict in verdicts),
        *(escape(note) for note in notes),
    ]
    return figure + "".join(f"<p>{remark}</p>" for remark in remarks) + table(header, rows)


def _scope(evaluation: Evaluation) -> str:
    precision, recall = {}, {}
    for result in evaluation.directions:
        scope = result.curves
        precision[result.name] = (scope.cutoffs.tolist(), scope.precision.tolist())
        recall[result.name] = (scope.cutoffs.tolist(), scope.recall.tolist())
    drawn = figures.curves(precision, x="K", y="precision@K") + figures.curves(recall, x="K", y="recall@K")
    note = "The AADML paper plots the first as precision-scope@K; its text describes the second."
    return section("Scope", f'<div class="pair">{drawn}</div>', note)


def _classes(evaluation: Evaluation) -> str:
    first = evaluation.directions[0]
    names = [row.name for row in first.by_class]
    values = {result.name: [row.map for row in result.by_class] for result in evaluation.directions}
    return section("By class", figures.class_bars(names, values, [row.chance for row in first.by_class]))


def _map(embeddings: Embeddings) -> str:
    """Both modalities in one plane: principal components first, then t-SNE where there are enough points."""
    count = min(len(embeddings), MAP_POINTS // len(embeddings.vectors))
    rows = np.sort(np.random.default_rng(0).permutation(len(embeddings))[:count])
    parts = {m: v.double().numpy()[rows] for m, v in embeddings.vectors.items()}
    if embeddings.similarity == "cosine":
        parts = {m: v / np.linalg.norm(v, axis=1, keepdims=True).clip(1e-12) for m, v in parts.items()}
    places = _plane(np.concatenate(list(parts.values())))
    points: dict[str, NDArray[np.float64]] = dict(zip(parts, np.split(places, len(parts)), strict=True))
    drawn = figures.class_map(points, embeddings.labels.numpy()[rows], embeddings.class_names)
    return section(
        "Map of the embeddings",
        drawn,
        "t-SNE of both modalities together: neighboring points are alike; long distances carry no meaning.",
    )


def _plane(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if len(vectors) < 30:
        return np.asarray(PCA(2).fit_transform(vectors))
    perplexity = min(30.0, len(vectors) / 5)
    return np.asarray(TSNE(2, perplexity=perplexity, init="pca", random_state=0, max_iter=500).fit_transform(vectors))


def _queries(embeddings: Embeddings, evaluation: Evaluation, gallery: Gallery) -> str:
    shown = "".join(_direction_queries(embeddings, result, gallery) for result in evaluation.directions)
    if gallery.media:
        note = (
            "Best, middling and worst queries of each direction with their first results; green is the query's class."
        )
    else:
        note = "No media at hand: give --media MANIFEST for thumbnails and players."
    return section("Queries and their results", shown, note)


def _direction_queries(embeddings: Embeddings, result: DirectionResult, gallery: Gallery) -> str:
    query, candidates = result.direction
    order = np.argsort(-result.average_precision, kind="stable")
    picks = order[np.unique(np.linspace(0, len(order) - 1, min(QUERIES, len(order))).round().astype(int))]
    row_of = {name: number for number, name in enumerate(embeddings.ids)}
    rows = np.array([row_of[result.ids[pick]] for pick in picks])
    source = score_source(
        embeddings.vectors[query][torch.from_numpy(rows)], embeddings.vectors[candidates], embeddings.similarity
    )
    scores = np.asarray(source.block(0, len(rows)))
    html = []
    for pick, row, line in zip(picks, rows, scores, strict=True):
        best = np.argsort(-line, kind="stable")[:RESULTS]
        label = int(embeddings.labels[row])
        cells = [_cell(embeddings, int(row), gallery, "query", f"AP {result.average_precision[pick]:.2f}")]
        for place, found in enumerate(best, 1):
            kind = "hit" if int(embeddings.labels[found]) == label else "miss"
            cells.append(_cell(embeddings, int(found), gallery, kind, f"{place}. {line[found]:.3f}"))
        html.append(f'<div class="row">{"".join(cells)}</div>')
    return f"<h3>{query} to {candidates}</h3>" + "".join(html)


def _cell(embeddings: Embeddings, row: int, gallery: Gallery, kind: str, caption: str) -> str:
    name = embeddings.class_names[int(embeddings.labels[row])]
    words = f"<figcaption>{escape(name)}<small>{escape(caption)}</small></figcaption>"
    return f'<figure class="{kind}">{gallery.show(embeddings.ids[row])}{words}</figure>'


def _card(model: Model) -> str:
    return section("The model", f"<pre>{escape(model.card())}</pre>")


def _provenance(config: Config, environment: Environment) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in environment.versions.items() if version)
    rows = [
        ["data", f"{environment.data.name} (SHA-256 {environment.data.sha256[:16]}...)"],
        ["clips", ", ".join(f"{count} {split}" for split, count in environment.clips.items())],
        ["commit", str(environment.commit)],
        ["device", f"{environment.device} ({environment.device_name}, {environment.threads} threads)"],
        ["versions", versions],
    ]
    settings = f"<details><summary>config.yaml</summary><pre>{escape(config.yaml())}</pre></details>"
    return section("How it was made", table(["", ""], rows) + settings)
