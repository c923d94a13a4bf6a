"""Training by names: data and a method or loss in, a model out; with a run folder, or in memory alone."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.processes import group, launch
from aadml.configuration.config import Config
from aadml.configuration.from_arguments import assemble
from aadml.configuration.overrides import Settings
from aadml.data.splitting.splits import stratified
from aadml.feature_extraction.ground.consent import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks, Record, Session
from aadml.model.model import Model
from aadml.model.packing import FACTS
from aadml.runs.config_warnings import config_warnings, remarks
from aadml.runs.data import configured_in_memory, place_of, relevance_name, starting_config
from aadml.runs.distributed import callbacks_of_one, check_together, folder_of_all, follow
from aadml.runs.loading import load, read_config
from aadml.runs.manifest import CONFIG, is_finished, read_manifest
from aadml.runs.prepare import Prepared, prepare
from aadml.runs.run_names import new_run_folder
from aadml.runs.sample_data import with_sample_data
from aadml.runs.scoring import TEST, score_model
from aadml.runs.store import begun, opened
from aadml.runs.train import fit_model, train_prior, train_run

_log = logging.getLogger("aadml")


@with_consent("config")
def fit(
    data: str | Path | Splits | Clips | None = None,
    *,
    method: str | None = None,
    loss: str | None = None,
    k: int | None = None,
    config: str | Path | None = None,
    settings: Settings = (),
    seed: int | None = None,
    epochs: int | None = None,
    criterion: str | None = None,
    relevance: str | Path | None = None,
    modalities: Sequence[str] | str | None = None,
    device: str | None = None,
    runs: str | Path | None = None,
    trust_code: bool = False,
    on_note: Callable[[str], None] | None = None,
    on_run: Callable[[Path], None] | None = None,
    on_plan: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Record], None] | None = None,
    on_step: Callable[[int], None] | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Model:
    """Fit a method; choose the epoch on validation clips; score the test split once.

    The same arguments give the same weights to the byte, from Python and from the command line, in memory and in a
    run folder.

    Args:
        data: a feature file of any layout, captioned sound, or what `aadml.read` returned (which has drawn a missing
            validation split by a seed of its own); `Clips` alone are trained on, and a share of them validates. None
            takes the sample clips.
        method: a name of `aadml list methods`; its shipped config is the starting point.
        loss: a name of `aadml list losses`; "aa-LOSS" sees the anchors as anchor-aware proxies.
        k: neighbors of the anchor-aware proxy.
        config: a YAML file, or the name of a shipped one; the default is that of the method, else "aadml", or "pairs"
            where the clips are not of one class each.
        settings: any keys of the config: `{"proxy.k": 5}`, or `["proxy.k=5"]`.
        seed: decides weights, order, draws, and the validation split where one is made.
        epochs: passes over the training clips.
        criterion: validation metric that selects the epoch, "recall@10" for example; by default the method's own.
        relevance: what is relevant where clips are scored: "own", "label", "labels", "labels-graded", or a file of
            judgments; by default the data decide it.
        modalities: which of the data's are read, ["audio", "visual"] or "audio,visual"; by default all.
        device: "auto", "cpu" or "cuda".
        trust_code: import the code from outside aadml that the config file names as `module:name`; names
            among the arguments need no consent.
        runs: folder in which a run folder is made, which survives an interruption; None trains in memory alone.
        on_note: called with notes for the user; by default it goes to the logger "aadml".
        on_run: called with the folder of the run as soon as there is one.
        on_plan: called once with the number of epochs, and how many of them are done.
        on_epoch: called with the figures of every epoch.
        on_step: called with the number of each step within its epoch.
        on_warning: called with every warning of the training.

    Returns:
        The model; `model.evaluation` says how it scored, `model.folder` where its run is.

    Raises:
        InputError: data, names or settings that do not fit; one line says what is possible.

    Example:
        >>> small = {"network.hidden": [16], "training.batch": 100}
        >>> model = aadml.fit("synthetic:ave", loss="aa-triplet", k=2, epochs=1, settings=small)
        >>> model
        <Model aa-triplet: audio 128-d, visual 1024-d, 15 classes, cosine, test MAP ...>
        >>> model.evaluation["protocol"], model.facts.clips
        ('inductive', 1577)
    """
    note = on_note or _log.info
    callbacks = Callbacks(on_plan=on_plan, on_epoch=on_epoch, on_step=on_step, on_warning=on_warning)
    if data is None and launch.started():
        raise InputError("fit: several processes were started, and none may make the sample clips; name the data")
    if not isinstance(data, str | Path | Splits | Clips | None):
        raise InputError(f"fit: data of type {type(data).__name__}; give a path, what aadml.read returned, or Clips")
    config = starting_config(data, config, method, note)
    complete = assemble(
        data=place_of(data) if isinstance(data, str | Path) else None, method=method, loss=loss, k=k,
        config=str(config) if config else None, settings=settings, seed=seed, epochs=epochs, device=device,
        criterion=criterion, relevance=relevance_name(relevance), modalities=modalities, sample=data is None,
    )  # fmt: skip
    complete = with_sample_data(complete, note) if data is None else complete
    for message in config_warnings(complete):
        note(message)
    prepared = prepare(complete, _in_memory(data, complete))
    with group.joined():
        check_together(prepared)
        callbacks = callbacks_of_one(callbacks)
        return (
            _fit_in_memory(prepared, note, callbacks)
            if runs is None
            else _fit_run(prepared, Path(runs), note, callbacks, on_run)
        )


def _fit_run(
    prepared: Prepared,
    runs: Path,
    note: Callable[[str], None],
    callbacks: Callbacks,
    on_run: Callable[[Path], None] | None,
) -> Model:
    """Train into a new run folder; of several processes the first writes it."""
    if not len(prepared.splits.test):
        raise InputError("fit: a run is scored on its test clips, and there are none; train in memory, without runs")
    label, seed = prepared.config.label(), prepared.config.common.seed
    folder = folder_of_all(lambda: new_run_folder(runs, label, seed))
    if on_run:
        on_run(folder)
    if not group.is_first():
        return follow(prepared, folder)
    with begun(folder, made=True) as store:
        return train_run(prepared, store, callbacks=callbacks, on_note=note)


@with_consent("folder")
def resume_run(
    folder: str | Path,
    *,
    data: Splits | None = None,
    trust_code: bool = False,
    on_note: Callable[[str], None] | None = None,
    on_plan: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Record], None] | None = None,
    on_step: Callable[[int], None] | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Model:
    """Continue an interrupted run; it ends in the same bytes as one that was never interrupted.

    Args:
        folder: of the run.
        data: what it was trained on, where that was in memory.
        trust_code: import the code from outside aadml that the run names as `module:name`.
        on_note: see `fit`.
        on_plan: see `fit`.
        on_epoch: see `fit`.
        on_step: see `fit`.
        on_warning: see `fit`.

    Raises:
        InputError: not a run, in use, damaged, or its data changed or are gone; nothing is touched.
    """
    place, note = Path(folder), on_note or _log.info
    if CONFIG not in read_manifest(place).files:
        raise InputError(f"{place}: was stopped before it began; start it again")
    config = read_config(place)
    prepared = None if is_finished(place) else prepare(config, _in_memory(data, config))
    callbacks = Callbacks(on_plan=on_plan, on_epoch=on_epoch, on_step=on_step, on_warning=on_warning)
    with group.joined():
        if prepared is not None:
            check_together(prepared)
        if not group.is_first():
            over = prepared is None or FACTS in read_manifest(place).files
            return load(place) if over or prepared is None else follow(prepared, place)
        with opened(place) as store:
            if prepared is None or is_finished(place):
                note(f"{place} is finished; nothing to resume")
                return load(place)
            return train_run(prepared, store, callbacks=callbacks, on_note=note)


def _fit_in_memory(prepared: Prepared, note: Callable[[str], None], callbacks: Callbacks) -> Model:
    session = Session(callbacks)
    for message in remarks(prepared):
        note(message)
    train_prior(prepared, TEST, None, callbacks=callbacks, on_note=note)
    model = fit_model(prepared, session)
    if not len(prepared.splits.test):
        return model
    record = score_model(model, prepared.config, prepared.splits, session, session.seconds)
    for verdict in record.verdicts or ():
        note(f"warning: {verdict}")
    return replace(model, evaluation=record.to_json())


def _in_memory(data: object, config: Config) -> Splits | None:
    """Lay data in memory out as splits; None where the config names what is to be read."""
    if isinstance(data, Splits):
        return configured_in_memory(data, config)
    if not isinstance(data, Clips):
        return None
    labels, rows = data.labels.numpy(), np.arange(len(data), dtype=np.int64)
    chosen = stratified(labels, rows, config.common.validation, config.common.seed)
    rest = torch.from_numpy(np.setdiff1d(rows, chosen))
    how = "stratified" if data.class_names else "at random"
    note = f"{len(chosen)} clips were set aside for validation ({how}, seed {config.common.seed})"
    empty = data.select(torch.arange(0))
    splits = Splits(data.select(rest), data.select(torch.from_numpy(chosen)), empty, notes=(note,))
    return configured_in_memory(splits, config, drawn=True)
