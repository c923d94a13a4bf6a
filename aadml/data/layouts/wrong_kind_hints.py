"""Hints for paths that are not feature files."""

from itertools import islice
from pathlib import Path
from shlex import quote

from aadml.data.captions.captioned_sets import is_captioned, split_tables
from aadml.feature_extraction.ground.media_suffixes import MEDIA_SUFFIXES, PICTURE_SUFFIXES

_ENTRIES = 2000  # largest number of searched entries of a folder


def wrong_kind_hint(path: Path) -> str:
    """Return a hint for a path without features: the content of the path, and a command for this content.

    The hint is empty if the content is unknown.

    Raises:
        InputError: a folder has several caption tables of a split.
    """
    if (path / "model.json").is_file():
        model = quote(str(path))
        return (
            f"is a model, not features; pass features, or use the model: `aadml embed {model} F.h5`, "
            f"`aadml evaluate {model} --data F.h5`"
        )
    if path.is_dir() and is_captioned(path):
        return (
            "contains sound and captions, not features; "
            f"`aadml train --method audio-text --data {quote(str(path))}` trains on both kinds (docs/audio_text.md)"
        )
    if _has_media(path):
        folder, verb = (path, "contains") if path.is_dir() else (path.parent, "is")
        return (
            f"{verb} media, not features; `aadml manifest {quote(str(folder))}` lists media, and "
            f"`aadml extract MANIFEST.csv -o F.h5` extracts their features{_caption_hint(path)}"
        )
    return ""


def _caption_hint(path: Path) -> str:
    for _, table in split_tables(path) if path.is_dir() else ():
        return f"; if {table.name} has captions, save the table as CSV in UTF-8 with the columns file_name,caption"
    return ""


def _has_media(path: Path) -> bool:
    files = islice(path.rglob("*"), _ENTRIES) if path.is_dir() else [path]
    return any(file.suffix.lower() in MEDIA_SUFFIXES | PICTURE_SUFFIXES for file in files)
