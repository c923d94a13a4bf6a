"""Data that a model meets after its training: read, checked against what the model expects, and laid out by split."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

import torch

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.features import Matrix, Modality
from aadml.data import open_data
from aadml.data.captions.captioned_sets import is_captioned
from aadml.data.captions.several_texts import every_text
from aadml.data.sources.media_sets import read_media, with_media
from aadml.data.splitting.splits import clips_of
from aadml.feature_extraction.feature_file import UNLABELLED, FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import JsonObject
from aadml.model.facts import difference, fingerprint
from aadml.model.model import Model
from aadml.runs.data import read_captioned, takes_captions

Note = Callable[[str], None]


def read_for(
    model: Model, path: str | Path, *, allow_other_features: bool = False, on_note: Note | None = None
) -> Splits:
    """Read data for a trained model; splits that the file does not have are empty.

    Args:
        model: whose modalities and features are expected.
        path: a feature file of any layout, or captioned sound where the model reads that.
        allow_other_features: take features of another extractor than the model was trained on.
        on_note: called with notes for the user.

    Raises:
        InputError: a modality is missing, or has another width, or was made by another extractor.
    """
    if model.facts.towers is not None:
        content, manifest = read_media(path, model.modalities)
        return with_media(_divided(content, str(path), model, on_note), manifest)
    options = model.facts.method.arguments
    reads_sound = takes_captions(options)
    if reads_sound != is_captioned(path):
        if reads_sound:
            raise InputError(f"{path}: is not captioned sound, which the model reads")
        names = ", ".join(model.modalities)
        raise InputError(f"{path}: is captioned sound; the model reads features of {names} (`aadml extract`)")
    if reads_sound:
        return read_captioned(path, options)
    content = open_data(path)
    check_features(model, content, str(path), allow=allow_other_features, on_note=on_note)
    return _divided(content, str(path), model, on_note)


def matched_to_model(
    model: Model, splits: Splits, *, allow_other_features: bool = False, on_note: Note | None = None
) -> Splits:
    """Lay data in memory out for a trained model, as `read_for` does those of a file."""
    parts = [splits.train, splits.valid, splits.test]
    widths = {m: values.shape[1] for part in parts for m, values in part.features.items() if isinstance(values, Matrix)}
    if widths:
        place = splits.name or "the data"
        _check(model, widths, splits.provenance, place, model.modalities, allow=allow_other_features, note=on_note)
    train, valid, test = (_numbered(part.keeping(model.modalities), model.class_names) for part in parts)
    return replace(splits, train=train, valid=valid, test=test)


def check_features(
    model: Model,
    content: FeatureFile,
    place: str,
    *,
    allow: bool,
    on_note: Note | None = None,
    modalities: Collection[Modality] | None = None,
) -> None:
    """Refuse features that are not what a model was trained on.

    Args:
        model: that is to take them.
        content: the features.
        place: where they come from, for the message.
        allow: take features of another extractor.
        on_note: called with notes for the user.
        modalities: that must be there; by default all of the model.

    Raises:
        InputError: a modality is missing, has another width, or was made by another extractor or variant.
    """
    widths = {modality: values.shape[1] for modality, values in content.features.items()}
    wanted = model.modalities if modalities is None else modalities
    _check(model, widths, content.provenance, place, wanted, allow=allow, note=on_note)


def _check(
    model: Model,
    widths: Mapping[Modality, int],
    provenance: Mapping[str, JsonObject],
    place: str,
    modalities: Collection[Modality],
    *,
    allow: bool,
    note: Note | None,
) -> None:
    for modality in modalities:
        if modality not in widths:
            raise InputError(f"{place}: has no {modality} features; there are {', '.join(widths)}")
        given, wanted = widths[modality], model.facts.dimensions[modality]
        if given != wanted:
            raise InputError(f"{place}: {modality} has {given} dimensions; the model was trained on {wanted}")
        expected = model.facts.features.get(modality, {})
        found = fingerprint(provenance.get(modality, {}))
        if not expected or not found:
            if note and expected:
                note(f"warning: {place} does not say what made its {modality} features; the model expects "
                        f"{expected['extractor']}")  # fmt: skip
            continue
        other = difference(expected, found)
        if other and not allow:
            raise InputError(
                f"{place}: its {modality} features were made by {other}, on which the model was not trained; give "
                "--allow-other-features if that is meant"
            )


def _divided(content: FeatureFile, place: str, model: Model, on_note: Note | None = None) -> Splits:
    names = content.class_names
    new = [name for name in names if name not in model.class_names]
    if new and model.class_names and on_note:
        shown = ", ".join(new[:3]) + (", ..." if len(new) > 3 else "")
        on_note(f"{place}: {len(new)} of its {len(names)} classes ({shown}) are none that the model was trained on")
    whole = _numbered(clips_of(content, model.modalities), model.class_names)
    rows = [torch.from_numpy(content.rows(split)) for split in ("train", "valid", "test")]
    train, valid, test = (every_text(whole.select(own)) for own in rows)
    return Splits(train, valid, test, name=place, notes=content.notes(), provenance=content.provenance)


def _numbered(clips: Clips, names: tuple[str, ...]) -> Clips:
    """Number the classes of clips as among `names`, where they are all there."""
    own = clips.class_names
    if not own or own == names or not set(own) <= set(names):
        return clips
    codes = torch.tensor([names.index(name) for name in own])
    labels, marked = torch.cat([codes, torch.tensor([UNLABELLED])])[clips.labels], clips.all_labels
    if marked is not None:
        marked = torch.zeros(len(clips), len(names), dtype=torch.bool).index_copy(1, codes, marked)
    return replace(clips, labels=labels, class_names=names, all_labels=marked)


def nonempty_split(splits: Splits, split: str) -> Clips:
    """Return a split.

    Raises:
        InputError: it has no clips.
    """
    clips = splits[split]
    if not len(clips):
        counts = ", ".join(f"{len(splits[part])} {part}" for part in ("train", "valid", "test"))
        raise InputError(f"{splits.name}: has no {split} clips (there are {counts}); choose another --split")
    return clips
