"""The data a config names: a file of any layout, captioned sound, or media."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.relevance import LABEL, RULES, check_relevance
from aadml.configuration.config import Common, Config
from aadml.data import open_data, to_splits
from aadml.data.captions.captioned_sets import captioned_splits, is_captioned
from aadml.data.captions.several_texts import with_captions, with_texts
from aadml.data.reading import SYNTHETIC, Views
from aadml.data.sources.media_sets import is_manifest, read_media, with_media
from aadml.data.splitting.splits import has_one_label, require_one_label
from aadml.data.splitting.subsets import disjoint_classes, few_a_class, without_unlabelled
from aadml.feature_extraction.feature_file import UNLABELLED, FeatureFile, is_feature_file, open_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject, typed
from aadml.retrieval.judgments import chosen_relevance

PAIRS = "pairs"
"""The shipped config for clips that are not of one class each."""
FEW_LABELS = "few_labels"
"""The shipped config for clips of which some have no label."""


def load_splits(config: Config) -> Splits:
    """Read the data of a config and divide it; where there is no validation split, one is drawn from train.

    Raises:
        InputError: no data named, or data that cannot be read or divided.
    """
    data, common = config.data, config.common
    if config.towers is not None:
        content, manifest = read_media(data, list(config.towers.networks))
        return with_media(as_configured(_divided(config, content), common), manifest)
    if is_captioned(data):
        _refuse(common, _OF_CLASSES, f"{data} holds captioned sound, which has no classes; {_CAPTIONS_FIT}")
        if not takes_captions(config.options):
            raise InputError(
                f"{data}: holds sound and captions, {config.method} learns from features; make some with "
                "`aadml extract MANIFEST -o F.h5`, or train audio-text, 3cmlf or xie"
            )
        return _captioned(read_captioned(data, config.options), common)
    return as_configured(_divided(config, open_data(data)), common)


def configured_in_memory(splits: Splits, config: Config, *, drawn: bool = False) -> Splits:
    """Lay out data in memory, divided already, as a config reads them.

    Args:
        splits: the data.
        config: complete.
        drawn: whether the validation clips were drawn as the config says.

    Raises:
        InputError: the config would divide them otherwise.
    """
    common = config.common
    _refuse(common, ("train_per_class", "unseen_classes"), "these data are in memory and divided; give their path")
    if takes_captions(config.options):
        _refuse(common, _OF_CLASSES, f"captioned sound has no classes; {_CAPTIONS_FIT}")
        return _captioned(splits, common)
    return as_configured(splits if drawn else _own_validation(splits, common), common)


_OF_CLASSES = ("train_per_class", "unlabelled", "unseen_classes", "relevance")
"""Keys that captioned sound cannot follow."""
_CAPTIONS_FIT = "a clip's own captions are relevant"


def _refuse(common: Common, keys: Sequence[str], why: str) -> None:
    """Refuse keys that were set and that the data cannot follow."""
    for key in keys:
        if getattr(common, key) is not None:
            raise InputError(f"{key}: {why}")


def _captioned(splits: Splits, common: Common) -> Splits:
    splits = _own_validation(with_modalities(splits, common.modalities), common)
    return with_captions(splits, common.texts)


def _own_validation(splits: Splits, common: Common) -> Splits:
    """Say of data with validation clips of their own that the share of drawn ones changes nothing."""
    if common.validation == Common.validation or not len(splits.valid):
        return splits
    note = f"validation={common.validation:g} changes nothing: the data have validation clips of their own"
    return replace(splits, notes=(*splits.notes, note))


def _divided(config: Config, content: FeatureFile) -> Splits:
    data, common = config.data, config.common
    unseen, count = common.unseen_classes, common.train_per_class
    if unseen is None:
        splits = to_splits(content, validation=common.validation, seed=common.seed, name=data)
    else:
        splits = disjoint_classes(content, unseen, validation=common.validation, seed=common.seed, name=data)
    drawn = unseen is None and "valid" not in content.splits
    splits = splits if drawn or unseen is not None else _own_validation(splits, common)
    if count is None:
        return splits
    require_one_label(content, data, "train_per_class")
    kept, share = common.unlabelled == "keep", common.validation if drawn else None
    return few_a_class(splits, count, validation=share, seed=common.seed, keep_unlabelled=kept)


def as_configured(splits: Splits, common: Common) -> Splits:
    """Keep the modalities, clips and texts that a config reads, and set what is relevant."""
    splits = without_unlabelled(splits) if common.unlabelled == "drop" else splits
    splits = with_texts(with_modalities(splits, common.modalities), common.texts)
    return with_relevance(splits, common.relevance)


def with_modalities(splits: Splits, names: Sequence[str] | None) -> Splits:
    """Keep some modalities of a data set; None keeps all. The notes say what was left out.

    Raises:
        InputError: one that the data do not have, or fewer than two.
    """
    if names is None:
        return splits
    there = splits.train.modalities
    for name in names:
        if name not in there:
            raise InputError(f"modalities: {splits.name or 'the data'} has no {name}; there are {', '.join(there)}")
    if len(set(names)) < 2:
        one, place = next(iter(names), "none"), splits.name or "the data"
        raise InputError(f"modalities: {one} alone; two at least are compared, and {place} has {', '.join(there)}")
    left = [name for name in there if name not in names]
    train, valid, test = (part.keeping(names) for part in (splits.train, splits.valid, splits.test))
    notes = [f"of its modalities, {', '.join(left)} was left out (modalities)"] if left else []
    return replace(splits, train=train, valid=valid, test=test, notes=(*splits.notes, *notes))


def with_relevance(splits: Splits, name: str | None) -> Splits:
    """Set what is relevant in all parts of a data set; None leaves it to the data. The notes say what it is.

    Raises:
        InputError: no such rule or file, or one that the data cannot follow.
    """
    scored = next((part for part in (splits.test, splits.valid, splits.train) if len(part)), splits.train)
    rule = scored.relevant if name is None else chosen_relevance(name)
    check_relevance(rule, scored, splits.name or "the data")
    if name is not None:
        train, valid, test = (replace(part, relevance=rule) for part in (splits.train, splits.valid, splits.test))
        splits = replace(splits, train=train, valid=valid, test=test)
    said = () if rule is LABEL else (f"relevant is {rule.words} (relevance '{rule.name}')",)
    return replace(splits, notes=(*splits.notes, *said))


def starting_config(
    data: str | Path | Splits | Clips | None, config: str | Path | None, method: str | None, say: Callable[[str], None]
) -> str | Path | None:
    """Name the config to start from; where none is named, the labels decide: `pairs`, or `few_labels`.

    Args:
        data: to train on; None for the sample clips.
        config: that was named.
        method: that was named; it has a config of its own.
        say: called with a sentence where the data decide.

    Raises:
        InputError: data that cannot be read.
    """
    if config is not None or method is not None or data is None:
        return config
    one_each, some = _classes_of(data)
    if one_each and not some:
        return config
    why = "some clips have no label" if one_each else "the clips are not of one class each"
    chosen = FEW_LABELS if one_each else PAIRS
    say(f"{why}, so config '{chosen}' is taken; name another with --config or --method")
    return chosen


def _classes_of(data: str | Path | Splits | Clips) -> tuple[bool, bool]:
    """Tell whether clips are of one class at most, and whether some of them are of none.

    The numbers of a feature file are not read.
    """
    if isinstance(data, Splits | Clips):
        clips = data.train if isinstance(data, Splits) else data
        return clips.one_label_each, bool(clips.unlabelled)
    if str(data).startswith(SYNTHETIC) or is_captioned(data):
        return True, False
    if is_feature_file(data):
        with open_features(data) as (content, _):
            return has_one_label(content), _some_unlabelled(content)
    content = read_media(data, ())[0] if is_manifest(data) else open_data(data)
    return has_one_label(content), _some_unlabelled(content)


def _some_unlabelled(content: FeatureFile) -> bool:
    """Tell whether a training clip has no label."""
    return bool((content.labels[content.rows("train")] == UNLABELLED).any())


def takes_captions(options: JsonObject) -> bool:
    """Tell by a method's options whether it learns from captioned sound."""
    return "cleaning" in options


def read_captioned(path: str | Path, options: JsonObject) -> Splits:
    """Read captioned sound as the options of a method ask for it."""
    return captioned_splits(path, cleaning=typed(options, "cleaning", str), captions=typed(options, "captions", int))


def data_location(data: str | Path) -> str:
    """Give the absolute path of data; the name of drawn features ("synthetic:ave") stays as it is."""
    return str(data) if str(data).startswith(SYNTHETIC) else str(Path(data).absolute())


def relevance_name(relevance: str | Path | None) -> str | None:
    """Give the name of a rule of relevance as it is, and of a file its absolute path."""
    return None if relevance is None else relevance if relevance in RULES else str(Path(relevance).absolute())


def read(
    path: str | Path,
    *,
    layout: str | None = None,
    audio: str | None = None,
    visual: str | None = None,
    text: str | None = None,
    views: Views = (),
    validation: float = 0.1,
    seed: int = 0,
    cleaning: str = "mei",
    captions: int = 5,
) -> Splits:
    """Read features of any layout, or captioned sound, divided into train, valid and test.

    Args:
        path: a feature file, a layout the field has, "synthetic:ave", or captioned sound.
        layout: of the file; recognized by default.
        audio: the view taken as audio, where the layout does not say.
        visual: the view taken as visual, where the layout does not say.
        text: the view taken as text, where the layout does not say.
        views: those taken as further modalities: `{"flow": VIEW}`, or `["flow=VIEW"]`.
        validation: share of each class's training clips that validates, where the data have no validation split.
        seed: of that choice.
        cleaning: of captions, as the method that will learn from them wants it ("mei", "xie").
        captions: of each clip, at most so many.

    Returns:
        `Splits` with `train`, `valid` and `test`, each of them `Clips`.

    Raises:
        InputError: nothing there, no known layout, or content that contradicts itself.

    Example:
        >>> splits = aadml.read("synthetic:ave")
        >>> len(splits.train), splits.train.modalities
        (1577, ('audio', 'visual'))
    """
    if seed < 0:
        raise InputError(f"seed: {seed} given; a whole number from 0 is possible")
    if is_captioned(path):
        if named := next((one for one in (layout, audio, visual, text, views) if one), None):
            raise InputError(f"{path}: is captioned sound, which has no layout and no views to choose; {named} given")
        return captioned_splits(path, cleaning=cleaning, captions=captions)
    if (cleaning, captions) != ("mei", 5):
        raise InputError(f"{path}: holds features; cleaning and captions are those of captioned sound")
    content = open_data(path, layout=layout, audio=audio, visual=visual, text=text, views=views)
    return to_splits(content, validation=validation, seed=seed, name=str(path))


def protocol_of(config: Config) -> str:
    """Name the protocol of a run's own scores: every item is embedded alone, whatever classes are tested."""
    return "inductive" if config.common.unseen_classes is None else "unseen-classes"
