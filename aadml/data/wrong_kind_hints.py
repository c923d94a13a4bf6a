"""What was given for features and is something else: what it is, and what to do with it."""

from itertools import islice
from pathlib import Path
from shlex import quote

from aadml.data.captions.captioned_sets import is_captioned
from aadml.data.manifests.listing import MEDIA_SUFFIXES, PICTURE_SUFFIXES

_LOOKED_AT = 2000  # entries of a folder


def what_else(path: Path) -> str:
    """Say what a file or folder without features is, and what to do with it; nothing where that is not known."""
    if (path / "model.json").is_file():
        model = quote(str(path))
        return (
            f"is a model, not features; `aadml evaluate {model} --data F.h5` and `aadml embed {model} F.h5` take both"
        )
    if path.is_dir() and is_captioned(path):
        return (
            "holds sound and captions, not features; "
            f"`aadml train --method audio-text --data {quote(str(path))}` learns from them (docs/audio_text.md)"
        )
    if _has_media(path):
        folder, verb = (path, "holds") if path.is_dir() else (path.parent, "is")
        return (
            f"{verb} media, not features; `aadml manifest {quote(str(folder))}` lists media, and "
            "`aadml extract MANIFEST.csv -o F.h5` makes features of them"
        )
    return ""


def _has_media(path: Path) -> bool:
    inside = islice(path.rglob("*"), _LOOKED_AT) if path.is_dir() else [path]
    return any(one.suffix.lower() in MEDIA_SUFFIXES | PICTURE_SUFFIXES for one in inside)
