"""Listing of a folder of media: one folder per class, or no labels; divided at random, or by its top folders."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aadml.data.manifests.listing import ListedClip, Listing, equal_files, left_aside, media_files, utf8
from aadml.data.splitting import division
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import SPLITS

_SPLIT_FOLDERS = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}


def class_folders(source: Path, *, valid: float = 0.1, test: float = 0.2, seed: int = 0) -> Listing:
    """List a tree `<class>/.../<clip>`, or `<split>/<class>/.../<clip>` with splits train, valid (or val) and test.

    A tree without splits is divided at random, class by class; files with equal bytes are in the same split.

    Args:
        source: the folder.
        valid: share of each class that is for validation.
        test: share of each class that is for test.
        seed: seed of the division; equal seeds give equal splits.

    Raises:
        InputError: no such folder, no media, or shares that leave no clips for train.
    """
    if min(valid, test) < 0 or valid + test >= 1:
        raise InputError(
            f"shares: valid {valid:g} and test {test:g} given; both must be at least 0, and their sum below 1"
        )
    listing = folder(source)
    if not listing.entries[0].labels:
        raise InputError(f"{source}: holds no media in folders; one folder per class is expected")
    if listing.entries[0].split:
        return listing
    labels, groups = [entry.label for entry in listing.entries], [entry.source or entry.id for entry in listing.entries]
    splits = divide(labels, groups, valid=valid, test=test, seed=seed)
    note = f"each class was split at random: {valid:.0%} valid, {test:.0%} test, seed {seed}"
    entries = tuple(replace(entry, split=split) for entry, split in zip(listing.entries, splits, strict=True))
    return replace(listing, entries=entries, notes=(note, *listing.notes))


def folder(source: Path, *, no_labels: bool = False) -> Listing:
    """List a folder of media: one folder per class, or no labels; in folders train, valid (or val), test, or undivided.

    Args:
        source: the folder.
        no_labels: ignore the folders of classes.

    Returns:
        The clips; if the folder is undivided, their splits are empty.

    Raises:
        InputError: no such folder, or no media in it.
    """
    if not source.is_dir():
        raise InputError(f"{source}: is not a folder; pass a folder of media")
    folders_of = {file: file.relative_to(source).parts[:-1] for file in media_files(source)}
    tops = {folders[0] for folders in folders_of.values() if folders}
    divided = {"train", "test"} <= tops <= set(_SPLIT_FOLDERS)
    class_of = {f: folders[int(divided) :][:1] for f, folders in folders_of.items() if folders or not divided}
    labelled = any(class_of.values()) and not no_labels
    files = [file for file, labels in class_of.items() if labels or not labelled]
    if not files:
        raise InputError("; ".join([f"{source}: holds no media", *left_aside(source), "add sound or video files"]))
    equal = equal_files(files)
    entries = tuple(
        ListedClip(
            id=name,
            media=file,
            labels=tuple(map(utf8, class_of[file])) if labelled else (),
            split=_SPLIT_FOLDERS[folders_of[file][0]] if divided else "",
            source=equal.get(file, ""),
        )
        for name, file in zip(unique_names(files, source), files, strict=True)
    )
    notes = ["the splits are those of the top folders"] if divided else []
    loose = len(folders_of) - len(files)
    if loose:
        notes.append(f"{loose} media files outside the folders of classes were left out")
    return Listing(entries, (*notes, *left_aside(source)))


def divide(
    labels: Sequence[str], groups: Sequence[str], *, valid: float = 0.0, test: float = 0.2, seed: int = 0
) -> list[str]:
    """Return random splits, class by class; a group is not divided (see `division.divide`).

    Classes with two groups have test clips, and classes with three have validation clips, if these shares are above 0.

    Args:
        labels: (n,) classes.
        groups: (n,) groups; clips of a group are in the same split.
        valid: share of the clips that is for validation.
        test: share of the clips that is for test.
        seed: seed of the division; equal seeds give equal splits.

    Returns:
        The n splits.
    """
    shares = (1 - valid - test, valid, test)
    return division.divide([(label,) for label in labels], groups, shares, seed, covered=SPLITS)


def unique_names(files: Sequence[Path], source: Path) -> list[str]:
    """Return an id for each file: its name without ending or, if names repeat, with ending or with folders."""
    for form in (
        (file.stem for file in files),
        (file.name for file in files),
        (os.path.relpath(file, source) for file in files),
    ):
        names = [utf8(name) for name in form]
        if max(Counter(names).values(), default=1) == 1:
            return names
    raise InputError(f"{source}: two files have names that are equal as UTF-8; rename one file")
