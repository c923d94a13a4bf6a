"""Conversion of features of any layout to a feature file."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from aadml.comparison.options import Seed
from aadml.data.layouts.arrays_on_disk import read_class_names
from aadml.data.layouts.released import RELEASED, like_released, write_split_keys
from aadml.data.reading import SYNTHETIC, Views, open_data
from aadml.data.splitting.division import divided
from aadml.data.splitting.shared_clips import recording_notes
from aadml.data.splitting.split_duplicates import without_duplicates
from aadml.data.splitting.splits import without_classes, without_incomplete_classes
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile
from aadml.feature_extraction.feature_file.reading import is_feature_file
from aadml.feature_extraction.feature_file.replacement import refuse_other_vectors
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.atomic import refuse_input, refuse_other_kind
from aadml.feature_extraction.ground.errors import InputError


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
    incomplete_classes: Literal["keep", "drop"] = "keep",
    first_label: bool = False,
    split: str | None = None,
    seed: Seed = 0,
    drop_duplicates: Literal["train", "test"] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> FeatureFile:
    """Write features of any supported layout as a feature file, or synthetic features in the layout of the papers.

    Args:
        source: the input. "synthetic:ave" and "synthetic:vegas" draw features with the sizes of these data sets.
            "synthetic:pairs" draws pairs that share more than their class.
        target: the file to write.
        layout: layout of the input (`aadml list datasets`); recognized by default. For synthetic features, the layout
            of the output: "split-keys" imitates the files of the papers.
        audio: name of the array (or view) of audio, if the layout does not define it.
        visual: name of the array (or view) of visual, if the layout does not define it.
        text: name of the array (or view) of text, if the layout does not define it.
        views: arrays (or views) of further modalities: `{"flow": VIEW}`, or `["flow=VIEW"]`.
        class_names: file with the names of the classes, one per line, in the order of the labels. If the file
            has more names than the data have classes, labels are the numbers of names, counted from 0. Labels that
            are text keep their names, which must be in the file.
        incomplete_classes: "keep" or "drop" the classes without train or without test clips.
        first_label: keep only the first label of clips with several labels.
        split: rule to divide the clips again, class by class, such as random:0.7/0.1/0.2 (train, valid, test).
            Clips with equal cells in a column `recording` are in the same split, and so are clips with equal features
            in a modality other than text. A clip of several classes counts in each class, unless `first_label` is set.
        seed: random seed of the new division.
        drop_duplicates: remove one of two clips that are equal up to noise and encoding but in different splits
            (see `aadml inspect`). Texts are not compared. "train" removes the clip in the earlier split, and "test"
            removes the clip in the later split. The order of the splits is train, valid, test.
        on_note: called with a sentence on each change or weakness of the data.

    Returns:
        The content that was written.

    Raises:
        InputError: a source that cannot be read as features, an invalid or inapplicable option, or a target that cannot
            be written or is a feature file of other vectors.
    """
    imitated = layout is not None and str(source).startswith(SYNTHETIC)
    if imitated:
        _check_imitation(layout, target)
    else:
        refuse_input(target, source)
        refuse_other_kind(target, "a feature file", is_feature_file)
    if seed and split is None:
        raise InputError(
            f"convert: seed {seed} has an effect only with a new division; pass --split random:TRAIN/VALID/TEST"
        )
    names = read_class_names(class_names) if class_names else None
    content = open_data(
        source, layout=None if imitated else layout, audio=audio, visual=visual, text=text, views=views,
        class_names=names, undivided="none" if split is None else "all",
    )  # fmt: skip
    refuse_other_vectors(target, content.features, str(source))
    labels, copies, classes = list[str](), list[str](), list[str]()
    if first_label:
        content, labels = _with_first_labels(content)
    if split is not None:
        content = divided(content, split, seed)
    if drop_duplicates is not None:
        content, copies = without_duplicates(content, drop_duplicates)
    if incomplete_classes == "drop":
        content, classes = without_incomplete_classes(content, str(source))
    if imitated:
        content = like_released(content)
    for note in (*labels, *copies, *classes, *content.notes(), *recording_notes(content)):
        if on_note:
            on_note(note)
    (write_split_keys if imitated else write_features)(target, content)
    return content


def _check_imitation(layout: str | None, target: str | os.PathLike[str]) -> None:
    if layout != RELEASED:
        raise InputError(
            f"--layout {layout}: synthetic features cannot have this layout; pass --layout {RELEASED}, or omit --layout"
        )
    if os.path.lexists(target):
        raise InputError(f"{target} exists and is not overwritten; pass another output")


def _with_first_labels(content: FeatureFile) -> tuple[FeatureFile, list[str]]:
    """Return `content` with only the first label of each clip, and a note.

    Classes that are then unused are removed. If no clip has several labels, `content` is returned unchanged.
    """
    if content.all_labels is None:
        return content, ["--first-label changed nothing: no clip has several labels"]
    used = set(content.labels.tolist()) - {UNLABELLED}
    unused = [number for number in range(len(content.class_names)) if number not in used]
    note = "clips with several labels keep only the first label"
    if unused:
        names = ", ".join(content.class_names[number] for number in unused)
        note += f"; classes that are the first label of no clip were removed: {names}"
    return without_classes(replace(content, all_labels=None), unused), [note]
