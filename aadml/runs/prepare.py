"""A training that can begin: data read, method built, everything refused that a wrong config or data would stop."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.features import Features, Matrix
from aadml.comparison.processes import group
from aadml.configuration.config import Config
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import Json
from aadml.feature_extraction.weights.hub_names import PREFIX, without_folder
from aadml.methods.inputs import fit_scaling
from aadml.methods.method import Context
from aadml.methods.training.settings import AUTO
from aadml.model.facts import Facts, MethodFacts, fingerprint, training_data
from aadml.model.files import build_method
from aadml.model.model import Model
from aadml.retrieval.metric_functions import check_cutoff
from aadml.runs.data import load_splits, protocol_of
from aadml.runs.environment import data_hash


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
            f"{place or 'the data'}: no clip has all of {', '.join(clips.modalities)}; choose fewer "
            "(--set modalities=A,B), or take a method that learns from the others too (pairs, clip)"
        )
    if not texts:
        return clips.select(clips.whole)
    names = {clips.ids[row] for row in clips.whole.tolist()}
    return clips.select(torch.tensor([row for row, name in enumerate(clips.ids) if name in names]))


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
