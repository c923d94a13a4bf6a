"""Conversion: features of any layout become a feature file."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from aadml.data.layouts.arrays_on_disk import read_class_names
from aadml.data.reading import SYNTHETIC, Views, open_data
from aadml.data.released import RELEASED, like_released, write_split_keys
from aadml.data.splitting.division import divide, shares_of
from aadml.data.splitting.split_duplicates import without_duplicates
from aadml.data.splitting.splits import without_incomplete_classes
from aadml.feature_extraction.feature_file import UNLABELLED, FeatureFile, is_feature_file, write_features
from aadml.feature_extraction.ground.atomic import refuse_other_kind
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import inner, nested, texts
from aadml.feature_extraction.manifest import SPLITS


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    layout: str | None = None,
    audio: str | None = None,
    visual: str | None = None,
    text: str | None = None,
    views: Views = (),
    class_names: str | os.PathLike[str] | None = None,
    test_fold: int | None = None,
    incomplete_classes: Literal["keep", "drop"] = "keep",
    first_label: bool = False,
    split: str | None = None,
    seed: int = 0,
    drop_duplicates: Literal["train", "test"] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> FeatureFile:
    """Turn features of any supported layout into a feature file.

    Args:
        source: what is read; "synthetic:ave" and "synthetic:vegas" draw features of their sizes, "synthetic:pairs"
            draws pairs that share more than their class.
        target: the feature file to write.
        layout: of `source`; recognized by default. Drawn features are written in it: "split-keys" makes a file that
            looks like those of the papers (see `aadml.data.released`), to rehearse on.
        audio: the view that counts as audio, where the layout does not say.
        visual: the view that counts as visual, where the layout does not say.
        text: the view that counts as text, where the layout does not say.
        views: those taken as further modalities: `{"flow": VIEW}`, or `["flow=VIEW"]`.
        class_names: a file with the names of the classes, one per line, in the order of the labels.
        test_fold: which fold is the test split; the last by default.
        incomplete_classes: what is done with classes that miss train or test clips.
        first_label: keep the first label of clips that have several.
        split: "random:0.7/0.1/0.2": divide the clips anew (train, valid, test), each class by itself.
        seed: of that division.
        drop_duplicates: leave out clips that stand in two splits up to noise and encoding (see `inspect`): "train"
            leaves out those that are trained on, as the test clips are the reference; "test" those that are scored.
        on_note: called with a sentence on each thing done on the way.

    Returns:
        What was written.

    Raises:
        InputError: nothing there, no known layout, content that contradicts itself, or a target that cannot be written.
    """
    if str(source).startswith(SYNTHETIC) and layout is not None:
        return _rehearsal(str(source), target, layout)
    if Path(target).exists() and Path(source).exists() and Path(target).samefile(source):
        raise InputError(f"{target}: is what is read; name another OUT")
    refuse_other_kind(target, "a feature file", is_feature_file)
    if seed and split is None:
        raise InputError(f"convert: seed {seed} is that of a new division; give --split random:TRAIN/VALID/TEST too")
    names = read_class_names(class_names) if class_names else None
    content = open_data(
        source, layout=layout, audio=audio, visual=visual, text=text, views=views, class_names=names,
        test_fold=test_fold, undivided=split is not None,
    )  # fmt: skip
    notes: list[str] = []
    if split is not None:
        content = _divided(content, split, seed)
    if first_label and content.all_labels is not None:
        content, more = _with_first_labels(content)
        notes += more
    elif first_label:
        notes.append("--first-label changed nothing: no clip has several labels")
    if drop_duplicates is not None:
        content, more = without_duplicates(content, drop_duplicates)
        notes += more
    if incomplete_classes == "drop":
        content, more = without_incomplete_classes(content, str(source))
        notes += more
    for note in (*notes, *content.notes()):
        if on_note:
            on_note(note)
    write_features(target, content)
    return content


def _rehearsal(source: str, target: str | os.PathLike[str], layout: str) -> FeatureFile:
    """Write drawn features as the papers' files have them."""
    if layout != RELEASED:
        raise InputError(
            f"--layout {layout}: drawn features are written as {RELEASED}, or as a feature file without it"
        )
    if os.path.lexists(target):
        raise InputError(f"{target}: exists; it is not overwritten, name another output")
    content = like_released(open_data(source))
    write_split_keys(target, content)
    return content


def _divided(content: FeatureFile, rule: str, seed: int) -> FeatureFile:
    """Divide the clips anew; the provenance says so."""
    kind, _, shares = rule.partition(":")
    if kind != "random":
        raise InputError(f"--split {rule}: write random:TRAIN/VALID/TEST, as in random:0.7/0.1/0.2")
    labels = [() if label == UNLABELLED else (content.class_names[label],) for label in content.labels]
    splits = tuple(divide(labels, content.ids, shares_of(shares), seed))
    counts = ", ".join(f"{splits.count(part)} {part}" for part in SPLITS)
    note = f"the split was drawn at random ({shares}, seed {seed}): {counts}"
    origin = {
        name: {**nested(content.provenance, name), "notes": [*texts(inner(content.provenance, name, "notes")), note]}
        for name in content.features
    }
    return replace(content, splits=splits, provenance=origin)


def _with_first_labels(content: FeatureFile) -> tuple[FeatureFile, list[str]]:
    """Keep of each clip its first label, and the classes that are left."""
    labelled = content.labels != UNLABELLED
    left, codes = np.unique(content.labels[labelled], return_inverse=True)
    labels = np.full(len(labelled), UNLABELLED, dtype=np.int64)
    labels[labelled] = codes
    names = tuple(content.class_names[label] for label in left)
    lost = [name for name in content.class_names if name not in names]
    note = "of clips with several labels the first was kept"
    if lost:
        note += f"; no clip has one of these as its first: {', '.join(lost)}"
    return replace(content, labels=labels, class_names=names, all_labels=None), [note]
