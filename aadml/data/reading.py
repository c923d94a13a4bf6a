"""Opening features of any known layout."""

import fnmatch
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

import h5py

from aadml.data.ave import with_official_validation
from aadml.data.layouts import LAYOUTS
from aadml.data.layouts.layout import Layout, ReadOptions
from aadml.data.synthetic import synthetic_by_name
from aadml.data.wrong_kind_hints import what_else
from aadml.feature_extraction.feature_file import FeatureFile, check_modality, in_order, is_feature_file, read_features
from aadml.feature_extraction.foreign import hdf5_keys, npz_keys
from aadml.feature_extraction.ground.archives import is_archive
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup

FEATURE_FILE = "feature-file"
"""The feature file of `aadml extract`, taken by every command."""

COLUMNS = "columns"
"""The layout of npz files with an array a modality."""

Views = Mapping[str, str] | Sequence[str] | None
"""Which view is taken for which modality: {"flow": VIEW}, or ["flow=VIEW"]."""

SYNTHETIC = "synthetic:"
"""What stands before a name of `SHAPES` where features are to be drawn."""


def open_data(
    path: str | os.PathLike[str],
    *,
    layout: str | None = None,
    audio: str | None = None,
    visual: str | None = None,
    text: str | None = None,
    views: Views = (),
    class_names: tuple[str, ...] | None = None,
    test_fold: int | None = None,
    undivided: bool = False,
) -> FeatureFile:
    """Read features of any known layout: the feature file, or one of `LAYOUTS`.

    Args:
        path: a file, a folder where the layout is one, or "synthetic:ave", "synthetic:vegas", or
            "synthetic:pairs:shared=0.8,seed=1" (see `synthetic_by_name`).
        layout: its layout; by default it is recognized.
        audio: the view taken as audio, where the layout does not say.
        visual: the view taken as visual, where the layout does not say.
        text: the view taken as text, where the layout does not say.
        views: those taken as further modalities: `{"flow": VIEW}`, or `["flow=VIEW"]`.
        class_names: names of the classes in the order of their values; by default the values.
        test_fold: number of the test fold, where there are folds; the last by default.
        undivided: take a file that does not say which clips are for what; all of them count as train.

    Returns:
        The whole content, checked; labels are 0..C-1. What was done on the way stands in its provenance as `notes`.

    Raises:
        InputError: nothing there, no known layout, or content that contradicts itself; one line says what is possible.
    """
    place, named = Path(path), named_views(audio, visual, text, views)
    if str(path).startswith(SYNTHETIC):
        given = _chosen(named, test_fold) | {"layout": layout, "class_names": ", ".join(class_names or ())}
        _refuse_idle(path, "drawn features have", given)
        return synthetic_by_name(str(path).removeprefix(SYNTHETIC))
    name = layout or (COLUMNS if _has_columns(place, named) else recognize(place))
    if name == FEATURE_FILE:
        content = read_features(place)
        if class_names is not None:
            raise InputError(f"{place}: is a feature file and has its class names; others are not taken")
        _refuse_idle(place, "a feature file has", _chosen(named, test_fold))
        return content
    reader = lookup(LAYOUTS, name, "layout")
    _check_kind(place, reader.kind)
    chosen = _chosen(named, test_fold)
    _refuse_idle(place, f"the layout {name} has", {key: chosen[key] for key in chosen if key not in reader.takes})
    options = ReadOptions(named, class_names, test_fold, undivided)
    return with_official_validation(reader.read(place, options))


def _chosen(views: Mapping[str, str], test_fold: int | None) -> dict[str, str | None]:
    """Write what was chosen for a reader, by its name in `Layout.takes`."""
    named = ", ".join(f"{name}={view}" for name, view in views.items())
    return {"views": named, "test_fold": None if test_fold is None else str(test_fold)}


def _refuse_idle(place: str | os.PathLike[str], what: str, given: Mapping[str, str | None]) -> None:
    """Refuse what was given and would change nothing."""
    for option, value in given.items():
        if value:
            raise InputError(f"{place}: {what} no {option.replace('_', ' ')} to choose; {value} given")


def named_views(audio: str | None, visual: str | None, text: str | None, views: Views) -> dict[str, str]:
    """Say which view is taken for which modality: modality -> view.

    Raises:
        InputError: not NAME=VIEW, a name that no modality can have, or one named twice.
    """
    if isinstance(views, str):
        raise InputError(f'views: \'{views}\' given; {{"flow": VIEW}} or ["flow=VIEW"] is wanted')
    pairs = list(views.items()) if isinstance(views, Mapping) else [_pair(one) for one in views or ()]
    given = [*(("audio", audio), ("visual", visual), ("text", text)), *pairs]
    found: dict[str, str] = {}
    for name, view in ((name, view) for name, view in given if view):
        check_modality(name, "--view")
        if name in found:
            raise InputError(f"--view: {name} is named twice, as '{found[name]}' and as '{view}'")
        found[name] = view
    return {name: found[name] for name in in_order(found)}


def _pair(text: str) -> tuple[str, str]:
    name, equals, view = text.partition("=")
    if not equals or not view:
        raise InputError(f"--view: '{text}' given; NAME=VIEW is possible, as flow=raft")
    return name, view


def _has_columns(path: Path, views: Mapping[str, str]) -> bool:
    """Tell whether an npz has the arrays that were named, which then are the modalities whatever they are called."""
    return len(views) > 1 and is_archive(path) and set(views.values()) <= set(npz_keys(path))


def recognize(path: Path) -> str:
    """Return the name of the layout of `path`.

    Raises:
        InputError: nothing there, or no known layout.
    """
    if path.is_dir():
        return _best(path, "folder", [entry.name for entry in path.iterdir()])
    if "\0" in str(path) or not path.exists():
        raise InputError(
            f"{str(path)!r}: no such file or folder" if "\0" in str(path) else f"{path}: no such file or folder"
        )
    if not path.is_file():
        raise InputError(f"{path}: is not a file but a device or a pipe")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: is empty")
    if is_archive(path):
        return _best(path, "npz", list(npz_keys(path)))
    if path.suffix.lower() == ".csv":
        raise InputError(
            f"{path}: is a table; if it is a manifest of media, run `aadml extract {quote(str(path))} -o F.h5` first, "
            "or name networks that train on media (towers.audio, towers.visual; docs/encoders.md)"
        )
    if not h5py.is_hdf5(path):
        raise InputError(f"{path}: {what_else(path) or f'is neither HDF5 nor npz; {_known()}'}")
    return FEATURE_FILE if is_feature_file(path) else _best(path, "h5", list(hdf5_keys(path)))


def _best(path: Path, kind: str, found: list[str]) -> str:
    shares = {name: _share(layout, path, found) for name, layout in LAYOUTS.items() if layout.kind == kind}
    best = max(shares, key=lambda name: shares[name])
    if shares[best] == 0:
        there = ", ".join(sorted(found)[:20]) or "nothing"
        raise InputError(f"{path}: {what_else(path) or f'no known layout; found in it: {there}; {_known()}'}")
    return best


def _share(layout: Layout, path: Path, found: list[str]) -> float:
    if layout.kind == "folder":
        return sum(any(path.glob(key)) for key in layout.keys) / len(layout.keys)
    return sum(bool(fnmatch.filter(found, key)) for key in layout.keys) / len(layout.keys)


def _check_kind(path: Path, kind: str) -> None:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.is_dir() != (kind == "folder"):
        raise InputError(f"{path}: is a {'folder' if path.is_dir() else 'file'}; this layout is a {kind}")


def _known() -> str:
    return f"possible are a feature file and the layouts {', '.join(LAYOUTS)} (see `aadml list datasets`)"
