"""Listing of a folder of media, with or without a folder per class and a folder per split."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from aadml.data.manifests.listing import ListedClip, Listing, equal_files, left_aside, media_files, utf8
from aadml.feature_extraction.ground.errors import InputError

_SPLIT_FOLDERS = {"train": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}


def folder(source: Path, *, no_labels: bool = False) -> Listing:
    """List a folder of media, by class or without labels, undivided or in folders train, valid (or val) and test.

    Args:
        source: the folder.
        no_labels: ignore the folders of classes.

    Returns:
        The clips; if the folder is undivided, their splits are empty.

    Raises:
        InputError: the folder does not exist or holds no media.
    """
    if not source.is_dir():
        raise InputError(f"{source}: is not a folder; pass a folder of media")
    folders_of = {file: file.relative_to(source).parts[:-1] for file in media_files(source)}
    tops = {folders[0] for folders in folders_of.values() if folders}
    divided = {"train", "test"} <= tops <= set(_SPLIT_FOLDERS)
    class_of = {f: folders[int(divided) :][:1] for f, folders in folders_of.items() if folders or not divided}
    labeled = any(class_of.values()) and not no_labels
    files = [file for file, labels in class_of.items() if labels or not labeled]
    if not files:
        raise InputError("; ".join([f"{source}: holds no media", *left_aside(source), "add sound or video files"]))
    equal = equal_files(files)
    entries = tuple(
        ListedClip(
            id=name,
            media=file,
            labels=tuple(map(utf8, class_of[file])) if labeled else (),
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
