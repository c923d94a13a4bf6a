"""Scores of models and runs under named protocols. Scores of a run on its own data are added to the run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aadml.comparison.clips import Clips, Splits
from aadml.configuration.config import Config
from aadml.data.captions.several_texts import ranked_once
from aadml.data.splitting.shared_clips import copy_notes
from aadml.feature_extraction.ground.atomic import remove_leftovers
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import to_bytes
from aadml.feature_extraction.ground.strings import Note
from aadml.methods.training.session import Session
from aadml.model.model import Model
from aadml.protocols.evaluation import evaluate_under
from aadml.protocols.protocol import Subject
from aadml.retrieval.record import PerUnit
from aadml.retrieval.results import Evaluation
from aadml.runs.data import OF_RUN, Rules, load_splits, require_clusters, with_complete_clusters
from aadml.runs.evaluate import FULL, Options
from aadml.runs.loading import Run, load, load_run, read_audit, read_evaluation
from aadml.runs.manifest import EVALUATION
from aadml.runs.model_data import nonempty_split, read_for
from aadml.runs.prepare import prepare
from aadml.runs.run_names import evaluation_file
from aadml.runs.store import open_run
from aadml.runs.train import fit_model


def evaluate_model(
    model: Model | str | Path,
    data: str | Path | Splits | Clips | None,
    split: str | None,
    protocol: str | None,
    options: Options,
    rules: Rules,
    *,
    allow: bool,
    on_note: Note,
) -> Evaluation:
    """Score a model on `data`, or a run on its own data; see `aadml.evaluate`.

    Raises:
        InputError: a `Model` is passed without data, `split` is set for `Clips`, or the model or data cannot be read.
    """
    if isinstance(data, Clips):
        if split is not None:
            raise InputError(f"evaluate: split is '{split}', but all of the Clips are scored; leave out split")
        only_test = Splits.only_test(data)
        evaluation = evaluate_model(model, only_test, "test", protocol, options, rules, allow=allow, on_note=on_note)
        return replace(evaluation, split="all")
    split = split or "test"
    if data is None:
        if isinstance(model, Model):
            raise InputError("evaluate: a Model needs data; pass data, or the path of its run")
        run = Path(model)
        return evaluate_under_each(run, [protocol], split=split, options=options, rules=rules, on_note=on_note)[0]
    loaded = model if isinstance(model, Model) else load(model)
    splits = read_for(loaded, data, allow_other_features=allow, on_note=on_note)
    ruled = _ruled(splits, rules, None if isinstance(data, Splits) else data, split, on_note)
    return _scored(Subject(loaded, ruled), protocol or loaded.facts.protocol, split, options)


def subject_of(run: Run, split: str = "test", *, device: str | None = None) -> Subject:
    """Return a run as the subject of protocols that score a split, with a function that repeats the training.

    With several texts per training clip, the other modalities of such a clip are ranked once if `split` is "train".
    Training is always repeated on the training clips of the run, on the device of its config unless `device` is
    another.
    """
    config = run.config if device is None else run.config.computed_on(device)

    def retrain(changed: Splits) -> Model:
        return fit_model(prepare(config, changed.having("train", run.splits.train)), Session())

    is_paired = split == "train" and run.config.common.texts != "first"
    scored = run.splits.having("train", ranked_once(run.splits.train)) if is_paired else run.splits
    return Subject(run.model, scored, retrain)


def evaluate_under_each(
    folder: Path,
    protocols: Sequence[str | None],
    *,
    split: str = "test",
    options: Options = FULL,
    rules: Rules = OF_RUN,
    on_note: Note | None = None,
) -> list[Evaluation]:
    """Score a run on its own data under several protocols, and add the evaluations to the run.

    Args:
        folder: folder of the run.
        protocols: keys of PROTOCOLS, or leaks joined by "+"; None is the protocol of the run.
        split: split to score.
        options: options of the evaluation.
        rules: rules that replace those of the run.
        on_note: called with notes for the user.

    Raises:
        InputError: the folder is not a trained run with unchanged data and unchanged judgments of the applied rule, or
            a protocol, split, option or rule does not apply to the run.
    """
    run, say = load_run(folder, judged=rules.relevance is None), on_note or (lambda message: None)
    subject, facts = subject_of(run, split), run.model.facts
    subject = replace(subject, splits=_ruled(subject.splits, rules, run.config.data, split, say))
    changed = [*options.changed(), *rules.changed()]
    evaluations = [_scored(subject, protocol or facts.protocol, split, options) for protocol in protocols]
    records = {
        evaluation_file(e.protocol, split, *changed): replace(e.record(), label=facts.label, seed=facts.seed)
        for e in evaluations
    }
    files = {name: to_bytes(record.to_json()) for name, record in records.items()}
    add_to_run(run.folder, files, say)
    audit = None if changed else read_audit(run.manifest)
    for evaluation in evaluations:
        if audit and (binding := audit.binding(run.manifest, evaluation.protocol, split, evaluation.map_mean)):
            say(f"{evaluation.protocol}: {binding}")
    return evaluations


def add_unit_values(folder: Path, config: Config) -> PerUnit:
    """Return the pseudo-values of the mean MAP, one per clip or cluster, for a run of an earlier aadml version.

    The pseudo-values and the interval of the mean MAP are added to the run.

    Args:
        folder: folder of the run.
        config: config of the run, with the current path of the data.

    Raises:
        InputError: the run or the data cannot be read.
    """
    record, subject = read_evaluation(folder), Subject(load(folder), load_splits(config))
    evaluation = _scored(subject, record.protocol, record.split, FULL)
    per_unit = evaluation.per_unit()
    record = replace(record, map_mean_interval=list(evaluation.map_interval), per_unit=per_unit)
    add_to_run(folder, {EVALUATION: to_bytes(record.to_json())}, lambda message: None)
    return per_unit


def add_to_run(folder: Path, files: Mapping[str, bytes], note: Note) -> None:
    """Add files to a run if the run is finished. If adding fails, call `note` with a warning."""
    try:
        with open_run(folder, wait=True) as store:
            if EVALUATION in store.manifest.files:
                for name in files:
                    remove_leftovers(folder / name)
                store.commit(files, flush=True)
    except InputError as error:
        note(f"warning: the results were not added to the run: {error}")


def _ruled(splits: Splits, rules: Rules, source: str | Path | None, split: str, note: Note) -> Splits:
    """Return the splits with rules applied, and call `note` with notes on the rules and on copied test clips."""
    ruled = rules.applied(splits, source)
    ruled = ruled if rules.cluster else with_complete_clusters(ruled, split)
    for text in (*(copy_notes(splits) if split == "test" else ()), *ruled.notes[len(splits.notes) :]):
        note(text)
    return ruled


def _scored(subject: Subject, protocol: str, split: str, options: Options) -> Evaluation:
    clips = nonempty_split(subject.splits, split)
    require_clusters(subject.splits, split)
    evaluation = evaluate_under(subject, protocol, split=split, **vars(options))
    if clips.class_names != subject.encoder.class_names:
        return replace(evaluation, label_space={})  # the dimensions are those of other classes
    return evaluation
