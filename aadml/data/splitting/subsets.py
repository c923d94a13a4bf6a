"""Random parts of a data set: few training clips per class, or splits without a common class."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.clips import Splits
from aadml.data.splitting.shared_clips import recording_notes
from aadml.data.splitting.splits import DrawNote, clips_of, require_one_label, without_classes
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import SPLITS

LEAST_CLASSES = 2
"""Smallest number of classes for a retrieval task."""


def few_a_class(
    splits: Splits, count: int, *, validation: float | None, seed: int, keep_unlabelled: bool = False
) -> Splits:
    """Return splits with at most `count` training clips of each class.

    A class with fewer training clips keeps all of these clips. With equal seeds, a smaller count selects some of
    the clips of a larger count. Training clips without a label are kept.

    Args:
        splits: the data, divided.
        count: number of training clips per class.
        validation: number of validation clips per class, as a share of `count`; at least one clip is drawn.
            Validation clips without a label are then removed. None leaves the validation split unchanged.
        seed: seed of the draw.
        keep_unlabelled: keep the training clips that are not drawn, without their labels.

    Returns:
        The splits with fewer clips or fewer labels; the notes state the counts.
    """
    labels = splits.train.labels.numpy()
    chosen = _first_of_each(labels, count, seed)
    notes: list[str] = [DrawNote(f"{count} training clips per class were drawn, {len(chosen)} in all (seed {seed})")]
    if keep_unlabelled:
        fewer_labels = torch.full_like(splits.train.labels, UNLABELLED)
        fewer_labels[chosen] = splits.train.labels[chosen]
        train = replace(splits.train, labels=fewer_labels)
        notes.append(f"the other {train.unlabelled} training clips are kept without a label")
    else:
        had_none = torch.from_numpy(np.flatnonzero(labels == UNLABELLED))
        train = splits.train.select(torch.cat([chosen, had_none]).sort().values)
    valid = splits.valid
    if validation is not None:
        valid_count = max(1, round(validation * count))
        valid = valid.select(_first_of_each(valid.labels.numpy(), valid_count, seed))
        notes.append(f"{valid_count} validation clips per class were drawn, {len(valid)} in all")
        if splits.valid.unlabelled:
            notes.append(f"{splits.valid.unlabelled} validation clips without a label were left out")
    return replace(splits, train=train, valid=valid, notes=(*splits.notes, *notes))


def without_unlabelled(splits: Splits) -> Splits:
    """Return splits without the unlabeled training and validation clips; data without classes are not changed."""
    for name in ("train", "valid"):
        part = splits[name]
        if part.unlabelled and part.class_names:
            note = f"{part.unlabelled} {name} clips without a label are left out"
            labeled = part.select((part.labels != UNLABELLED).nonzero()[:, 0])
            splits = replace(splits.having(name, labeled), notes=(*splits.notes, note))
    return splits


def disjoint_classes(content: FeatureFile, share: float, *, validation: float, seed: int, name: str = "") -> Splits:
    """Return random splits that have no class in common.

    Args:
        content: the data; its splits are not used.
        share: share of the classes used for test; at least two classes are used.
        validation: share of the classes used for validation; at least two classes are used.
        seed: seed of the division of the classes.
        name: source of the data, for messages.

    Returns:
        Splits, each with its own classes numbered from 0, without the clips that have no label. Notes report recordings
        with clips in two splits.

    Raises:
        InputError: there are too few classes, or clips have no labels or several labels.
    """
    require_one_label(content, name or "the data", "unseen_classes")
    classes = np.unique(content.labels[content.labels != UNLABELLED])
    test, valid = (max(LEAST_CLASSES, round(part * len(classes))) for part in (share, validation))
    train = len(classes) - test - valid
    if train < LEAST_CLASSES:
        raise InputError(
            f"unseen_classes: the share {share:g} of {len(classes)} classes leaves {max(train, 0)} for training, with "
            f"{test} for test and {valid} for validation; choose a smaller share, or data with more classes"
        )
    order = np.random.default_rng(seed).permutation(classes)
    parts = [set(part.tolist()) for part in np.split(order, [train, train + valid])]
    labels = range(UNLABELLED, len(content.class_names))
    clips = [clips_of(without_classes(content, [label for label in labels if label not in part])) for part in parts]
    tested = ", ".join(clips[2].class_names)
    note = f"{train} classes are for training, {valid} for validation, {test} for test ({tested}; seed {seed})"
    split_of = {label: split for split, part in zip(SPLITS, parts, strict=True) for label in part}
    drawn = replace(content, splits=tuple(split_of.get(label, "") for label in content.labels.tolist()))
    notes = (DrawNote(note), *recording_notes(drawn))
    return Splits(clips[0], clips[1], clips[2], name=name, notes=notes, provenance=content.provenance)


def _first_of_each(labels: NDArray[np.int64], count: int, seed: int) -> torch.Tensor:
    generator = np.random.default_rng(seed)
    classes = np.unique(labels[labels != UNLABELLED])
    chosen = [generator.permutation(np.flatnonzero(labels == label))[:count] for label in classes]
    return torch.from_numpy(np.sort(np.concatenate([np.empty(0, np.int64), *chosen])))
