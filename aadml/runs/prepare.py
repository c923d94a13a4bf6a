"""Preparation of training: reading of the data, construction of the method, and checks of config and data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.features import Matrix
from aadml.comparison.processes import group
from aadml.configuration.config import Config
from aadml.data.splitting.splits import ClassNote
from aadml.feature_extraction.frontends.inference import chosen_device
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.strings import listed
from aadml.feature_extraction.hub.towers import check_tower
from aadml.feature_extraction.weights.hub_names import PREFIX, without_folder
from aadml.losses import TRAINS_WITHOUT_NEGATIVES
from aadml.methods.inputs import fit_scaling
from aadml.methods.method import Context
from aadml.methods.towers.options import TRAINED
from aadml.methods.training.settings import AUTO
from aadml.model.facts import Facts, MethodFacts, TrainingData, fingerprint
from aadml.model.files import build_method
from aadml.model.model import Model
from aadml.retrieval.metric_names import split_name
from aadml.runs.data import is_path_of_weights, load_splits
from aadml.runs.environment import data_hash, initial_weights


@dataclass(frozen=True)
class Prepared:
    """Training run that is ready to begin, with checked config and data.

    Attributes:
        config: complete config, with the precision of this machine instead of "auto", and a single criterion.
        splits: the divided data.
        sha256: SHA-256 of the data.
        model: model with fitted scaling and untrained method.
        notes: notes for the user on settings that were chosen by the size of the data.
    """

    config: Config
    splits: Splits
    sha256: str
    model: Model
    notes: tuple[str, ...] = ()

    @property
    def networks(self) -> dict[str, str]:
        """SHA-256 of the initial weights; see `Environment`."""
        architecture = self.model.method.architecture()
        towers = {modality: tower.weights for modality in TRAINED if (tower := architecture.tower(modality))}
        return towers | initial_weights(self.config)


def prepare(config: Config, splits: Splits | None = None) -> Prepared:
    """Read the data of a config and build its method.

    Args:
        config: complete config.
        splits: data in memory; None reads the data of the config.

    Raises:
        InputError: the data cannot be read or do not match the config, a split has no item of a modality, a split to
            be ranked has no relevant item, or the method or device is not available.
    """
    config.training.check()
    if splits is None:
        check_towers(config)
        splits = load_splits(config)
    sha256 = data_hash(splits)
    wanted, items = listed(config.training.criterion), _gallery(splits.valid)
    config = replace(config, training=config.training.chosen_on(items))
    model = untrained_model(config, splits, group.own_device(chosen_device(config.common.device, "config")))
    _check_negatives(config, splits.train)
    model.method.check_clips(splits.train)
    _check_galleries(splits)
    _check_relevant(splits, ("test",) if model.method.fits_validation else ("valid", "test"))
    criterion = config.training.criterion
    _check_criterion(criterion, items if model.method.takes_missing else min(items, len(splits.valid.whole)))
    config = config.trained_in(model.method.precision)
    counts = {split: len(splits[split]) for split in ("train", "valid", "test")}
    data = TrainingData(Path(splits.name).name, sha256, counts, splits.notes)
    facts = replace(model.facts, training=config.training, data=data)
    fallback = f"training.criterion is {criterion} instead of {wanted[0]}, as there are only {items} validation clips"
    notes = () if criterion == wanted[0] else (fallback,)
    return Prepared(config, splits, sha256, replace(model, facts=facts), notes)


def _check_negatives(config: Config, train: Clips) -> None:
    """Raise InputError if all clips are positives of each other, and no loss can train on labels or positives alone."""
    neighbors, loss = getattr(config.sections, "neighbors", None), config.section("loss")
    if neighbors is None or loss is None or neighbors.positives in ("none", "all") or config.section("label_loss"):
        return
    unequal = not neighbors.alike and (
        loss.name in TRAINS_WITHOUT_NEGATIVES or getattr(loss.options, "multi_positive", False)
    )
    count = min(train.per_epoch, len(train.whole))
    if neighbors.k >= count - 1 and not unequal:
        advice = f"pass at most {count - 2}" if count > 2 else "choose data with more clips"
        raise InputError(
            f"neighbors.k is {neighbors.k}, but there are {count} training clips, so that no clip is a negative; "
            f"{advice}, or set neighbors.weights to affine or softmax and choose a loss from "
            f"{', '.join(TRAINS_WITHOUT_NEGATIVES)}"
        )


def _check_galleries(splits: Splits) -> None:
    """Raise InputError if all clips of a split lack the same modality, which then cannot be trained or ranked."""
    for split in ("train", "valid", "test"):
        for modality, flags in splits[split].present.items():
            if len(flags) and not flags.any():
                action = "train on" if split == "train" else "rank"
                raise InputError(
                    f"{splits.name or 'the data'}: no clip of the split '{split}' has {modality}, so there is nothing "
                    f"to {action}; add clips with {modality} to this split, or omit the modality (--set modalities=A,B)"
                )


def _check_relevant(splits: Splits, names: Sequence[str]) -> None:
    """Raise InputError if a split of `names` has clips, but no query of a direction has a relevant item."""
    for clips, split in ((splits[split], split) for split in names if len(splits[split])):
        rows = {modality: clips.rows(modality).numpy() for modality in clips.modalities}
        for query, gallery in permutations(clips.modalities, 2):
            if not clips.relevant.between(clips, rows[query], rows[gallery]).some.any():
                raise InputError(
                    f"relevance: no clip of the split '{split}' has a relevant item in the direction "
                    f"{query}-{gallery}, because a relevant result is {clips.relevant.words}; add judgments or labels "
                    "of these clips, or choose another relevance"
                )


def _gallery(clips: Clips) -> int:
    """Return the smaller of two counts: the distinct ids, and the clips with the rarest modality.

    Clips with equal ids are the same item.
    """
    return min([len(set(clips.ids)), *(len(clips.rows(modality)) for modality in clips.modalities)])


def _check_criterion(criterion: str, items: int) -> None:
    """Raise InputError if the criterion has a cutoff above `items`, the number of validation clips.

    Without validation clips, no error is raised.
    """
    cutoff = None if criterion == AUTO else split_name(criterion)[1]
    if cutoff is not None and 0 < items < cutoff:
        raise InputError(
            f"training.criterion is {criterion}, but there are {items} validation clips; set training.criterion to a "
            f"metric with a cutoff below {items}, or to map"
        )


def check_towers(config: Config) -> None:
    """Check the pretrained networks of a config, before data or weights are read.

    Raises:
        InputError: there is no such network, or its settings cannot be read.
    """
    options, networks = config.options.plain(), config.towers.networks if config.towers else {}
    for modality in TRAINED:
        name = networks.get(modality, options.get(modality))
        if isinstance(name, str) and name.startswith(PREFIX):
            check_tower(name, modality)


def untrained_model(config: Config, splits: Splits, device: torch.device) -> Model:
    """Build the model of a config: an untrained method, and a scaling fitted on the training clips.

    Raises:
        InputError: the method cannot be trained on these data or with this config.
    """
    facts = _facts(config, splits)
    classes = len(facts.class_names) if splits.train.one_label_each else 0
    unlabelled = splits.train.unlabelled + splits.valid.unlabelled if classes else 0
    problem = next((note for note in splits.notes if isinstance(note, ClassNote)), "")
    context = Context(facts.dimensions, classes, facts.seed, device, facts.clips, facts.features, unlabelled, problem)
    method = build_method(
        config.method, config.arguments(), facts.training, context, towers=config.towers, inputs=config.inputs
    )
    if splits.train.drawn_by is not None and (reason := method.needs_same_texts):
        raise InputError(
            f"texts is 'drawn' (the texts change in each epoch), but {config.method} {reason}; "
            "set texts to first or all"
        )
    if not method.takes_statistics and config.inputs.scaling not in ("none", "l2"):
        raise InputError(
            f"inputs.scaling is {config.inputs.scaling}, but {config.method} fits no statistics; "
            "set inputs.scaling to none or l2"
        )
    return Model(method, fit_scaling(splits.train, config.inputs), facts)


def clips_to_fit(model: Model, splits: Splits) -> tuple[Clips, Clips]:
    """Return scaled training and validation clips, without incomplete clips if the method needs all modalities.

    A complete validation clip keeps the rows of its second and later texts, unless the method is also fitted on
    validation clips.

    Raises:
        InputError: the method needs all modalities, but no training clip or no validation clip is complete.
    """
    train, valid = (model.scaling.clips(part) for part in (splits.train, splits.valid))
    if model.method.takes_missing:
        return train, valid
    return _complete(train, splits.name), _complete(valid, splits.name, texts=not model.method.fits_validation)


def _complete(clips: Clips, place: str, *, texts: bool = False) -> Clips:
    if not clips.present or not len(clips):
        return clips
    if not len(clips.whole):
        raise InputError(
            f"{place or 'the data'}: no clip has all of {', '.join(clips.modalities)}; choose fewer modalities "
            "(--set modalities=A,B), or a method that trains on incomplete clips (pairs, clip)"
        )
    if not texts:
        return clips.select(clips.whole)
    names = {clips.ids[row] for row in clips.whole.tolist()}
    return clips.select(torch.tensor([row for row, name in enumerate(clips.ids) if name in names]))


def _facts(config: Config, splits: Splits) -> Facts:
    train = splits.train
    arguments = OptionValues(**{key: _without_path(key, value) for key, value in vars(config.arguments()).items()})
    widths = {m: values.shape[1] if isinstance(values, Matrix) else 0 for m, values in train.features.items()}
    return Facts(
        label=config.label(),
        method=MethodFacts(config.method, arguments),
        training=config.training,
        inputs=config.inputs,
        dimensions=widths,
        class_names=train.class_names,
        clips=train.per_epoch,
        seed=config.common.seed,
        towers=config.towers and config.towers.renamed(without_folder),
        protocol="inductive" if config.common.unseen_classes is None else "unseen-classes",
        features={m: fingerprint(splits.provenance.get(m, {})) for m in train.modalities},
    )


def _without_path(key: str, value: object) -> object:
    """Return the value of an option, with a path reduced to its file name, since the model does not need the folder."""
    if isinstance(value, str) and value.startswith(PREFIX):
        return without_folder(value)
    return Path(value).name if isinstance(value, str) and is_path_of_weights(key) else value
