"""Training of a prepared model into the folder of its run, and evaluation of the trained model."""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch

from aadml.comparison.clips import Splits
from aadml.comparison.processes import group
from aadml.configuration.config import Config
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.checksummed_json import FileSum
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import to_bytes, typed
from aadml.feature_extraction.ground.strings import Note
from aadml.methods.training.session import SILENT, Callbacks, Session
from aadml.model.model import Model
from aadml.model.packing import CARD, FACTS
from aadml.retrieval.metric_functions import check_cutoff
from aadml.runs.config_warnings import training_warnings
from aadml.runs.data import with_absolute_paths
from aadml.runs.environment import Environment, check_same_data, environment
from aadml.runs.loading import load_trained, read_config
from aadml.runs.manifest import CONFIG, ENVIRONMENT, EVALUATION, RunManifest, is_finished, is_run, read_manifest
from aadml.runs.prepare import Prepared, clips_to_fit, prepare
from aadml.runs.pretraining import prior_config, prior_folder
from aadml.runs.run_names import evaluation_file
from aadml.runs.scoring import TEST, Scoring, score_model
from aadml.runs.session import RunSession, read_curves
from aadml.runs.store import RunStore, new_run, open_run
from aadml.runs.test_curve import Diagnosis


def fit_model(prepared: Prepared, session: Session, *, alone: bool = False) -> Model:
    """Train the model of a prepared run.

    Args:
        prepared: see `prepare`.
        session: session for progress, log and checkpoints.
        alone: whether a method without epochs is fitted only on the training clips, without the validation clips.

    Raises:
        InputError: the method needs all modalities, but no training clip or no validation clip is complete.
    """
    model, splits = prepared.model, prepared.splits
    if (alone or prepared.config.common.unseen_classes is not None) and model.method.fits_validation:
        splits = replace(splits, valid=splits.valid.select(torch.arange(0)))  # unseen classes have other numbers
    model.method.fit(*clips_to_fit(model, splits), session)
    return _with_facts(model, session)


def _with_facts(model: Model, session: Session) -> Model:
    """Return a model with the facts that training has determined so far."""
    best = session.best()
    facts = replace(
        model.facts,
        similarity=model.method.similarity,
        architecture=model.method.architecture(),
        readout=model.method.readout(),
        selected_epoch=typed(best.facts, "epoch", int) if best else None,
    )
    return replace(model, facts=facts, records=partial(tuple, session.history))


def train_run(
    prepared: Prepared,
    store: RunStore,
    scoring: Scoring = TEST,
    *,
    callbacks: Callbacks = SILENT,
    priors: Path | None = None,
    on_note: Note | None = None,
) -> Model:
    """Train the model of a run, and score the trained model once. An interrupted run is continued.

    Args:
        prepared: see `prepare`.
        store: store of a new or an interrupted run.
        scoring: settings of the evaluation.
        callbacks: called during training.
        priors: folder of the pretrained models that a method needs; by default the folder of the run.
        on_note: called with notes for the user: warnings and estimates before training, verdicts after training.

    Returns:
        The model with its evaluation, as written to `evaluation.json`.

    Raises:
        InputError: the data or the weights of a pretrained network have changed since the run began, or training
            cannot continue.
    """
    note = on_note or (lambda message: None)
    _begin(prepared, store, note)
    session = _run_session(prepared, store, scoring, callbacks)
    if FACTS in store.manifest.files:  # stopped between training and scoring
        session.history = read_curves(store.manifest)
        model = load_trained(store.manifest, prepared.config.common.device)
    else:
        for message in training_warnings(prepared):
            note(message)
        place = priors or store.folder
        train_prior(prepared, scoring, place, callbacks=callbacks, on_note=note)
        model = fit_model(prepared, session, alone=scoring.split == "valid")
        store.commit(model.pack(session.best()) | session.added(), seconds=session.seconds, flush=True)
    record = score_model(model, prepared.config, prepared.splits, session, store.manifest.seconds, scoring)
    for verdict in record.verdicts or ():
        note(f"warning: {verdict}")
    model = replace(model, record=record, folder=store.folder)
    # the commit that finishes the run removes state and best weights
    numbered = [name for kind in ("state", "best") if (name := store.manifest.numbered(kind))]
    store.commit(
        {EVALUATION: to_bytes(record.to_json())} | card_of_run(model, store.manifest, note), drop=numbered, flush=True
    )
    return model


def _run_session(prepared: Prepared, store: RunStore, scoring: Scoring, callbacks: Callbacks) -> RunSession:
    """Return the session of a run. The session scores the model after each training stage with `scored`."""

    def score_stage(name: str) -> None:
        model = _with_facts(prepared.model, session)
        record = score_model(model, prepared.config, prepared.splits, session, session.seconds, scoring)
        session.add(evaluation_file(model.facts.protocol, scoring.split, name), to_bytes(record.to_json()))

    every, scaling = scoring.diagnosis, prepared.model.scaling
    session = RunSession(
        store,
        replace(callbacks, on_stage=score_stage),
        saving_share=scoring.saving_share,
        diagnosis=Diagnosis(scaling.clips(prepared.splits.test), every) if every else None,
    )
    return session


def train_prior(
    prepared: Prepared, scoring: Scoring, place: Path | None, *, callbacks: Callbacks, on_note: Note
) -> None:
    """Load or train the pretrained model that the method needs, if any, and pass this model to the method.

    Args:
        prepared: see `prepare`.
        scoring: settings of the evaluation of the pretrained model's run.
        place: parent of the folder of the pretrained model; None trains in memory.
        callbacks: called during training.
        on_note: called with notes for the user.

    Raises:
        InputError: the model cannot be trained, or the folder contains a model of a different config or other data, or
            is damaged.
    """
    prior = prepared.model.method.prior()
    if prior is None:
        return
    config = prior_config(prepared.config, prior)
    if place is None:
        model = fit_model(prepare(config, prepared.splits), Session(callbacks))
    else:
        folder = prior_folder(place, config, prior)
        action = "loaded from" if is_finished(folder) else "trained in"
        on_note(f"the {prior.name} model ({config.label()}) is {action} {folder}")
        model = train_into(
            config, folder, replace(scoring, metrics=(), diagnosis=0), callbacks=callbacks, splits=prepared.splits,
            on_note=on_note,
        )  # fmt: skip
    prepared.model.method.take_prior(model.method)


def train_into(
    config: Config,
    folder: Path,
    scoring: Scoring = TEST,
    *,
    callbacks: Callbacks = SILENT,
    priors: Path | None = None,
    splits: Splits | None = None,
    on_note: Note | None = None,
) -> Model:
    """Train the model of a config in a run folder; see `train_run`.

    An interrupted run in the folder is continued, as soon as no other process writes the run. A finished run is loaded
    without training.

    Args:
        config: complete config.
        folder: absent, empty, or the folder of a run of this config.
        scoring: settings of the evaluation.
        callbacks: called during training.
        priors: see `train_run`.
        splits: data in memory; None reads the data of the config.
        on_note: called with notes for the user.

    Returns:
        The model with its evaluation.

    Raises:
        InputError: the config cannot be trained, or the folder is in use, is damaged, or contains a run of a different
            config or of changed data.
    """
    if is_run(folder):
        config = continued_config(read_manifest(folder), config)
    prepared = prepare(config, splits)
    for metric in scoring.metrics:
        check_cutoff(metric, len(prepared.splits[scoring.split]))
    with open_run(folder, wait=True) if is_run(folder) else new_run(folder) as store:
        continued_config(store.manifest, prepared.config)
        if store.manifest.is_finished:
            _check_same(prepared, store)
            return load_trained(store.manifest, config.common.device)
        return train_run(prepared, store, scoring, callbacks=callbacks, priors=priors, on_note=on_note)


def continued_config(
    manifest: RunManifest, config: Config, advice: str = "remove this run, or choose another folder"
) -> Config:
    """Return `config` with the choices of the first process of a run; unchanged before the training begins.

    Args:
        manifest: the run.
        config: config to compare with the config of the run.
        advice: what to do if the configs differ, for the message.

    Raises:
        InputError: the config of the run differs from `config`.
    """
    if CONFIG not in manifest.files:
        return config
    stored = with_absolute_paths(read_config(manifest))
    config = config.continuing(stored.training)
    absolute = with_absolute_paths(config)
    if stored.yaml() != absolute.yaml():
        before, now = stored.shown.values, absolute.shown.values
        key = next((key for key in {**before, **now} if before.get(key) != now.get(key)), "")
        changed = f"{key} is {before.get(key)} instead of {now.get(key)}" if key else "the text differs"
        raise InputError(f"{manifest.folder} contains a run of a different config ({changed}); {advice}")
    return config


def _begin(prepared: Prepared, store: RunStore, note: Note) -> None:
    """Commit config and environment of a new run, or check data and networks of an interrupted run."""
    if ENVIRONMENT in store.manifest.files:
        before = _check_same(prepared, store)
        if before.processes != group.count():
            note(
                f"the number of processes was {before.processes} when the run began, and is {group.count()} now; the "
                "results may differ by rounding errors from the results of an uninterrupted run"
            )
        return
    device = chosen_device(prepared.config.common.device, "config")
    about = environment(prepared.splits, prepared.sha256, device, prepared.networks)
    config = prepared.config
    secret = () if config == config.shown else (CONFIG,)
    store.commit({CONFIG: config.yaml().encode(), ENVIRONMENT: to_bytes(asdict(about))}, private=secret)


def _check_same(prepared: Prepared, store: RunStore) -> Environment:
    advice = "start a new run"
    before = check_same_data(store.manifest, prepared.config, prepared.splits, prepared.sha256, advice)
    changed = [name for name, sha256 in prepared.networks.items() if before.networks.get(name, sha256) != sha256]
    if changed:
        raise InputError(
            f"the initial weights of {changed[0]} have changed since {store.folder} was begun; restore these weights, "
            f"or {advice}"
        )
    return before


def card_of_run(model: Model, manifest: RunManifest, note: Note) -> dict[str, bytes]:
    """Return a mapping from the file name of the card to the content.

    The mapping is empty if the folder of the run contains another card or an edited card.
    """
    content, place = model.card().encode(), manifest.folder / CARD
    before = content if not place.exists() else place.read_bytes() if place.is_file() else b""
    if before != content and manifest.files.get(CARD) != FileSum.of(before):
        note(f"warning: {place} is not the card that this run wrote; the file is kept, and no card was written")
        return {}
    return {CARD: content}
