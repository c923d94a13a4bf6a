"""Data of a config: a feature file of any layout, captioned sound, or media."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.clips import Clips, Splits, numbered
from aadml.comparison.options import Seed
from aadml.comparison.relevance import LABEL, check_relevance
from aadml.configuration.config import Common, Config, Fraction
from aadml.configuration.overrides import Settings, setting_pairs
from aadml.configuration.presets import preset_path
from aadml.data.captions.captioned_sets import captioned_splits, is_captioned
from aadml.data.captions.several_texts import with_captions, with_texts
from aadml.data.reading import SYNTHETIC, Views, is_address, open_data
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.media_sets import is_manifest, read_media, with_media
from aadml.data.splitting.division import source_groups
from aadml.data.splitting.shared_clips import with_copy_notes
from aadml.data.splitting.splits import DrawNote, count_divided, require_one_label, stratified, to_splits
from aadml.data.splitting.subsets import disjoint_classes, few_a_class, without_unlabelled
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import search_beside
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.weights.hub_names import PREFIX, with_absolute_folder
from aadml.methods.audio_text.options import UNTRAINED
from aadml.retrieval.judgments import chosen_relevance, judgment_notes, relevance_name


def load_splits(config: Config, content: FeatureFile | None = None) -> Splits:
    """Read the data of a config, divided into splits.

    A missing validation split of features or media is drawn from train. Captioned sound must have all splits.

    Args:
        config: complete config.
        content: content of the data, if already read; None reads the data.

    Raises:
        InputError: a config without data, data that cannot be read or divided, or a key that does not apply to the
            data.
    """
    data, common = config.data, config.common
    if config.towers is not None:
        media, manifest = read_media(data, list(config.towers.networks))
        return with_media(_as_configured(_divided(config, media), common), manifest)
    if takes_captions(config.options):
        _refuse(common, _OF_CLASSES, f"captioned sound {_NO_CLASSES}")
        return _captioned(_noting_validation(read_captioned(data, config.options, complete=True), common), common)
    if is_captioned(data):
        raise InputError(
            f"{data} is captioned sound, but {config.method} trains on features; extract features "
            "with `aadml extract MANIFEST -o F.h5`, or train audio-text, 3cmlf or xie"
        )
    return _as_configured(_divided(config, open_data(data) if content is None else content), common)


def configured_in_memory(splits: Splits, config: Config, *, drawn: bool = False) -> Splits:
    """Return data in memory with the keys `modalities`, `texts`, `relevance` and `unlabelled` of a config applied.

    Classes are numbered as in `train`, in every split. Classes that `train` lacks follow.

    Args:
        splits: the data.
        config: complete config.
        drawn: whether the validation clips were drawn with the share and seed of the config.

    Raises:
        InputError: the config divides the data again, or a key does not apply to the data.
    """
    common, known = config.common, splits.train.class_names
    splits = each_split(splits, lambda part: numbered(part, tuple(dict.fromkeys((*known, *part.class_names)))))
    _refuse(
        common,
        ("train_per_class", "unseen_classes", "cluster"),
        "the data in memory are already divided and have no columns; pass the path of the data",
    )
    splits = splits if drawn else _noting_validation(splits, common)
    if takes_captions(config.options):
        _refuse(common, _OF_CLASSES, f"captioned sound {_NO_CLASSES}")
        return _captioned(splits, common)
    return _as_configured(with_copy_notes(splits), common)


FEW_CLUSTERS = 10
"""Number of clusters below which a note is added."""
_OF_CLASSES = ("train_per_class", "unlabelled", "unseen_classes", "relevance", "cluster")
"""Keys that do not apply to captioned sound."""
_NO_CLASSES = "has no classes (a clip's own captions are relevant); leave out this key"


def _refuse(common: Common, keys: Sequence[str], reason: str) -> None:
    for key in keys:
        if (value := getattr(common, key)) is not None:
            raise InputError(f"{key} is {value}, but {reason}")


def _captioned(splits: Splits, common: Common) -> Splits:
    return with_captions(with_modalities(splits, common.modalities), common.texts)


def _noting_validation(splits: Splits, common: Common) -> Splits:
    """Return the data, with a note if the configured share of validation clips has no effect."""
    if common.validation == Common.validation or not len(splits.valid):
        return splits
    note = f"validation={common.validation:g} changes nothing: the data have a validation split"
    return replace(splits, notes=(*splits.notes, note))


def _divided(config: Config, content: FeatureFile) -> Splits:
    place, common = shown_address(config.data), config.common
    unseen, count = common.unseen_classes, common.train_per_class
    drawn = unseen is None and "valid" not in content.splits
    if unseen is not None:
        splits = with_copy_notes(
            disjoint_classes(content, unseen, validation=common.validation, seed=common.seed, name=place)
        )
    else:
        splits = to_splits(content, validation=common.validation, seed=common.seed, name=place)
        splits = splits if drawn else _noting_validation(splits, common)
    if common.cluster is not None:
        splits = _clustered(splits, content, common.cluster)
        require_clusters(splits, "test")
    if count is None:
        return splits
    require_one_label(content, place, "train_per_class")
    share, unlabelled = common.validation if drawn else None, common.unlabelled == "keep"
    return few_a_class(splits, count, validation=share, seed=common.seed, keep_unlabelled=unlabelled)


@dataclass(frozen=True)
class Rules:
    """Relevance rule and cluster column of an evaluation.

    Attributes:
        relevance: relevance rule; None for the rule of the data.
        cluster: column whose groups of clips are resampled for intervals; None for the choice of the run.
    """

    relevance: str | None = None
    cluster: str | None = None

    def applied(self, splits: Splits, source: str | Path | None = None) -> Splits:
        """Return the data with the rules applied. A rule that is None changes nothing.

        Args:
            splits: the data.
            source: source of the data; None for the name of the data.

        Raises:
            InputError: see `with_relevance` and `with_clusters`.
        """
        splits = splits if self.relevance is None else with_relevance(splits, self.relevance)
        return splits if self.cluster is None else with_clusters(splits, self.cluster, source)

    def changed(self) -> list[str]:
        """Return the rules that are not None, as parts of a file name."""
        return [f"{name}-{rule}" for name, rule in vars(self).items() if rule is not None]


OF_RUN = Rules()


def with_clusters(splits: Splits, column: str, source: str | Path | None = None) -> Splits:
    """Return data with groups of clips. Clips with equal values in a column form a group.

    Intervals resample the groups.

    Args:
        splits: the data.
        column: name of the column.
        source: source of the data; None for the name of the data.

    Raises:
        InputError: the data cannot be read or have no such column.
    """
    place, content = source or splits.name, None
    if splits.name and is_manifest(place):
        content = read_media(place, ())[0]
    elif splits.name and not is_captioned(place):
        content = open_data(place)
    if content is None or not set(splits.test.ids) <= set(content.ids):  # captioned sound has an id for each caption
        raise InputError(
            f"cluster: there is no column '{column}', because {splits.name or 'a data set in memory'} has no columns "
            "of these clips; pass a feature file, or omit cluster"
        )
    return _clustered(splits, content, column)


def _clustered(splits: Splits, content: FeatureFile, column: str) -> Splits:
    if column not in content.columns:
        known = ", ".join(content.columns)
        hint = f"choose from its columns: {known}" if known else "omit cluster, because the data have no columns"
        raise InputError(f"cluster: {splits.name} has no column '{column}'; {hint}")
    clusters = dict(zip(content.ids, content.columns[column], strict=True))
    count = len({clusters[name] for name in splits.test.ids})
    few = f"the test clips form only {count} groups by {column}: intervals over so few groups are rough"
    return replace(splits, clusters=clusters, notes=(*splits.notes, *([few] if count < FEW_CLUSTERS else [])))


def require_clusters(splits: Splits, split: str) -> None:
    """Raise InputError if the data have clusters, but a clip of a split has none."""
    if empty := _without_cluster(splits, split):
        raise InputError(
            f"cluster: {len(empty)} {split} clips of {splits.name or 'the data'} have no value in the column of "
            f"clusters (the first is {empty[0]}); fill the column, or choose another column"
        )


def with_complete_clusters(splits: Splits, split: str) -> Splits:
    """Return the data, without clusters and with a note if a clip of `split` has no cluster."""
    if not (empty := _without_cluster(splits, split)):
        return splits
    note = f"{len(empty)} {split} clips have no value in the column of clusters, so intervals resample single clips"
    return replace(splits, clusters=None, notes=(*splits.notes, note))


def _without_cluster(splits: Splits, split: str) -> list[str]:
    return [] if splits.clusters is None else [name for name in splits[split].ids if not splits.clusters[name]]


def _as_configured(splits: Splits, common: Common) -> Splits:
    splits = without_unlabelled(splits) if common.unlabelled == "drop" else splits
    splits = with_texts(with_modalities(splits, common.modalities), common.texts)
    return with_relevance(splits, common.relevance)


def each_split(splits: Splits, change: Callable[[Clips], Clips], *notes: str) -> Splits:
    """Apply a change to every split of the data, and add notes."""
    train, valid, test = (change(part) for part in (splits.train, splits.valid, splits.test))
    return replace(splits, train=train, valid=valid, test=test, notes=(*splits.notes, *notes))


def with_modalities(splits: Splits, names: Sequence[str] | None) -> Splits:
    """Return data with only the modalities `names`. A note lists the omitted modalities.

    If `names` is None, the data are returned unchanged.

    Raises:
        InputError: a modality is absent, or fewer than two modalities are named.
    """
    if names is None:
        return splits
    modalities, place = splits.train.modalities, splits.name or "the data"
    for name in names:
        if name not in modalities:
            raise InputError(f"modalities: {place} has no {name}; choose from {', '.join(modalities)}")
    if len(set(names)) < 2:
        raise InputError(
            f"modalities: [{', '.join(names)}] does not name two modalities; "
            f"choose at least two of the modalities of {place}: {', '.join(modalities)}"
        )
    omitted = [name for name in modalities if name not in names]
    notes = [f"the key modalities leaves out these modalities of the data: {', '.join(omitted)}"] if omitted else []
    return each_split(splits, lambda part: part.keeping(names), *notes)


def with_relevance(splits: Splits, name: str | None) -> Splits:
    """Return data with a relevance rule; None keeps the rule of the data.

    Notes report a rule other than "label", and judged ids without clips.

    Raises:
        InputError: an unknown rule, a file of judgments that cannot be read, or a rule that does not apply to the data.
    """
    scored = next((part for part in (splits.test, splits.valid, splits.train) if len(part)), splits.train)
    rule = scored.relevant if name is None else chosen_relevance(name)
    check_relevance(rule, scored, splits.name or "the data")
    notes = [] if rule is LABEL else [f"a relevant result is {rule.words}"]
    notes += judgment_notes(rule, {*splits.train.ids, *splits.valid.ids, *splits.test.ids})
    return each_split(splits, lambda part: part if name is None else replace(part, relevance=rule), *notes)


class TrainingSource:
    """Data for training. A feature file is read once, for the choice of a config and for training.

    Args:
        data: path of the data, or data in memory; None for the path in the config. Modules in the folder of the data
            can be named as module:name.
        settings: config keys and values. The key `data` overrides a path.
    """

    def __init__(self, data: str | Path | Splits | Clips | None, settings: Settings = ()) -> None:
        chosen = dict(setting_pairs(settings)).get("data")
        self.data = data = chosen if isinstance(chosen, str) and not isinstance(data, Splits | Clips) else data
        self.place = data_location(data) if isinstance(data, str | Path) else None
        self._content: FeatureFile | None = None
        if self.place:
            search_beside(Path(self.place))

    def starting_config(
        self, config: str | Path | None, method: str | None, say: Callable[[str], None]
    ) -> str | Path | None:
        """Return the config to start from; None for the default config.

        Without a config or method of the user, the config is `pairs` or `few_labels` if the labels require one of them.

        Args:
            config: config chosen by the user, if any.
            method: method chosen by the user, if any, which has its own config.
            say: called with a sentence if the labels determine the config.

        Raises:
            InputError: the data cannot be read.
        """
        if config is not None or method is not None or self.data is None:
            return config
        one_each, unlabelled = self._labels(self.data)
        if one_each and not unlabelled:
            return config
        reason = "some clips have no label" if one_each else "the clips do not have exactly one class each"
        chosen = "few_labels" if one_each else "pairs"
        say(f"{reason}, so config '{chosen}' is used; choose another config with --config or --method")
        return preset_path(chosen)

    def splits(self, config: Config) -> Splits:
        """Return the data in splits, with the keys of a config applied; see `load_splits`."""
        content, self._content = self._content, None  # the content is not kept in memory during training
        if not isinstance(self.data, Splits | Clips):
            return load_splits(config, content)
        splits = Splits(self.data) if isinstance(self.data, Clips) else self.data
        if not splits.omits_valid:
            return configured_in_memory(splits, config)
        drawn = _with_validation(splits, config.common, captioned=takes_captions(config.options))
        return configured_in_memory(drawn, config, drawn=True)

    def _labels(self, data: str | Path | Splits | Clips) -> tuple[bool, bool]:
        """Return two flags on the classes of clips.

        The first flag is true if some training clip has a class, and no clip of any split has several classes. The
        second flag is true if some training clip has no class. Synthetic data and captioned sound are not read and
        count as (True, False).
        """
        if isinstance(data, Splits | Clips):
            parts = (data.train, data.valid, data.test) if isinstance(data, Splits) else (data,)
            several, labels = any(part.all_labels is not None for part in parts), parts[0].labels.numpy()
        elif str(data).startswith(SYNTHETIC) or is_captioned(data):
            return True, False
        else:
            if is_manifest(data):
                content, _ = read_media(data, ())
            else:
                content = self._content = open_data(data)
            several, labels = content.all_labels is not None, content.labels[content.rows("train")]
        unlabelled = labels == UNLABELLED
        return not several and not (labels.size > 0 and unlabelled.all()), bool(unlabelled.any())


def _with_validation(splits: Splits, common: Common, *, captioned: bool = False) -> Splits:
    """Return the splits with a share of the training clips, with all their captions, set aside for validation.

    The clips of a file, or the rows of an id if the data are not files, are divided only if the share requires this.
    """
    clips, kind = splits.train, "ids"
    names: Sequence[str] = clips.ids
    for files in clips.features.values():
        if isinstance(files, MediaFiles):
            names, kind = [files.paths[i] or name for i, name in zip(files.items, names, strict=True)], "files"
    labels = clips.labels.numpy()
    clip = labels if captioned else np.arange(len(clips))
    rows = np.unique(clip, return_index=True)[1]
    vectors = {m: values.float().cpu().numpy() for m, values in clips.features.items() if isinstance(values, Tensor)}
    groups = source_groups(names, vectors)
    drawn = stratified(np.zeros_like(labels) if captioned else labels, rows, common.validation, common.seed, groups)
    is_valid = np.isin(clip, clip[drawn])
    rest, valid = np.flatnonzero(~is_valid), np.flatnonzero(is_valid)
    train, chosen = (clips.select(torch.from_numpy(part)) for part in (rest, valid))
    draw = "stratified" if clips.class_names and not captioned else "at random"
    if count := count_divided(valid, rest, names):
        draw += f", {count} {kind} in both train and valid"
    note = DrawNote(f"{len(drawn)} clips were set aside for validation ({draw}, seed {common.seed})")
    return replace(splits, train=train, valid=chosen, notes=(*splits.notes, note))


def takes_captions(options: OptionValues) -> bool:
    """Return whether a method with these options trains on captioned sound."""
    return "cleaning" in options


def read_captioned(path: str | Path, options: OptionValues, *, complete: bool) -> Splits:
    """Read captioned sound with the options of a method; see `captioned_splits`."""
    return captioned_splits(path, cleaning=options.cleaning, captions=options.captions, complete=complete)


def data_location(data: str | Path) -> str:
    """Return the absolute path of data; an address ("synthetic:ave", "s3://b/clips.h5") stays unchanged."""
    return str(data) if is_address(data) else str(Path(data).absolute())


def with_absolute_paths(config: Config) -> Config:
    """Return the config with absolute paths, so that a run can be used from any folder.

    The paths are those of data, judgments, weight files, runs with initial weights, and folders of networks. Names of
    absent files and folders are kept.
    """
    common, towers = config.common, config.towers
    data = data_location(common.data) if common.data else None
    return replace(
        config,
        common=replace(common, data=data, relevance=relevance_name(common.relevance)),
        options=OptionValues(**{key: _absolute(key, value) for key, value in vars(config.options).items()}),
        towers=towers and towers.renamed(with_absolute_folder),
    )


def with_folders_of(stored: Config, config: Config) -> Config:
    """Return `config` with the data of `stored`, and with the paths of `stored` that differ only in their folders.

    The paths are those of `with_absolute_paths`, without runs with initial weights, whose folders name the run. On two
    machines, the same files may be in different folders.
    """
    common, options = stored.common, vars(stored.options)
    towers, networks = config.towers, stored.towers.networks if stored.towers else {}
    sources = towers.networks if towers else {}
    return replace(
        config,
        common=replace(config.common, data=common.data, relevance=_moved(config.common.relevance, common.relevance)),
        options=OptionValues(
            **{
                key: value if key == "start" else _moved(value, options.get(key))
                for key, value in vars(config.options).items()
            }
        ),
        towers=towers and replace(towers, **{m: _moved(source, networks.get(m)) for m, source in sources.items()}),
    )


def _moved(value: Any, other: object) -> Any:
    """Return `other` if `other` is an absolute path that differs from the path `value` only in its folder."""
    if not isinstance(value, str) or not isinstance(other, str):
        return value
    prefix = PREFIX if value.startswith(PREFIX) else ""
    path = value.removeprefix(prefix)
    name = path.rpartition("/")[2] if path.startswith("/") else path.removeprefix("./")
    return other if other.startswith(f"{prefix}/") and other.endswith(f"/{name}") else value


def is_path_of_weights(key: str) -> bool:
    """Return whether the option `key` of a method is the path of a weight file or of a run with initial weights."""
    return key == "start" or key.endswith("_weights")


def _absolute(key: str, value: object) -> object:
    if isinstance(value, str) and value.startswith(PREFIX):
        return with_absolute_folder(value)
    if not isinstance(value, str) or not is_path_of_weights(key) or value in ("", UNTRAINED):
        return value
    return str(Path(value).absolute()) if Path(value).exists() else value


def read(
    path: str | Path,
    *,
    layout: str | None = None,
    views: Views = (),
    validation: Fraction = 0.1,
    seed: Seed = 0,
    cleaning: str = "mei",
    captions: int = 5,
) -> Splits:
    """Read features of any layout, or captioned sound, divided into train, valid and test.

    Args:
        path: a feature file of any known layout, "synthetic:ave", or captioned sound.
        layout: layout of the file; recognized by default.
        views: views for the modalities that the layout does not name: `{"audio": VIEW}`, or `["audio=VIEW"]`.
        validation: share of the training clips set aside for validation if the data have no validation split. Clips
            with one class each are drawn class by class.
        seed: seed of the draw of validation clips.
        cleaning: rules that clean the captions, "mei" or "xie". Before training a method, pass the value of the
            option `cleaning` of this method.
        captions: largest number of captions per clip.

    Returns:
        `Splits` with `train`, `valid` and `test`, each of them `Clips`.

    Raises:
        InputError: an unreadable file, an unknown layout, inconsistent content, or an argument that is invalid or
            does not apply to the file.

    Example:
        >>> splits = aadml.read("synthetic:ave")
        >>> len(splits.train), splits.train.modalities
        (1577, ('audio', 'visual'))
    """
    if is_captioned(path):
        if layout or views:
            given = f"layout '{layout}'" if layout else f"views {views}"
            raise InputError(f"{path} is captioned sound, so {given} does not apply; leave out layout and views")
        return captioned_splits(path, cleaning=cleaning, captions=captions)
    if (cleaning, captions) != ("mei", 5):
        raise InputError(
            f"cleaning '{cleaning}' and captions {captions} apply only to captioned sound, but {path} is not captioned "
            "sound; leave out cleaning and captions"
        )
    content = open_data(path, layout=layout, views=views)
    return to_splits(content, validation=validation, seed=seed, name=shown_address(path))
