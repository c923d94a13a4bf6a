"""Scores of a trained model under a named protocol; scores of a run on its own data are added to the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.relevance import check_relevance
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.atomic import remove_leftovers
from aadml.feature_extraction.ground.consent import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.json_values import to_bytes
from aadml.feature_extraction.ground.strings import listed
from aadml.model.model import Model
from aadml.protocols.evaluation import evaluate_under
from aadml.protocols.protocol import Subject
from aadml.retrieval import Evaluation
from aadml.retrieval import evaluate as evaluate_embeddings
from aadml.retrieval.embeddings_file import check_once, read_embeddings
from aadml.retrieval.judgments import chosen_relevance
from aadml.retrieval.metric_names import Gallery
from aadml.runs.data import relevance_name, with_relevance
from aadml.runs.loading import Run, load, load_run
from aadml.runs.manifest import EVALUATION
from aadml.runs.model_data import Note, nonempty_split, read_for
from aadml.runs.prepare import clips_to_fit, untrained_model
from aadml.runs.run_names import evaluation_file
from aadml.runs.store import open_run


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `aadml.retrieval.evaluate`."""

    similarity: str | None = None
    once: tuple[str, ...] | None = None
    precision: str = "float32"
    gallery: Gallery = "full"
    extra: tuple[str, ...] = ()
    queries: int | None = None
    query_seed: int = 0

    def changed(self) -> list[str]:
        """Return the values that differ from their defaults, for a file name."""
        options = (f for f in fields(self) if f.name not in ("extra", "queries", "query_seed"))
        values = [str(getattr(self, f.name)) for f in options if getattr(self, f.name) != f.default]
        sample = [] if self.queries is None else [f"queries-{self.queries}-seed-{self.query_seed}"]
        return [*values, *self.extra, *sample]


FULL = Options()


@with_consent("model", "embeddings", "data")
def evaluate(
    model: Model | str | Path | None = None,
    *,
    embeddings: Embeddings | str | Path | None = None,
    data: str | Path | Splits | Clips | None = None,
    split: str | None = None,
    protocol: str | None = None,
    allow_other_features: bool = False,
    similarity: str | None = None,
    metrics: Sequence[str] | str | None = (),
    relevance: str | Path | None = None,
    once: Sequence[str] | str | None = (),
    precision: str = "float32",
    exclude_partner: bool = False,
    disjoint: bool = False,
    queries: int | None = None,
    query_seed: int = 0,
    trust_code: bool = False,
    on_note: Note | None = None,
) -> Evaluation:
    """Score a model or external embeddings: every query ranks the whole gallery, and ties count by expectation.

    Args:
        model: a model, or the path of a run or a model folder.
        embeddings: embeddings, or a file of them, instead of a model.
        data: data to score; None for the training data of a run. All of `Clips` are scored.
        split: "train", "valid" or "test"; None is test, or all clips of `Clips` or an embeddings file without splits.
        protocol: a key of PROTOCOLS, or several leaks joined by "+"; None is the model's own. For embeddings, the name
            of the protocol under which they were made: they are scored unchanged.
        allow_other_features: score features of a different extractor than that of the training features.
        similarity: similarity to use instead of that of the embeddings.
        metrics: further metrics of `aadml list metrics` ("recall@3").
        relevance: relevance rule: "own" (partner), "label", "labels", "labels-graded", or a file of judgments; None
            for the rule of the run or the data.
        once: modalities of external embeddings that have one row per caption; one row per label is ranked.
        precision: precision of the scores, "float32" or "float64"; scores that are equal in it are ties.
        exclude_partner: remove each query's own clip from the gallery and from the relevant items.
        disjoint: halve the clips by one fixed draw, class by class if there are classes; queries of each half rank the
            other half.
        queries: number of queries in each direction, drawn at random, each against the whole gallery; None for all.
        query_seed: seed of the draw of queries.
        trust_code: import the code from outside aadml that the model names as `module:name`.
        on_note: called with notes for the user.

    Returns:
        The evaluation. The evaluation of a run on its own data is added to the run as
        `evaluations/<protocol>-<split>.json`, with changed similarity, metrics, precision, gallery and sample in the
        name.

    Raises:
        InputError: the arguments contradict each other, there are no clips to score, there are fewer than two queries
            or more queries than clips, or the split or protocol is unknown.

    Example:
        >>> model = aadml.fit("synthetic:ave", method="cca")
        >>> evaluation = aadml.evaluate(model, data="synthetic:ave", split="valid")
        >>> evaluation.split, [direction.name for direction in evaluation.directions]
        ('valid', ['audio-visual', 'visual-audio'])
    """
    note = on_note or (lambda message: None)
    if exclude_partner and disjoint:
        raise InputError(
            "evaluate: exclude_partner and disjoint given; disjoint separates partners, so pass only disjoint"
        )
    options = Options(
        similarity=similarity, once=listed(once) or None, precision=precision, extra=listed(metrics), queries=queries,
        query_seed=query_seed, gallery="without-partner" if exclude_partner else "disjoint" if disjoint else "full",
    )  # fmt: skip
    if (model is None) == (embeddings is None):
        raise InputError("evaluate: pass either a model (a run, a model folder) or embeddings")
    if model is not None and options.once:
        raise InputError("evaluate: once applies only to embeddings; leave it out for a model")
    if data is not None and model is None:
        raise InputError("evaluate: data applies only to a model; leave it out for embeddings")
    if allow_other_features and (model is None or data is None):
        raise InputError("evaluate: allow_other_features applies only to a model on other data; pass data as well")
    rule = relevance_name(relevance)
    if model is None:
        return _of_embeddings(embeddings, split, protocol, note, options, rule)
    if data is None and not isinstance(model, Model):
        run, split = Path(model), split or "test"
        return evaluate_under_each(run, [protocol], split=split, options=options, relevance=rule, on_note=note)[0]
    if data is None:
        raise InputError("evaluate: a model in memory needs data; pass data=")
    loaded = model if isinstance(model, Model) else load(model)
    if isinstance(data, Clips) and split is not None:
        raise InputError(f"evaluate: split '{split}' given, but all of the Clips are scored; leave out split")
    source = _as_test_split(data) if isinstance(data, Clips) else data
    splits = read_for(loaded, source, allow_other_features=allow_other_features, on_note=note)
    subject = Subject(loaded, with_relevance(splits, rule))
    evaluation = _scored(subject, protocol or loaded.facts.protocol, split or "test", options)
    return replace(evaluation, split="all") if isinstance(data, Clips) else evaluation


def _as_test_split(clips: Clips) -> Splits:
    empty = clips.select(torch.arange(0))
    return Splits(empty, empty, clips)


def subject_of(run: Run) -> Subject:
    """Return a run as the subject of protocols, which train its config again."""

    def retrain(changed: Splits) -> Model:
        model = untrained_model(run.config, changed, chosen_device(run.config.common.device, "config"))
        model.method.fit(*clips_to_fit(model, changed))
        return model

    return Subject(run.model, run.splits, retrain)


def _of_embeddings(
    embeddings: Embeddings | str | Path | None, split: str | None, protocol: str | None, note: Note, options: Options,
    relevance: str | None,
) -> Evaluation:  # fmt: skip
    if isinstance(embeddings, Embeddings):
        vectors, chosen = embeddings, split or "all"
    else:
        assert embeddings is not None
        search_beside(Path(embeddings))
        vectors, chosen = read_embeddings(embeddings, split, note)
        if split and chosen == "all":
            note(f"{embeddings}: has no 'split', so all its {len(vectors)} clips are scored")
    if relevance is not None:
        vectors = replace(vectors, relevance=chosen_relevance(relevance))
        check_relevance(vectors.relevant, vectors, "the embeddings")
    check_once(vectors, options.once or ())
    if protocol:
        note(f"protocol {protocol}: describes how the embeddings were made; they are scored unchanged")
    return evaluate_embeddings(vectors, protocol=protocol or "unstated", split=chosen, **vars(options))


def evaluate_under_each(
    folder: Path,
    protocols: Sequence[str | None],
    *,
    split: str = "test",
    options: Options = FULL,
    relevance: str | None = None,
    on_note: Note | None = None,
) -> list[Evaluation]:
    """Score a run on its own data under several protocols, and add the evaluations to the run.

    Args:
        folder: folder of the run.
        protocols: keys of PROTOCOLS, or leaks joined by "+"; None is the protocol of the run.
        split: split to score.
        options: options of the evaluation.
        relevance: relevance rule; None for the rule of the run.
        on_note: called with notes for the user.

    Raises:
        InputError: the folder is not a trained run, or a protocol cannot score it.
    """
    run = load_run(folder)
    subject, facts = subject_of(run), run.model.facts
    if relevance is not None:
        subject = replace(subject, splits=with_relevance(run.splits, relevance))
    changed = [*options.changed(), *([] if relevance is None else [f"relevance-{relevance}"])]
    evaluations = [_scored(subject, protocol or facts.protocol, split, options) for protocol in protocols]
    records = {
        evaluation_file(e.protocol, split, *changed): replace(e.record(), label=facts.label, seed=facts.seed)
        for e in evaluations
    }
    files = {name: to_bytes(record.to_json()) for name, record in records.items()}
    add_to_run(folder, files, on_note or (lambda message: None))
    return evaluations


def add_to_run(folder: Path, files: Mapping[str, bytes], note: Note) -> None:
    """Add files to a run, if it is finished; note an error if the folder cannot be written."""
    try:
        with open_run(folder, wait=True) as store:
            if EVALUATION in store.manifest.files:
                for name in files:
                    remove_leftovers(folder / name)
                store.commit(files, flush=True)
    except InputError as error:
        note(f"warning: not added to the run: {error}")


def _scored(subject: Subject, protocol: str, split: str, options: Options) -> Evaluation:
    clips = nonempty_split(subject.splits, split)
    evaluation = evaluate_under(subject, protocol, split=split, **vars(options))
    if clips.class_names != subject.encoder.class_names:
        return replace(evaluation, label_space={})  # its dimensions belong to other classes
    return evaluation
