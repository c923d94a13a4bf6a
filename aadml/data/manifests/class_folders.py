"""A folder of media: one folder per class, or no labels; divided at random, or already by its top folders."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aadml.data.manifests.listing import ListedClip, Listing, contents, left_aside, media_files, utf8
from aadml.data.splitting import division
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import SPLITS

_SPLIT_FOLDERS = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}


def class_folders(source: Path, *, valid: float = 0.1, test: float = 0.2, seed: int = 0) -> Listing:
    """List a tree `<class>/.../<clip>`, or `<split>/<class>/.../<clip>` with splits train, valid (or val) and test.

    Where the tree has no splits, each class is split at random; files with the same bytes stay in one split.

    Args:
        source: the folder.
        valid: share of each class that validates.
        test: share of each class that is for test.
        seed: same seed, same splits.

    Raises:
        InputError: no such folder, no media, or shares that leave nothing for train.
    """
    if min(valid, test) < 0 or valid + test >= 1:
        raise InputError(f"shares: valid {valid:g} and test {test:g} given; both at least 0, their sum below 1")
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
        no_labels: take what is in folders of classes without labels too.

    Returns:
        The clips; where the folder is undivided, the split of each is empty.

    Raises:
        InputError: no such folder, or no media in it.
    """
    if not source.is_dir():
        raise InputError(f"{source}: is not a folder")
    there = {file: file.relative_to(source).parts[:-1] for file in media_files(source)}
    tops = {folders[0] for folders in there.values() if folders}
    divided = {"train", "test"} <= tops <= set(_SPLIT_FOLDERS)
    if divided:
        there = {file: folders for file, folders in there.items() if folders}
    class_of = {file: folders[int(divided) :][:1] for file, folders in there.items()}
    labelled = any(class_of.values()) and not no_labels
    files = [file for file, labels in class_of.items() if labels or not labelled]
    if not files:
        raise InputError("; ".join([f"{source}: holds no media", *left_aside(source)]))
    same = contents(files)
    entries = tuple(
        ListedClip(
            id=name,
            media=file,
            labels=tuple(map(utf8, class_of[file])) if labelled else (),
            split=_SPLIT_FOLDERS[there[file][0]] if divided else "",
            source=same.get(file, ""),
        )
        for name, file in zip(unique_names(files, source), files, strict=True)
    )
    notes = ["the splits are those of the top folders"] if divided else []
    loose = len(media_files(source)) - len(files)
    if loose:
        notes.append(f"{loose} media files outside the folders of classes were left aside")
    return Listing(entries, (*notes, *left_aside(source)))


def divide(
    labels: Sequence[str], groups: Sequence[str], *, valid: float = 0.0, test: float = 0.2, seed: int = 0
) -> list[str]:
    """Divide each class at random; what is in one group stays in one split (see `division.divide`).

    Every class with two groups has a test part, and with three a validation part, where these shares are above 0.

    Args:
        labels: (n,) classes.
        groups: (n,) what stays together.
        valid: share that validates.
        test: share that is for test.
        seed: same seed, same splits.

    Returns:
        The n splits.
    """
    shares = (1 - valid - test, valid, test)
    return division.divide([(label,) for label in labels], groups, shares, seed, covered=SPLITS)


def unique_names(files: Sequence[Path], source: Path) -> list[str]:
    """Return an id for each file: its name without ending, with its ending or its folders where that repeats."""
    for name_of in (_stem, _name, _path):
        names = [utf8(name_of(file, source)) for file in files]
        if max(Counter(names).values(), default=1) == 1:
            return names
    raise InputError(f"{source}: two files have names that are the same as UTF-8")


def _stem(file: Path, source: Path) -> str:
    return file.stem


def _name(file: Path, source: Path) -> str:
    return file.name


def _path(file: Path, source: Path) -> str:
    return os.path.relpath(file, source)
