"""Folds as text files of ids, one id a line and one file a fold."""

from pathlib import Path

from aadml.feature_extraction.ground.errors import InputError


def folds_of(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Read the fold of each id.

    Args:
        folder: its files are the folds; an id may be written as a path, its folders and `.npy` or `.mp4` are cut off.

    Returns:
        Id to the name of its fold's file (the first that lists it), and what is to be said about it.

    Raises:
        InputError: no such folder, no ids, or a file that is not text.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a folder of folds")
    fold_of: dict[str, str] = {}
    twice = []
    for file in sorted(file for file in folder.iterdir() if file.is_file()):
        try:
            words = file.read_text(encoding="utf-8").split()
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: is not a text file of ids") from error
        for name in (Path(word).name.removesuffix(".npy").removesuffix(".mp4") for word in words):
            twice += [name] if name in fold_of else []
            fold_of.setdefault(name, file.name)
    if not fold_of:
        raise InputError(f"{folder}: lists no ids; text files with one id a line are expected")
    return fold_of, [f"{len(twice)} ids stand in the folds more than once: {some(twice)}"] if twice else []


def chosen_fold(fold_of: dict[str, str], number: int | None, place: Path) -> tuple[str, str]:
    """Return the fold that is for test and a sentence that says so.

    Args:
        fold_of: id to fold.
        number: which one, from 1; None is the last.
        place: what the message shall name.

    Raises:
        InputError: no fold of that number.
    """
    folds = sorted(set(fold_of.values()))
    number = len(folds) if number is None else number
    if not 1 <= number <= len(folds):
        raise InputError(f"{place}: test fold {number} given; there are folds 1 to {len(folds)}")
    return folds[number - 1], f"fold {number} of {len(folds)} ('{folds[number - 1]}') is the test split"


def some(names: list[str]) -> str:
    """Return the first few names for a message."""
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
