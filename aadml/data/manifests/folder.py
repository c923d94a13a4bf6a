"""Listing of a folder of media, which may be divided into classes, into splits, or into pairs of files."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from aadml.data.manifests.listing import ListedClip, Listing, left_aside, media_files, utf8, with_sources
from aadml.data.splitting.folds import first_five
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.media_suffixes import MEDIA_SUFFIXES, PICTURE_SUFFIXES, SOUND_SUFFIXES
from aadml.feature_extraction.manifest import ALIASES, SPLITS

_SPLIT_WORDS = {**dict(zip(SPLITS, SPLITS, strict=True)), **ALIASES, "training": "train", "testing": "test"}
_SOUND_WORDS = frozenset("audio audios sound sounds wav wavs".split())  # noqa: SIM905 - one line
_PICTURE_WORDS = frozenset("image images img imgs picture pictures visual visuals vision video videos".split())  # noqa: SIM905


def folder(source: Path, *, no_labels: bool = False) -> Listing:
    """List a folder of media, with or without folders of classes and of splits (train, valid or val, test).

    The top folders are splits if each of them has the name of a split.
    Folders of sounds beside folders of pictures contain pairs with equal file names: `CLASS/sound` and `CLASS/images`,
    or `training_audio/CLASS` and `training_images/CLASS`.

    Args:
        source: the folder.
        no_labels: ignore the folders of classes.

    Returns:
        The clips; if the folder is undivided, their splits are empty.

    Raises:
        InputError: the folder does not exist, contains no media, has folders of sounds and pictures without a pair, or
            has two names that are equal as UTF-8.
    """
    if not source.is_dir():
        raise InputError(f"{source} is not a folder; pass a folder of media")
    folders_of, pictures, notes = _media(source)
    tops = {folders[0].lower() for folders in folders_of.values() if folders}
    divided = bool(tops) and tops <= set(_SPLIT_WORDS)
    class_of = {f: folders[int(divided) :][:1] for f, folders in folders_of.items() if folders or not divided}
    labeled = any(class_of.values()) and not no_labels
    files = [file for file, labels in class_of.items() if labels or not labeled]
    if not files:
        problem = ", and ".join([f"{source} contains no media", *left_aside(source)])
        raise InputError(f"{problem}; add sound or video files")
    entries = [
        ListedClip(
            id=name,
            media=file,
            labels=tuple(map(utf8, class_of[file])) if labeled else (),
            split=_SPLIT_WORDS[folders_of[file][0].lower()] if divided else "",
            visual=pictures.get(file),
        )
        for name, file in zip(unique_names(files, source), files, strict=True)
    ]
    if divided:
        notes.insert(0, "the splits are those of the top folders")
    loose = len(folders_of) - len(files)
    if loose:
        notes.append(f"{loose} media files outside the folders of classes were left out")
    notes += left_aside(source, MEDIA_SUFFIXES | (PICTURE_SUFFIXES if pictures else set()))
    return Listing(with_sources(entries), tuple(notes))


def _media(source: Path) -> tuple[dict[Path, tuple[str, ...]], dict[Path, Path], list[str]]:
    """Return the folder names of each media file, the picture of each sound, and notes on the pairs.

    The folder names of a pair lack the folder of sounds or pictures. If the name of this folder contains a split,
    the split is the first name.
    """
    files = {
        file: file.relative_to(source).parts[:-1] for file in media_files(source, MEDIA_SUFFIXES | PICTURE_SUFFIXES)
    }
    level = _paired_level(files.values())
    if level is None:
        return {f: folders for f, folders in files.items() if f.suffix.lower() in MEDIA_SUFFIXES}, {}, []
    sounds, pictures = dict[tuple[str, ...], Path](), dict[tuple[str, ...], Path]()
    for file, folders in files.items():
        words = _words(folders[level]) if len(folders) > level else set()
        is_sound = bool(words & _SOUND_WORDS)
        if words and file.suffix.lower() not in (PICTURE_SUFFIXES if is_sound else SOUND_SUFFIXES):
            splits = sorted(words & set(_SPLIT_WORDS))[:1]
            key = (*splits, *folders[:level], *folders[level + 1 :], file.stem)
            (sounds if is_sound else pictures).setdefault(key, file)
    pairs = [key for key in sounds if key in pictures]
    if not pairs:
        raise InputError(
            f"{source} has folders of sounds and folders of pictures, but no sound has the name of a picture; give "
            "both files of a pair the same name, or list the pairs in a table with the columns audio and visual"
        )
    notes = [f"{len(pairs)} pairs of a sound and a picture or video were read from folders of sounds and pictures"]
    for what, lone in (("sounds", sounds.keys() - pairs), ("pictures", pictures.keys() - pairs)):
        notes += [f"{len(lone)} {what} without a partner of the same name were left out"] if lone else []
    unused = sorted(set(files).difference(sounds.values(), pictures.values()))
    if unused:
        names = first_five([utf8(file.name) for file in unused])
        reason = "their folder has an earlier file of the same name, or is for other media"
        notes.append(f"{len(unused)} media files were left out ({names}): {reason}")
    return {sounds[key]: key[:-1] for key in pairs}, {sounds[key]: pictures[key] for key in pairs}, notes


def _paired_level(folders: Iterable[tuple[str, ...]]) -> int | None:
    """Return the first depth with folders of sounds, folders of pictures and no other folders, or None."""
    paths = set(folders)
    for level in range(max(map(len, paths), default=0)):
        names = [_words(path[level]) for path in paths if len(path) > level]
        sounds, pictures = ([bool(name & words) for name in names] for words in (_SOUND_WORDS, _PICTURE_WORDS))
        if any(sounds) and any(pictures) and all(a != b for a, b in zip(sounds, pictures, strict=True)):
            return level
    return None


def _words(name: str) -> set[str]:
    return set(re.split(r"[^a-z]+", name.lower()))


def unique_names(files: Sequence[Path], source: Path) -> list[str]:
    """Return an id for each file: the name without ending, the name, or the path relative to `source`.

    The ids of all files have the same form: the first form in which no id repeats.

    Raises:
        InputError: two file names are equal as UTF-8.
    """
    for form in (
        (file.stem for file in files),
        (file.name for file in files),
        (os.path.relpath(file, source) for file in files),
    ):
        names = [utf8(name) for name in form]
        if max(Counter(names).values(), default=1) == 1:
            return names
    name = Counter(names).most_common(1)[0][0]
    raise InputError(f"{source}: two files have the name '{name}' as UTF-8; rename one file")
