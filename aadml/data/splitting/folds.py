"""Folds as text files of ids, one id per line and one file per fold."""

from collections.abc import Sequence
from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError


def read_folds(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Read the folds in a folder.

    Args:
        folder: each of its files is a fold; an id may be a path; its folders and `.npy` or `.mp4` are removed.

    Returns:
        Id -> file name of its fold (the first fold that lists the id), and notes on ids that repeat.

    Raises:
        InputError: no such folder, no ids, or a file that is not text.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder of folds; pass a folder of text files of ids")
    fold_of: dict[str, str] = {}
    repeats = []
    for file in sorted(file for file in folder.iterdir() if file.is_file()):
        try:
            words = file.read_text(encoding="utf-8").split()
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: is not a text file of ids; remove or replace the file") from error
        for name in (Path(word).name.removesuffix(".npy").removesuffix(".mp4") for word in words):
            repeats += [name] if name in fold_of else []
            fold_of.setdefault(name, file.name)
    if not fold_of:
        raise InputError(f"{folder}: lists no ids; add text files with one id per line")
    return fold_of, [f"{len(repeats)} ids are in the folds more than once: {first_five(repeats)}"] if repeats else []


def last_fold(fold_of: dict[str, str]) -> tuple[str, str]:
    """Return the last fold by name, which is the test split, and a note that states so."""
    folds = sorted(set(fold_of.values()))
    return folds[-1], f"fold {len(folds)} of {len(folds)} ('{folds[-1]}') is the test split"


def first_five(names: Sequence[str]) -> str:
    """Return the first five names, and the number of the others, for messages."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
