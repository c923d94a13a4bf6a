"""From a config to a trained model: data, method, training, the one look at the test split."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.features import Features, Matrix
from aadml.configuration.config import Config
from aadml.methods.inputs import fit_scaling
from aadml.methods.method import Context
from aadml.methods.session import SILENT, Callbacks, Session
from aadml.methods.settings import AUTO
from aadml.methods.teacher import smaller_batch
from aadml.model.facts import Facts, MethodFacts, fingerprint, training_data
from aadml.model.files import build_method, load_model
from aadml.model.model import Model
from aadml.model.packing import CARD, FACTS, pack_model
from aadml.processes import group
from aadml.proxies.anchor_aware import degeneracy
from aadml.retrieval.requested import check_cutoff
from aadml.runs.data import load_splits, protocol_of
from aadml.runs.diagnosis import Diagnosis, without_diagnosis
from aadml.runs.environment import Environment, data_hash, environment, read_environment
from aadml.runs.forecast import forecast
from aadml.runs.loading import read_config
from aadml.runs.manifest import CONFIG, ENVIRONMENT, EVALUATION, is_finished, is_run, read_manifest
from aadml.runs.naming import file_of
from aadml.runs.prior import config_of, folder_of
from aadml.runs.scoring import TEST, Scoring, score_model
from aadml.runs.session import RunSession, read_records
from aadml.runs.store import RunStore, begun, opened
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.json_values import Json, nested, parse_object, to_bytes, typed
from feature_extraction.hub_names import PREFIX, without_folder
from feature_extraction.network_run import chosen_device


@dataclass(frozen=True)
class Prepared:
    """A training that can begin: everything that a wrong config or data would refuse has been built.

    Attributes:
        config: complete; its precision is that which is trained in here, not "auto".
        splits: the data, divided.
        sha256: of the data.
        model: its scaling fitted on the training clips, its method not trained.
    """

    config: Config
    splits: Splits
    sha256: str
    model: Model


def prepare(config: Config, splits: Splits | None = None) -> Prepared:
    """Read the data of a config and build its method.

    Args:
        config: complete.
        splits: the data, where it is in memory; None reads what the config names.

    Raises:
        InputError: data or config do not fit.
    """
    splits = load_splits(config) if splits is None else splits
    sha256 = data_hash(splits)
    model = untrained_model(config, splits, group.own_device(chosen_device(config.common.device, "config")))
    model.method.check_clips(splits.train)
    if config.training.criterion != AUTO and len(splits.valid):
        check_cutoff(config.training.criterion, len(splits.valid))
    config = config.trained_in(model.method.precision)
    facts = replace(model.facts, training=config.training, data=training_data(splits, sha256))
    return Prepared(config, splits, sha256, replace(model, facts=facts))


def untrained_model(config: Config, splits: Splits, device: torch.device) -> Model:
    """Build the model of a config for the data, its scaling fitted on the training clips; nothing is trained yet."""
    facts = _facts(config, splits)
    classes = len(facts.class_names) if splits.train.one_label_each else 0
    unlabelled = splits.train.unlabelled + splits.valid.unlabelled if classes else 0
    context = Context(facts.dimensions, classes, facts.seed, device, facts.clips, facts.features, unlabelled)
    method = build_method(
        config.method, config.arguments(), facts.training, context, towers=config.towers, inputs=config.inputs
    )
    if splits.train.drawn_by is not None and (why := method.needs_same_texts):
        raise InputError(f"texts: drawn takes other texts each epoch, and {config.method} {why}; take first or all")
    if not method.takes_statistics and config.inputs.scaling not in ("none", "l2"):
        raise InputError(
            f"inputs.scaling: {config.inputs.scaling} given; {config.method} learns nothing, so none or l2"
        )
    return Model(method, fit_scaling(splits.train, config.inputs), facts)


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


def fitted_on(model: Model, splits: Splits) -> tuple[Clips, Clips]:
    """Give what a method is fitted on, scaled: where it needs all modalities of a clip, the clips that have them.

    Of these, validation clips that are only looked at keep the rows of their further texts, to rank them too.

    Raises:
        InputError: there are none.
    """
    train, valid = (model.scaling.clips(part) for part in (splits.train, splits.valid))
    if model.method.takes_missing:
        return train, valid
    return _whole(train, splits.name), _whole(valid, splits.name, texts=not model.method.fits_validation)


def _whole(clips: Clips, place: str, *, texts: bool = False) -> Clips:
    if not clips.present or not len(clips):
        return clips
    if not len(clips.whole):
        raise InputError(
            f"{place or 'the data'}: no clip has all of {', '.join(clips.modalities)}; choose fewer (--modalities), or "
            "take a method that learns from the others too (pairs, clip)"
        )
    if not texts:
        return clips.select(clips.whole)
    names = {clips.ids[row] for row in clips.whole.tolist()}
    return clips.select(torch.tensor([row for row, name in enumerate(clips.ids) if name in names]))


def fewer_clips(prepared: Prepared) -> list[str]:
    """Say so where a method learns only from the clips that have all modalities."""
    train, name = prepared.splits.train, prepared.config.method
    count = len(train) - len(train.whole)
    if not count or prepared.model.method.takes_missing:
        return []
    return [
        f"{name} learns from the {len(train) - count} of {len(train)} training clips that have all modalities; pairs, "
        "clip and aadml without a proxy learn from all"
    ]


def teacher_notes(prepared: Prepared) -> list[str]:
    """Say what becomes of a teacher (neighbors.space=dcca) on few clips."""
    asked = nested(prepared.config.sections, "neighbors")
    taught = asked.get("space") == "dcca" and asked.get("positives") != "none"
    return smaller_batch(prepared.splits.train.per_epoch) if taught else []


def _foretold(prepared: Prepared) -> list[str]:
    """Say what was done to the data, and how long the training will take, which some steps are taken to find out."""
    expected = forecast(prepared.model.method, prepared.splits.train.per_epoch, len(prepared.model.class_names))
    few = [*fewer_clips(prepared), *teacher_notes(prepared)]
    return [*prepared.splits.notes, *few, *([expected] if expected else [])]


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

    def score_stage(name: str) -> None:
        reached = _with_facts(prepared.model, session)
        record = score_model(reached, prepared.config, prepared.splits, session, session.seconds, scoring)
        session.add(file_of(reached.facts.protocol, scoring.split, name), to_bytes(record.to_json()))

    callbacks_here = replace(callbacks, on_stage=score_stage)
    session = RunSession(
        store, callbacks_here, saving_share=saving_share, diagnosis=_diagnosis(prepared, scoring.diagnosis)
    )
    if FACTS in store.manifest.files:
        store.read(FACTS)
        model = load_model(store.folder, chosen_device(prepared.config.common.device, "config"))
        session.history = [without_diagnosis(one) for one in read_records(store.folder)]
    else:
        for message in _foretold(prepared) if on_note else []:
            note(message)
        train_prior(
            prepared, scoring, priors or store.folder, callbacks=callbacks, saving_share=saving_share, on_note=note
        )
        model = fit_model(prepared, session, alone=scoring.split == "valid")
        best = session.best()
        store.commit(
            pack_model(model.method, model.scaling, model.facts, best.facts if best else {}) | session.added(),
            seconds=session.seconds,
            flush=True,
        )
    record = score_model(model, prepared.config, prepared.splits, session, store.manifest.seconds, scoring)
    for verdict in record.verdicts or ():
        note(f"warning: {verdict}")
    result = record.to_json()
    model = replace(model, evaluation=result, folder=store.folder)
    # nothing is left to continue: state and best weights go with the commit that makes the run finished
    numbered = [name for kind in ("state", "best") if (name := store.manifest.numbered(kind))]
    store.commit({EVALUATION: to_bytes(result)} | _card(model, store, note), drop=numbered, flush=True)
    return model


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


def config_warnings(config: Config) -> list[str]:
    """Say what people should know of a config before it trains: readings that degenerate, networks without training."""
    weights = [key for key, value in config.options.items() if key.endswith("_weights") and value == "untrained"]
    untrained = [name for key in weights if not _is_pretrained(config, name := key.removesuffix("_weights"))]
    if untrained:
        return [f"the {' and the '.join(untrained)} network begin with random weights (method.{untrained[0]}_weights)"]
    proxy = config.section("proxy")
    sentence = degeneracy(proxy.options) if proxy and proxy.name == "anchor-aware" else None
    return [f"proxy: {sentence}"] if sentence else []


def _is_pretrained(config: Config, network: str) -> bool:
    return str(config.options.get(network, "")).startswith(PREFIX)


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


def _facts(config: Config, splits: Splits) -> Facts:
    train = splits.train
    arguments = {key: _without_path(key, value) for key, value in config.arguments().items()}
    return Facts(
        label=config.label(),
        method=MethodFacts(config.method, arguments),
        training=config.training,
        inputs=config.inputs,
        dimensions={m: _dimension(train[m]) for m in train.modalities},
        class_names=train.class_names,
        clips=train.per_epoch,
        seed=config.common.seed,
        towers=config.towers and config.towers.without_folders(),
        protocol=protocol_of(config),
        features={m: fingerprint(splits.provenance.get(m, {})) for m in train.modalities},
    )


def _without_path(key: str, value: Json) -> Json:
    """Leave of a file that an option names only its name: a model travels, and needs none of them."""
    if isinstance(value, str) and value.startswith(PREFIX):
        return without_folder(value)
    return Path(value).name if isinstance(value, str) and (key == "start" or key.endswith("_weights")) else value


def _dimension(features: Features) -> int:
    return features.shape[1] if isinstance(features, Matrix) else 0
