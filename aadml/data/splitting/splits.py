"""Train, valid and test clips of a feature file."""

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from aadml.comparison.clips import Clips, Splits
from aadml.comparison.features import Features
from aadml.comparison.stored_rows import StoredRows
from aadml.data.splitting.division import divide, divided_recordings, recordings, source_groups
from aadml.data.splitting.folds import first_five
from aadml.data.splitting.shared_clips import recording_notes, with_copy_notes
from aadml.feature_extraction.feature_file.content import UNLABELLED, FeatureFile
from aadml.feature_extraction.feature_file.names import in_order
from aadml.feature_extraction.feature_file.rows import is_large
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import SPLITS


class DrawNote(str):
    """Note on a split whose clips or classes were drawn by the seed of the run."""

    __slots__ = ()


class ClassNote(str):
    """Note on data whose classes cannot be trained on: only one class, or a class without train or test clips."""

    __slots__ = ()


def to_splits(content: FeatureFile, *, validation: float = 0.1, seed: int = 0, name: str = "") -> Splits:
    """Return the train, valid and test clips. Draw a missing validation split from train.

    Args:
        content: the data.
        validation: share of each class's train clips to use for validation, if the data have no validation split.
        seed: seed of the draw of validation clips.
        name: source of the data, for messages.

    Returns:
        The splits; their notes describe changes and weaknesses of the data.

    Raises:
        InputError: there are no train or no test clips, or no clip can be set aside for validation.
    """
    place, notes = name or "the data", list(content.notes())
    if problem := _class_problem(content, _incomplete_classes(content, place)):
        notes.append(ClassNote(problem))
    splits = np.asarray(content.splits, dtype=object)
    if not (splits == "valid").any():
        groups, rows = source_groups(recordings(content), content.features), content.rows("train")
        chosen = stratified(content.labels, rows, validation, seed, groups)
        if not len(chosen):
            few = "no class has two train clips" if content.class_names else "there is one train clip"
            raise InputError(f"{place}: {few}, so no clip can be set aside for validation; add train clips")
        splits[chosen] = "valid"
        how = "stratified" if content.class_names else "at random"
        how += divided_recordings(content, [groups[row] for row in rows], splits[rows].tolist())
        notes.append(DrawNote(f"{len(chosen)} train clips were set aside for validation ({how}, seed {seed})"))
    counts = Counter(content.labels[splits == "train"].tolist())
    lone = [content.class_names[label] for label, count in counts.items() if count == 1 and label != UNLABELLED]
    if lone and has_one_label(content):
        notes.append(f"classes have only one train clip: {first_five(lone)}")
    clips = clips_of(content)
    train, valid, test = (clips.select(torch.from_numpy(np.flatnonzero(splits == part))) for part in SPLITS)
    notes += recording_notes(replace(content, splits=tuple(splits)))
    return with_copy_notes(Splits(train, valid, test, name=name, notes=tuple(notes), provenance=content.provenance))


def stratified(
    labels: NDArray[np.int64], rows: NDArray[np.int64], share: float, seed: int, groups: Sequence[Hashable]
) -> NDArray[np.int64]:
    """Draw about `share` of the `rows` of each class: at least one row and never all; a single row is not drawn.

    Groups of several rows are drawn as a whole, and a group of several classes counts in each class. Then the single
    rows of a class are drawn up to its share. A class that would lose more than twice its share loses single rows
    instead, as do all classes if no group can be drawn. Groups are divided if the single rows are too few.

    Args:
        labels: (n,) classes of all clips.
        rows: the row numbers to draw from.
        share: share to draw, between 0 and 1.
        seed: seed of the draw; equal seeds produce equal rows.
        groups: (n,) groups, such as recordings.

    Returns:
        The drawn row numbers, sorted.
    """
    sizes = Counter(groups[row] for row in rows)
    is_single = np.zeros(len(labels), dtype=np.bool_)
    is_single[rows] = [sizes[groups[row]] == 1 for row in rows]
    grouped, by_group = rows[~is_single[rows]], rows[:0]
    if len(grouped):
        names = [groups[row] for row in grouped]
        drawn = divide([(str(label),) for label in labels[grouped]], names, (1 - share, 0.0, share), seed)
        by_group = grouped[np.asarray(drawn) == "test"]
    generator = np.random.default_rng(seed)
    chosen = []
    for label in np.unique(labels[rows]):
        members = generator.permutation(rows[labels[rows] == label])
        count = min(max(round(share * len(members)), 1), len(members) - 1)
        taken, others = np.intersect1d(members, by_group), members[is_single[members]]
        if len(by_group) and len(taken) <= 2 * max(count, 1):
            chosen += [taken, others[: max(count - len(taken), 0)]]
        else:
            chosen.append((others if len(others) >= count else members)[:count])
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *chosen]))


def count_divided(chosen: NDArray[np.int64], rest: NDArray[np.int64], groups: Sequence[str]) -> int:
    """Return the number of groups with rows in both `chosen` and `rest`."""
    return len({groups[row] for row in chosen} & {groups[row] for row in rest})


def without_incomplete_classes(content: FeatureFile, place: str) -> tuple[FeatureFile, list[str]]:
    """Return `content` without the classes that lack train or test clips, and notes on these classes.

    Raises:
        InputError: no train or no test clips, clips without labels or with several labels, or fewer than two remaining
            classes.
    """
    missing = _incomplete_classes(content, place)
    require_one_label(content, place, "incomplete_classes=drop")
    problem = _class_problem(content, missing)
    if problem and len(set(content.labels.tolist()) - {UNLABELLED} - set(missing)) < 2:
        raise InputError(
            f"{place}: {problem}, so fewer than two classes have both train and test clips; add clips of two classes"
        )
    if not missing:
        return content, []
    note = f"incomplete classes were left out: {_described(content, missing)}"
    return without_classes(content, list(missing)), [note]


def without_classes(content: FeatureFile, labels: Sequence[int]) -> FeatureFile:
    """Return `content` without the clips of the classes `labels`; the other classes are renumbered in order."""
    excluded = np.isin(content.labels, list(labels))
    left = [label for label in range(len(content.class_names)) if label not in set(labels)]
    rest = content.select(np.flatnonzero(~excluded).astype(np.int64)) if excluded.any() else content
    codes = np.searchsorted(np.asarray(left, dtype=np.int64), rest.labels).astype(np.int64)
    codes[rest.labels == UNLABELLED] = UNLABELLED
    all_labels = None if rest.all_labels is None else rest.all_labels[:, left]
    names = tuple(content.class_names[label] for label in left)
    return replace(rest, labels=codes, class_names=names, all_labels=all_labels)


def clips_of(content: FeatureFile, modalities: Collection[str] | None = None) -> Clips:
    """Return all clips of a feature file, with the features of `modalities`, or of all modalities if None."""
    names = [m for m in in_order(content.features) if modalities is None or m in modalities]
    tensors: dict[str, Features] = {}
    for name in names:
        values = content.features[name]  # rows of many gigabytes are read batch by batch
        tensors[name] = StoredRows.of(values) if is_large(values.nbytes) else torch.from_numpy(values)
    all_labels = None if content.all_labels is None else torch.from_numpy(content.all_labels.astype(bool))
    masks = {m: torch.from_numpy(content.has(m)) for m in names if not content.has(m).all()}
    labels = torch.from_numpy(content.labels)
    texts = content.texts if "text" in names else None
    return Clips(tensors, labels, content.ids, content.class_names, all_labels, present=masks, texts=texts)


def has_one_label(content: FeatureFile) -> bool:
    """Return whether the clips have labels, at most one per clip."""
    return content.all_labels is None and bool((content.labels != UNLABELLED).any())


def require_one_label(content: FeatureFile, place: str, what: str) -> None:
    """Raise InputError for data without labels, and for clips with several labels.

    Args:
        content: the data.
        place: source of the data, for messages.
        what: name of the option that needs classes ("unseen_classes").
    """
    if not content.class_names:
        raise InputError(f"{place}: its clips have no labels, but {what} needs classes; leave {what} out")
    if content.all_labels is not None:
        several = int((content.all_labels.sum(axis=1) > 1).sum())
        raise InputError(
            f"{place}: {several} clips have several labels, but {what} needs one class per clip; keep the first "
            "label of each clip: `aadml convert IN OUT --first-label`"
        )


def _incomplete_classes(content: FeatureFile, place: str) -> dict[int, str]:
    """For each class without train or test clips, return the split that lacks the class: "train" or "test".

    The result is empty if the clips have no labels, or if clips have several labels.

    Raises:
        InputError: there are no train or no test clips.
    """
    for part in ("train", "test"):
        if not len(content.rows(part)):
            counts = ", ".join(f"{count} {split}" for split, count in Counter(content.splits).items()) or "none"
            raise InputError(
                f"{place} has no {part} clips (clips per split: {counts}); pass data with train and test clips"
            )
    if not has_one_label(content):
        return {}
    used = sorted(set(content.labels.tolist()) - {UNLABELLED})
    labels = {part: set(content.labels[content.rows(part)].tolist()) for part in ("train", "test")}
    return {label: part for part in labels for label in used if label not in labels[part]}


def _class_problem(content: FeatureFile, missing: dict[int, str]) -> str:
    """Return words for clips of only one class, or for the classes `missing` (see `_incomplete_classes`), if any."""
    used = set(content.labels.tolist()) - {UNLABELLED}
    if has_one_label(content) and len(used) == 1:
        return f"all clips are of one class ('{content.class_names[used.pop()]}')"
    return f"classes are incomplete ({_described(content, missing)})" if missing else ""


def _described(content: FeatureFile, missing: dict[int, str]) -> str:
    return first_five([f"'{content.class_names[label]}' has no {part} clips" for label, part in missing.items()])
