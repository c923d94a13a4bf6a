"""Folds of a data set: a folder with one text file per fold. Each file contains ids separated by white space."""

import os
from collections.abc import Sequence
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import read_bytes


def read_folds(folder: Path) -> tuple[dict[str, str], list[str], str]:
    """Read the splits of ids from the folds in a folder; the last fold by name is the test split.

    Args:
        folder: folder with one file per fold. An id may be a path; only its last part, without `.npy` and `.mp4`,
            is used.

    Returns:
        The split of each id ("train" or "test"), notes on ids that occur more than once, and a note on the test
        fold. An id in several folds counts in the first fold only.

    Raises:
        InputError: the folder does not exist, contains no ids, or contains a file that is not readable UTF-8 text.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; pass a folder with one text file of ids per fold")
    fold_of: dict[str, str] = {}
    repeats = []
    for file in sorted(file for file in folder.iterdir() if file.is_file()):
        words = (word for line in read_lines(file, "a text file of ids") for word in line.split())
        for name in (Path(word).name.removesuffix(".npy").removesuffix(".mp4") for word in words):
            repeats += [name] if name in fold_of else []
            fold_of.setdefault(name, file.name)
    if not fold_of:
        raise InputError(f"{folder} lists no ids; add text files with one id per line")
    folds = sorted(set(fold_of.values()))
    splits = {name: "test" if fold == folds[-1] else "train" for name, fold in fold_of.items()}
    notes = [f"{len(repeats)} ids are in the folds more than once: {first_five(repeats)}"] if repeats else []
    return splits, notes, f"fold {len(folds)} of {len(folds)} ('{folds[-1]}') is the test split"


def read_lines(path: str | os.PathLike[str], kind: str) -> list[str]:
    """Return the lines of a text file in UTF-8.

    Args:
        path: the file.
        kind: expected kind of file, for the message.

    Raises:
        InputError: the file cannot be read or is not UTF-8.
    """
    try:
        return read_bytes(Path(path)).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "its text is not UTF-8"
        raise InputError(f"{path} cannot be read as {kind} ({problem}); pass a text file in UTF-8") from error


def first_five(names: Sequence[str]) -> str:
    """Return text for messages: the first five names, and the number of further names if there are any."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
