"""A tree of media with one folder per class, divided into splits at random, or already divided by its top folders."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aadml.data.manifests.listing import Entry, Listing, contents, media_files, utf8
from feature_extraction.ground.errors import InputError

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
    if not source.is_dir():
        raise InputError(f"{source}: is not a folder")
    if min(valid, test) < 0 or valid + test >= 1:
        raise InputError(f"shares: valid {valid:g} and test {test:g} given; both at least 0, their sum below 1")
    files = [file for file in media_files(source) if len(file.relative_to(source).parts) > 1]
    if not files:
        raise InputError(f"{source}: holds no media in folders; one folder per class is expected")
    tops = {file.relative_to(source).parts[0] for file in files}
    divided = {"train", "test"} <= tops <= set(_SPLIT_FOLDERS)
    depth = 1 if divided else 0
    if divided:
        files = [file for file in files if len(file.relative_to(source).parts) > 2]
    labels = [file.relative_to(source).parts[depth] for file in files]
    same = contents(files)
    names = unique_names(files, source)
    if divided:
        splits = [_SPLIT_FOLDERS[file.relative_to(source).parts[0]] for file in files]
        notes = ["the splits are those of the top folders"]
    else:
        splits = divide(labels, [same.get(file, str(file)) for file in files], valid=valid, test=test, seed=seed)
        notes = [f"each class was split at random: {valid:.0%} valid, {test:.0%} test, seed {seed}"]
    entries = tuple(
        Entry(id=name, media=file, label=utf8(label), split=split, source=same.get(file, ""))
        for name, file, label, split in zip(names, files, labels, splits, strict=True)
    )
    loose = sorted({file.name for file in media_files(source)} - {file.name for file in files})
    if loose:
        notes.append(f"{len(loose)} media files outside the folders of classes were left aside")
    return Listing(entries, tuple(notes))


def divide(
    labels: Sequence[str], groups: Sequence[str], *, valid: float = 0.0, test: float = 0.2, seed: int = 0
) -> list[str]:
    """Divide each class at random; what is in one group stays in one split.

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
    generator = np.random.default_rng(seed)
    split_of: dict[str, str] = {}
    for label in sorted(set(labels)):
        members = [group for group, of in zip(groups, labels, strict=True) if of == label and group not in split_of]
        order = generator.permutation(sorted(set(members))).tolist()
        tests = min(max(round(test * len(order)), int(test > 0)), max(len(order) - 1, 0))
        valids = min(max(round(valid * len(order)), int(valid > 0)), max(len(order) - tests - 1, 0))
        for place, group in enumerate(order):
            split_of[group] = "test" if place < tests else "valid" if place < tests + valids else "train"
    return [split_of[group] for group in groups]


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
    return str(file.relative_to(source))
