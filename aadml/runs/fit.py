"""Training of a method or loss by name, in a run folder or only in memory."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.processes import group, launch
from aadml.configuration.from_arguments import assemble
from aadml.configuration.overrides import Settings
from aadml.feature_extraction.ground.argument_types import with_consent
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.strings import Note
from aadml.methods.training.session import SILENT, Callbacks, Record, Session
from aadml.model.model import Model
from aadml.model.packing import FACTS
from aadml.retrieval.judgments import relevance_name
from aadml.runs.config_warnings import config_warnings, training_warnings
from aadml.runs.data import TrainingSource, with_absolute_paths
from aadml.runs.loading import load_trained, read_config
from aadml.runs.manifest import CONFIG, read_manifest
from aadml.runs.prepare import Prepared, check_towers, prepare
from aadml.runs.run_names import new_run_folder
from aadml.runs.sample_data import with_sample_data
from aadml.runs.scoring import TEST, score_model
from aadml.runs.store import new_run, open_run
from aadml.runs.tracking import tracked
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
    track: str | None = None,
    trust_code: bool = False,
    on_note: Note | None = None,
    on_run: Callable[[Path], None] | None = None,
    on_plan: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Record], None] | None = None,
    on_step: Callable[[int], None] | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Model:
    """Train a method, and score the test split once. The epoch is chosen on validation clips.

    The same arguments produce byte-identical weights from Python and from the command line, in memory and in a run
    folder.

    Args:
        data: a feature file of any layout, captioned sound, or the result of `aadml.read`. A separate argument
            `seed` of `aadml.read` determines the draw of a missing validation split. A share of `Clips` is set
            aside for validation. By default, the method is trained on the data of the config, or on the sample
            clips if the config has no data.
        method: method of `aadml list methods`; its preset, configs/METHOD.yaml, is the starting point.
        loss: loss of `aadml list losses`; "aa-LOSS" replaces the anchors by anchor-aware proxies.
        k: number of neighbors of the anchor-aware proxy.
        config: a YAML file or the name of a preset; the default is the preset of the method. Without a method, the
            default depends on the data: "pairs" for data without classes or with clips of several classes,
            "few_labels" for data in which only some clips have a class, "sample" for the sample clips, and "aadml"
            for all other data.
        settings: values of any keys of the config: `{"proxy.k": 5}`, or `["proxy.k=5"]`.
        seed: seed of weights, order of clips, random draws, and of a validation split drawn from train.
        epochs: passes over the training clips.
        criterion: validation metric that selects the epoch, for example "recall@10"; by default the method's
            metric.
        relevance: relevance rule of the scores: "own", "label", "labels", "labels-graded", or a file of judgments;
            by default the rule of the data.
        modalities: modalities of the data to read, ["audio", "visual"] or "audio,visual"; by default all.
        device: "auto", "cpu" or "cuda".
        track: installed tracker that logs every epoch: "tensorboard" (into the folder tensorboard), "wandb"
            (offline unless $WANDB_MODE sets another mode), "mlflow" or "trackio".
        trust_code: import the code from outside aadml that the config file names as `module:name`. Names among the
            arguments need no consent.
        runs: folder in which the new run folder is created. The training of a run in a folder can be resumed. In
            Python, the method is by default trained only in memory.
        on_note: called with notes for the user; by default the notes go to the logger "aadml".
        on_run: called with the folder of the run once it exists.
        on_plan: called before training, and before a pretraining, with the numbers of epochs and of finished
            epochs.
        on_epoch: called with the record of every epoch.
        on_step: called with the number of each step within its epoch.
        on_warning: called with every warning during training.

    Returns:
        The model, with its scores in `model.evaluation` (None without test clips) and its run in `model.folder`
        (None in memory).

    Raises:
        InputError: data, names or settings are invalid or do not match, or the run folder or the tracker cannot be
            created.

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
    source = TrainingSource(data, settings)
    config = source.starting_config(config, method, note)
    flags = {
        "loss": loss,
        "proxy.k": k,
        "data": source.place,
        "seed": seed,
        "relevance": relevance_name(relevance),
        "device": device,
        "modalities": modalities,
        "training.epochs": epochs,
        "training.criterion": criterion,
    }
    file = str(config) if config else None
    complete = with_absolute_paths(assemble(settings, config=file, method=method, sample=source.data is None, **flags))
    if source.data is None and not complete.common.data and launch.started():
        raise InputError("fit: sample clips cannot be rendered by several processes; pass data")
    complete = with_sample_data(complete, note) if source.data is None else complete
    for message in config_warnings(complete):
        note(message)
    check_towers(complete)
    prepared = prepare(complete, source.splits(complete))
    with group.joined():
        check_processes(prepared)
        callbacks = callbacks if group.is_first() else SILENT
        with tracked(track if group.is_first() else None, complete, callbacks, note) as callbacks:
            if runs is None:
                return _fit_in_memory(prepared, note, callbacks)
            return _fit_run(prepared, Path(runs), note, callbacks, on_run)


def _fit_run(
    prepared: Prepared, runs: Path, note: Note, callbacks: Callbacks, on_run: Callable[[Path], None] | None
) -> Model:
    """Train into a new run folder; only the first of several processes writes."""
    if not len(prepared.splits.test):
        raise InputError(
            "fit: the data have no test clips, but a run is scored on test clips; pass data with a test split, or "
            "train without a run folder (runs=None in Python)"
        )
    label, seed = prepared.config.label(), prepared.config.common.seed
    folder = Path(group.by_first(lambda: {"folder": str(new_run_folder(runs, label, seed))})["folder"])
    if on_run:
        on_run(folder)
    if not group.is_first():
        return follow(prepared, folder)
    with new_run(folder, made=True) as store:
        return train_run(prepared, store, callbacks=callbacks, on_note=note)


@with_consent("folder")
def resume_run(
    folder: str | Path,
    *,
    data: Splits | None = None,
    track: str | None = None,
    trust_code: bool = False,
    on_note: Note | None = None,
    on_plan: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[Record], None] | None = None,
    on_step: Callable[[int], None] | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Model:
    """Continue an interrupted run. The result is byte-identical to that of an uninterrupted run.

    A finished run is not trained further.

    Args:
        folder: folder of the run.
        data: training data, if they were passed in memory.
        track: see `fit`.
        trust_code: import the code from outside aadml that the run names as `module:name`.
        on_note: see `fit`.
        on_plan: see `fit`.
        on_epoch: see `fit`.
        on_step: see `fit`.
        on_warning: see `fit`.

    Returns:
        The trained model; see `fit`.

    Raises:
        InputError: the folder is not a run, is damaged or is in use. Other causes: the run was stopped before
            training, or the data of the run are missing or changed. No file is changed in these cases.
    """
    place, note = Path(folder), on_note or _log.info
    manifest = read_manifest(place)
    if CONFIG not in manifest.files:
        raise InputError(f"{place} was stopped before training began; start a new run")
    config = read_config(manifest)
    prepared = None if manifest.is_finished else prepare(config, TrainingSource(data).splits(config))
    callbacks = Callbacks(on_plan=on_plan, on_epoch=on_epoch, on_step=on_step, on_warning=on_warning)
    with group.joined():
        if prepared is not None:
            check_processes(prepared)
        if not group.is_first():
            if prepared is None or FACTS in manifest.files:
                return load_trained(manifest)
            return follow(prepared, place)
        tracking = tracked(None if prepared is None else track, config, callbacks, note)
        # opened for a finished run too: a killed process may have left files
        with open_run(place) as store, tracking as callbacks:
            if prepared is not None and not store.manifest.is_finished:
                return train_run(prepared, store, callbacks=callbacks, on_note=note)
    note(f"{place} is finished, so the run is returned without further training")
    return load_trained(store.manifest)


def _fit_in_memory(prepared: Prepared, note: Note, callbacks: Callbacks) -> Model:
    session = Session(callbacks)
    for message in training_warnings(prepared):
        note(message)
    train_prior(prepared, TEST, None, callbacks=callbacks, on_note=note)
    model = fit_model(prepared, session)
    if not len(prepared.splits.test):
        return model
    record = score_model(model, prepared.config, prepared.splits, session, session.seconds)
    for verdict in record.verdicts or ():
        note(f"warning: {verdict}")
    return replace(model, record=record)


def check_processes(prepared: Prepared) -> None:
    """Raise InputError if several processes cannot train the method, or have different data or configs."""
    if group.count() == 1:
        return
    if not prepared.model.method.divides_batches:
        raise InputError(
            f"{prepared.model.facts.label} cannot be trained by several processes; start a single process without "
            "torchrun, or train aadml, cctl, clip or pairs"
        )
    inputs = {"data": prepared.sha256, "config": hashlib.sha256(prepared.config.yaml().encode()).hexdigest()}
    for name, value in group.by_first(lambda: inputs).items():
        if inputs[name] != value:
            raise InputError(
                f"{prepared.splits.name or 'fit'}: the {name} of this process and of the job's first process differ; "
                f"pass the same {name} to every process"
            )


def follow(prepared: Prepared, folder: Path) -> Model:
    """Train in a process that does not write the run. The returned model has no evaluation."""
    return replace(fit_model(prepared, Session()), folder=folder)
