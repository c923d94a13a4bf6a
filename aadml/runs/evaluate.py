"""Scores of a trained model under a named protocol; those of a run's own data are kept beside the run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.embeddings import Embeddings
from aadml.comparison.relevance import check_relevance
from aadml.configuration.config import Config
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
from aadml.runs.loading import load, load_run
from aadml.runs.manifest import EVALUATION, is_run
from aadml.runs.model_data import matched_to_model, nonempty_split, read_for
from aadml.runs.prepare import clips_to_fit, untrained_model
from aadml.runs.run_names import evaluation_file
from aadml.runs.store import open_run

Note = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How embeddings are scored; see `aadml.retrieval.evaluate`."""

    similarity: str | None = None
    once: tuple[str, ...] | None = None
    precision: str = "float32"
    gallery: Gallery = "full"
    extra: tuple[str, ...] = ()
    queries: int | None = None
    query_seed: int = 0

    def changed(self) -> list[str]:
        """Name what is not as it is by default, for the name of a file."""
        apart = ("extra", "queries", "query_seed")
        plain = [one.name for one in fields(self) if one.name not in apart and getattr(self, one.name) != one.default]
        sample = [] if self.queries is None else [f"queries-{self.queries}-seed-{self.query_seed}"]
        return [*(str(getattr(self, name)) for name in plain), *self.extra, *sample]


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
    """Score a model, or embeddings made elsewhere: every query ranks the whole gallery, ties count by expectation.

    Args:
        model: a model, or the path of a run or a model folder.
        embeddings: instead of a model: embeddings, or a file of them.
        data: what is scored; None takes the data that a run was trained on. `Clips` are scored whole.
        split: "train", "valid" or "test"; None is test, and all of `Clips` or an embeddings file without splits.
        protocol: a key of PROTOCOLS, or several leaks joined by "+"; None is the model's own. Of embeddings, whatever
            they were made under: nothing is done to them.
        allow_other_features: score features of another extractor than the model was trained on.
        similarity: instead of the one that belongs to the embeddings.
        metrics: further ones of `aadml list metrics` ("recall@3").
        relevance: what is relevant: "own" (partner), "label", "labels", "labels-graded", or a file of judgments; None
            leaves it to the run, or to the data.
        once: modalities of embeddings made elsewhere of which one row a label is ranked, where a clip has a row per
            caption.
        precision: of the scores, "float32" or "float64": scores equal in it are ties.
        exclude_partner: take each query's own clip out of the gallery and out of what is relevant.
        disjoint: halve the clips, by class where there are classes and by one fixed draw; each half asks the other.
        queries: how many ask in each direction, drawn at random, each of the whole gallery; None lets all ask.
        query_seed: of that draw.
        trust_code: import the code from outside aadml that the model names as `module:name`.
        on_note: called with notes for the user.

    Returns:
        The evaluation. That of a run on its own data is kept in it as `evaluations/<protocol>-<split>.json`;
        similarity, metrics, precision, gallery and sample are part of the name, so that no score is taken for another.

    Raises:
        InputError: neither or both of model and embeddings, both galleries, nothing to score, fewer than two queries or
            more than there are, or an unknown split or protocol.

    Example:
        >>> model = aadml.fit("synthetic:ave", method="cca")
        >>> found = aadml.evaluate(model, data="synthetic:ave", split="valid")
        >>> found.split, [direction.name for direction in found.directions]
        ('valid', ['audio-visual', 'visual-audio'])
    """
    note = on_note or (lambda message: None)
    gallery = _gallery(exclude_partner, disjoint)
    options = Options(
        similarity=similarity, once=listed(once) or None, precision=precision, gallery=gallery, extra=listed(metrics),
        queries=queries, query_seed=query_seed,
    )  # fmt: skip
    if (model is None) == (embeddings is None):
        raise InputError("evaluate: give either a model (a run, a model folder) or embeddings")
    _refuse_idle(options, of_model=model is not None, with_data=data is not None, any_features=allow_other_features)
    rule = relevance_name(relevance)
    if model is None:
        return _of_embeddings(embeddings, split, protocol, note, options, rule)
    whole = isinstance(data, Clips)
    if isinstance(data, Clips):
        data = _of_clips(data, split)
    split = split or "test"
    if data is None and not isinstance(model, Model):
        return _of_run(Path(model), split, protocol, note, options, rule)
    if data is None:
        raise InputError("evaluate: a model in memory needs data; give data=")
    loaded = model if isinstance(model, Model) else load(model)
    if isinstance(data, Splits):
        splits = matched_to_model(loaded, data, allow_other_features=allow_other_features, on_note=note)
    else:
        splits = read_for(loaded, data, allow_other_features=allow_other_features, on_note=note)
    splits = with_relevance(splits, rule)
    found = _scored(Subject(loaded, splits), protocol or loaded.facts.protocol, split, options)
    return replace(found, split="all") if whole else found


def _refuse_idle(options: Options, *, of_model: bool, with_data: bool, any_features: bool) -> None:
    """Refuse what was given and would change nothing."""
    if of_model and options.once:
        raise InputError("evaluate: once is for embeddings; a model knows what stands in several rows")
    if with_data and not of_model:
        raise InputError("evaluate: data is for a model; embeddings are scored as they are")
    if any_features and not (of_model and with_data):
        raise InputError("evaluate: allow_other_features is for a model on other data than its own; give data too")


def _of_clips(clips: Clips, split: str | None) -> Splits:
    """Lay out clips that are scored whole."""
    if split is not None:
        raise InputError(f"evaluate: split '{split}' given, but Clips have none: they are scored whole")
    none = clips.select(torch.arange(0))
    return Splits(none, none, clips)


def _gallery(exclude_partner: bool, disjoint: bool) -> Gallery:
    if exclude_partner and disjoint:
        raise InputError("evaluate: of disjoint halves, one holds the query and its partner; give --disjoint alone")
    if exclude_partner:
        return "without-partner"
    return "disjoint" if disjoint else "full"


def subject_of(config: Config, splits: Splits, model: Model) -> Subject:
    """Lay out a run for the protocols; training again is done by the run's own config."""

    def retrain(changed: Splits) -> Model:
        again = untrained_model(config, changed, chosen_device(config.common.device, "config"))
        again.method.fit(*clips_to_fit(again, changed))
        return again

    return Subject(model, splits, retrain)


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
        note(f"protocol {protocol}: taken as how the embeddings were made; they are scored as they are")
    return evaluate_embeddings(vectors, protocol=protocol or "unstated", split=chosen, **vars(options))


def _of_run(
    folder: Path, split: str, protocol: str | None, note: Note, options: Options, relevance: str | None
) -> Evaluation:
    run = load_run(folder)
    protocol = protocol or run.model.facts.protocol
    splits = run.splits if relevance is None else with_relevance(run.splits, relevance)
    evaluation = _scored(subject_of(run.config, splits, run.model), protocol, split, options)
    chosen = [] if relevance is None else [f"relevance-{relevance}"]
    add_to_run(
        folder, {evaluation_file(protocol, split, *options.changed(), *chosen): _kept(evaluation, run.model)}, note
    )
    return evaluation


def evaluate_under_each(
    folder: Path, protocols: Sequence[str], *, split: str = "test", on_note: Note | None = None
) -> None:
    """Score a run on its own data under several protocols, and keep what comes out beside the run.

    Args:
        folder: of the run.
        protocols: keys of PROTOCOLS.
        split: that is scored.
        on_note: called with a note for the user.

    Raises:
        InputError: not a trained run, or a protocol that it cannot be scored under.
    """
    run = load_run(folder)
    subject = subject_of(run.config, run.splits, run.model)
    files = {
        evaluation_file(one, split): _kept(_scored(subject, one, split, Options()), run.model) for one in protocols
    }  # fmt: skip
    add_to_run(folder, files, on_note or (lambda message: None))


def _kept(evaluation: Evaluation, model: Model) -> bytes:
    record = replace(evaluation.record(), label=model.facts.label, seed=model.facts.seed)
    return to_bytes(record.to_json())


def add_to_run(folder: Path, files: Mapping[str, bytes], note: Note) -> None:
    """Add files to a finished run; where the folder cannot be written, say so and go on."""
    if not is_run(folder):
        return
    try:
        with open_run(folder, wait=True) as store:
            if EVALUATION in store.manifest.files:
                for name in files:
                    remove_leftovers(folder / name)
                store.commit(files, flush=True)
    except InputError as error:
        note(f"warning: not kept in the run: {error}")


def _scored(subject: Subject, protocol: str, split: str, options: Options) -> Evaluation:
    clips = nonempty_split(subject.splits, split)
    evaluation = evaluate_under(subject, protocol, split=split, **vars(options))
    if clips.class_names != subject.encoder.class_names:
        return replace(evaluation, label_space={})  # its dimensions stand for other classes
    return evaluation
