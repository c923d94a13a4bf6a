"""Reading of data for a trained model, with a check against the training features, and division by split."""

from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch

from aadml.comparison.clips import Clips, Splits, numbered
from aadml.comparison.features import Matrix, Modality
from aadml.data.captions.captioned_sets import is_captioned
from aadml.data.captions.several_texts import every_text
from aadml.data.reading import open_data
from aadml.data.sources.media_sets import read_media, with_media
from aadml.data.splitting.splits import clips_of
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.foreign.tables import shown_address
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.strings import Note
from aadml.feature_extraction.manifest import SPLITS
from aadml.model.facts import difference, fingerprint
from aadml.model.model import Model
from aadml.runs.data import each_split, read_captioned, takes_captions


def read_for(
    model: Model, path: str | Path | Splits, *, allow_other_features: bool = False, on_note: Note | None = None
) -> Splits:
    """Read data for a trained model, with one row per text. Missing splits are empty.

    Args:
        model: the trained model.
        path: a feature file of any layout, the media or captioned sound that the model reads, or data in memory.
        allow_other_features: accept features of a different extractor than that of the training features.
        on_note: called with notes for the user.

    Raises:
        InputError: the data cannot be read, are of a kind that the model does not read, or differ from the training
            features in modalities, widths or extractors.
    """
    if isinstance(path, Splits):
        if any(isinstance(features, Matrix) for split in SPLITS for features in path[split].features.values()):
            check_features(model, path, path.name or "the data", allow=allow_other_features, on_note=on_note)
        return each_split(path, lambda part: every_text(numbered(part.keeping(model.modalities), model.class_names)))
    if model.facts.towers is not None:
        content, manifest = read_media(path, model.modalities)
        return with_media(_divided(content, shown_address(path), model, on_note), manifest)
    options = model.facts.method.arguments
    if takes_captions(options):
        splits = read_captioned(path, options, complete=False)
        if on_note:
            for note in splits.notes:
                on_note(note)
        return splits
    place = shown_address(path)
    if is_captioned(path):
        raise InputError(
            f"{place} is captioned sound; pass data that the model reads: features of {', '.join(model.modalities)} "
            "(`aadml extract`)"
        )
    content = open_data(path)
    check_features(model, content, place, allow=allow_other_features, on_note=on_note)
    return _divided(content, place, model, on_note)


def check_features(
    model: Model,
    content: FeatureFile | Splits,
    place: str,
    *,
    allow: bool,
    on_note: Note | None = None,
    modalities: Collection[Modality] | None = None,
) -> None:
    """Check that features match the training features of a model.

    Args:
        model: the trained model.
        content: the features.
        place: origin of the features, for the message.
        allow: accept features of a different extractor.
        on_note: called with notes for the user.
        modalities: required modalities; by default all modalities of the model.

    Raises:
        InputError: a modality is missing, or its width, extractor or variant differs.
    """
    parts = [content.features] if isinstance(content, FeatureFile) else [content[split].features for split in SPLITS]
    arrays = {m: values for part in parts for m, values in part.items() if isinstance(values, np.ndarray | Matrix)}
    for modality in model.modalities if modalities is None else modalities:
        if modality not in arrays:
            raise InputError(
                f"{place} has no {modality} features, which the model needs (found: {', '.join(arrays) or 'none'}); "
                "pass data with these features"
            )
        width, expected_width = arrays[modality].shape[1], model.facts.dimensions[modality]
        if width != expected_width:
            raise InputError(
                f"{place}: {modality} has {width} dimensions, but the model was trained on {expected_width}; "
                "pass features of the training extractor"
            )
        expected = model.facts.features.get(modality)
        origin = fingerprint(content.provenance.get(modality, {}))
        if expected and origin and not allow and (other := difference(expected, origin)):
            raise InputError(
                f"{place}: the {modality} features were computed by {other}, but the model was not trained on such "
                "features; pass features of the training extractor, or (except in an audit) --allow-other-features"
            )
        if expected and not origin and on_note:
            on_note(f"warning: {place} does not name the extractor of its {modality} features; the model expects "
                    f"{expected['extractor']}")  # fmt: skip


def _divided(content: FeatureFile, place: str, model: Model, on_note: Note | None = None) -> Splits:
    names = content.class_names
    new = [name for name in names if name not in model.class_names]
    if new and model.class_names and on_note:
        shown = ", ".join(new[:3]) + (", ..." if len(new) > 3 else "")
        on_note(f"{place}: the model was not trained on {len(new)} of the {len(names)} classes of the data ({shown})")
    clips = numbered(clips_of(content, model.modalities), model.class_names)
    train, valid, test = (every_text(clips.select(torch.from_numpy(content.rows(split)))) for split in SPLITS)
    return Splits(train, valid, test, name=place, notes=content.notes(), provenance=content.provenance)


def nonempty_split(splits: Splits, split: str) -> Clips:
    """Return the clips of a split; an empty split raises an error.

    Raises:
        InputError: the split has no clips.
    """
    clips = splits[split]
    if not len(clips):
        counts = ", ".join(f"{len(splits[part])} {part}" for part in SPLITS)
        raise InputError(
            f"{splits.name or 'data in memory'}: there are no {split} clips ({counts}); pass data with {split} clips"
        )
    return clips
