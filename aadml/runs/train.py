"""From a prepared training to a trained model in its run's folder, with the one look at the test split."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import torch

from aadml.comparison.clips import Splits
from aadml.comparison.processes import group
from aadml.configuration.config import Config
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import parse_object, to_bytes, typed
from aadml.methods.training.session import SILENT, Callbacks, Session
from aadml.model.files import load_model
from aadml.model.model import Model
from aadml.model.packing import CARD, FACTS, pack_model
from aadml.retrieval.metric_functions import check_cutoff
from aadml.runs.config_warnings import foretold
from aadml.runs.environment import Environment, environment, read_environment
from aadml.runs.loading import read_config
from aadml.runs.manifest import CONFIG, ENVIRONMENT, EVALUATION, is_finished, is_run, read_manifest
from aadml.runs.prepare import Prepared, fitted_on, prepare
from aadml.runs.pretraining import config_of, folder_of
from aadml.runs.run_names import file_of
from aadml.runs.scoring import TEST, Scoring, score_model
from aadml.runs.session import RunSession, read_records
from aadml.runs.store import RunStore, begun, opened
from aadml.runs.test_curve import Diagnosis, without_diagnosis


def fit_model(prepared: Prepared, session: Session, *, alone: bool = False) -> Model:
    """Train the model of a prepared training.

    Args:
        prepared: see `prepare`.
        session: where progress, log and checkpoints go.
        alone: keep a method without epochs from the validation clips, on which it would be fitted too.
    """
    model, splits = prepared.model, prepared.splits
    if (alone or prepared.config.common.unseen_classes is not None) and model.method.fits_validation:
        splits = replace(splits, valid=splits.valid.select(torch.arange(0)))  # or its classes are numbered otherwise
    model.method.fit(*fitted_on(model, splits), session)
    return _with_facts(model, session)


def _diagnosis(prepared: Prepared, every: int) -> Diagnosis | None:
    """Lay out what looks at the test clips while they are not to be learned from; None where nobody asked for it."""
    return Diagnosis(prepared.model.scaling.clips(prepared.splits.test), every) if every else None


def _with_facts(model: Model, session: Session) -> Model:
    """Add to a model's facts what its training, as far as it has come, decided."""
    best = session.best()
    facts = replace(
        model.facts,
        similarity=model.method.similarity,
        architecture=model.method.architecture(),
        readout=model.method.readout(),
        selected_epoch=typed(best.facts, "epoch", int) if best else None,
    )
    return replace(model, facts=facts)


def train_run(
    prepared: Prepared,
    store: RunStore,
    scoring: Scoring = TEST,
    *,
    callbacks: Callbacks = SILENT,
    saving_share: int = 0,
    priors: Path | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Model:
    """Train into a run's store, continuing where an earlier process was stopped, and score the model once.

    Args:
        prepared: see `prepare`.
        store: of a new run, or of one that was interrupted.
        scoring: what is scored, and in what detail.
        callbacks: called while it trains.
        saving_share: see `RunSession`.
        priors: where models are kept that a method needs trained first; by default in the run's own folder.
        on_note: called with notes for the user: before training what was done to the data and how long it will take, at
            its end the verdicts.

    Returns:
        The model with its evaluation, as written to `evaluation.json`.

    Raises:
        InputError: the data changed since the run began, or training cannot go on.
    """
    note = on_note or (lambda message: None)
    _begin(prepared, store, note)
    session = _session(prepared, store, scoring, callbacks, saving_share)
    if FACTS in store.manifest.files:
        model = _trained_before(prepared, store, session)
    else:
        for message in foretold(prepared) if on_note else []:
            note(message)
        train_prior(
            prepared, scoring, priors or store.folder, callbacks=callbacks, saving_share=saving_share, on_note=note
        )
        model = fit_model(prepared, session, alone=scoring.split == "valid")
        best = session.best()
        files = pack_model(model.method, model.scaling, model.facts, best.facts if best else {}) | session.added()
        store.commit(files, seconds=session.seconds, flush=True)
    record = score_model(model, prepared.config, prepared.splits, session, store.manifest.seconds, scoring)
    for verdict in record.verdicts or ():
        note(f"warning: {verdict}")
    result = record.to_json()
    model = replace(model, evaluation=result, folder=store.folder)
    # nothing is left to continue: state and best weights go with the commit that makes the run finished
    numbered = [name for kind in ("state", "best") if (name := store.manifest.numbered(kind))]
    store.commit({EVALUATION: to_bytes(result)} | _card(model, store, note), drop=numbered, flush=True)
    return model


def _session(
    prepared: Prepared, store: RunStore, scoring: Scoring, callbacks: Callbacks, saving_share: int
) -> RunSession:
    """Lay out the session of a run, in which each stage of a training is scored when it ends."""

    def score_stage(name: str) -> None:
        reached = _with_facts(prepared.model, session)
        record = score_model(reached, prepared.config, prepared.splits, session, session.seconds, scoring)
        session.add(file_of(reached.facts.protocol, scoring.split, name), to_bytes(record.to_json()))

    session = RunSession(
        store,
        replace(callbacks, on_stage=score_stage),
        saving_share=saving_share,
        diagnosis=_diagnosis(prepared, scoring.diagnosis),
    )
    return session


def _trained_before(prepared: Prepared, store: RunStore, session: RunSession) -> Model:
    """Read the model of a run that was stopped between its training and its scores."""
    store.read(FACTS)
    session.history = [without_diagnosis(one) for one in read_records(store.folder)]
    return load_model(store.folder, chosen_device(prepared.config.common.device, "config"))


def train_prior(
    prepared: Prepared,
    scoring: Scoring,
    place: Path | None,
    *,
    callbacks: Callbacks,
    saving_share: int = 0,
    on_note: Callable[[str], None],
) -> None:
    """Give a method the trained model that it asks for: as it is kept in `place`, or trained now.

    Args:
        prepared: see `prepare`.
        scoring: what the other model's run scores.
        place: folder in which the other model has one of its own; None keeps it in memory.
        callbacks: called while it trains.
        saving_share: see `RunSession`.
        on_note: called with a note for the user.

    Raises:
        InputError: what is kept there is of another config or of other data, or is damaged.
    """
    wanted = prepared.model.method.prior()
    if wanted is None:
        return
    config = config_of(prepared.config, wanted)
    if place is None:
        model = fit_model(prepare(config, prepared.splits), Session(callbacks))
    else:
        folder = folder_of(place, config, wanted)
        on_note(f"the {wanted.name} model ({config.label()}): {'taken from' if is_finished(folder) else 'in'} {folder}")
        model = train_into(
            config, folder, replace(scoring, metrics=(), diagnosis=0), callbacks=callbacks, saving_share=saving_share,
            wait=True, splits=prepared.splits, on_note=on_note,
        )  # fmt: skip
    prepared.model.method.take_prior(model.method)


def train_into(
    config: Config,
    folder: Path,
    scoring: Scoring = TEST,
    *,
    callbacks: Callbacks = SILENT,
    saving_share: int = 0,
    priors: Path | None = None,
    wait: bool = False,
    splits: Splits | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Model:
    """Train a config into a folder: a new run, or one that goes on where it was stopped; see `train_run`.

    Args:
        config: complete.
        folder: absent, empty, or of a run of this config.
        scoring: what is scored, and in what detail.
        callbacks: called while it trains.
        saving_share: see `RunSession`.
        wait: whether to wait for a process that is at it, or to refuse.
        priors: see `train_run`.
        splits: the data, where they are in memory; None reads what the config names.
        on_note: called with notes for the user.

    Raises:
        InputError: the folder holds a run of another config, or of data that have changed.
    """
    if is_run(folder) and CONFIG in read_manifest(folder).files:
        config = config.trained_in(read_config(folder).training.precision)  # of the machine on which it was begun
    prepared = prepare(config, splits)
    config = prepared.config
    for metric in scoring.metrics:
        check_cutoff(metric, len(prepared.splits[scoring.split]))
    with opened(folder, wait=wait) if is_run(folder) else begun(folder) as store:
        if CONFIG in store.manifest.files and read_config(folder).yaml() != config.yaml():
            raise InputError(f"{folder}: holds a run of another config; remove it, or choose another folder")
        if is_finished(folder):
            _refuse_other_data(prepared, store)
            model = load_model(folder, chosen_device(config.common.device, "config"))
            return replace(model, evaluation=parse_object(store.read(EVALUATION), folder / EVALUATION))
        return train_run(
            prepared, store, scoring, callbacks=callbacks, saving_share=saving_share, priors=priors, on_note=on_note
        )


def _begin(prepared: Prepared, store: RunStore, note: Callable[[str], None]) -> None:
    """Commit config and environment of a new run; of one that goes on, check that the data are the same."""
    if ENVIRONMENT in store.manifest.files:
        before = _refuse_other_data(prepared, store)
        if before.processes != group.count():
            note(f"begun by {before.processes} processes, continued by {group.count()}: equal up to rounding alone")
        return
    device = chosen_device(prepared.config.common.device, "config")
    about = environment(prepared.splits, prepared.sha256, device)
    store.commit({CONFIG: prepared.config.yaml().encode(), ENVIRONMENT: to_bytes(asdict(about))})


def _refuse_other_data(prepared: Prepared, store: RunStore) -> Environment:
    before = read_environment(store.folder)
    if before.data.sha256 != prepared.sha256:
        raise InputError(f"{prepared.splits.name}: the data changed since {store.folder} was begun; start a new run")
    return before


def _card(model: Model, store: RunStore, note: Callable[[str], None]) -> dict[str, bytes]:
    """Give the card as a file to write; nothing where somebody put a file of its name into the folder meanwhile."""
    written, place = model.card().encode(), store.folder / CARD
    if CARD not in store.manifest.files and place.exists() and place.read_bytes() != written:
        note(f"warning: {place} was not written by this run and stays; the run has no card")
        return {}
    return {CARD: written}
