"""Reader of features in any known layout."""

import fnmatch
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Literal

import h5py

from aadml.data.ave import with_official_validation
from aadml.data.layouts import LAYOUTS
from aadml.data.layouts.arrays_on_disk import assemble
from aadml.data.layouts.wrong_kind_hints import wrong_kind_hint
from aadml.data.splitting.division import DEFAULT_RULE, divided
from aadml.data.synthetic import synthetic_by_name
from aadml.feature_extraction.feature_file.content import FeatureFile
from aadml.feature_extraction.feature_file.names import check_modality, in_order
from aadml.feature_extraction.feature_file.reading import is_feature_file, read_features
from aadml.feature_extraction.foreign.hdf5 import hdf5_keys
from aadml.feature_extraction.foreign.numpy_files import npz_keys
from aadml.feature_extraction.foreign.tables import is_remote, is_table, local_path
from aadml.feature_extraction.ground.archives import is_archive
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.registry import lookup

FEATURE_FILE = "feature-file"
"""Name of the layout of feature files, which `aadml extract` writes."""

COLUMNS = "columns"
"""Name of the layout of npz and HDF5 files with one array per modality."""

Views = Mapping[str, str] | Sequence[str] | None
"""Name of the array (or view) of each modality: {"flow": VIEW}, or ["flow=VIEW"]."""

SYNTHETIC = "synthetic:"
"""Prefix of a name of `SHAPES` that is passed instead of a path; the features are then drawn."""


def open_data(
    path: str | os.PathLike[str],
    *,
    layout: str | None = None,
    audio: str | None = None,
    visual: str | None = None,
    text: str | None = None,
    views: Views = (),
    class_names: tuple[str, ...] | None = None,
    undivided: Literal["none", "labeled", "all"] = "none",
) -> FeatureFile:
    """Read features of any known layout (the feature file, or one of `LAYOUTS`), or draw synthetic features.

    Args:
        path: a file, a folder for some layouts, an address such as "s3://bucket/clips.parquet", "hf:NAME" for a data
            set on the Hugging Face Hub, or the name of synthetic features, such as "synthetic:ave" or
            "synthetic:pairs:shared=0.8,seed=1" (see `synthetic_by_name`).
        layout: layout of the file; recognized by default.
        audio: name of the array (or view) of audio, if the layout does not define it.
        visual: name of the array (or view) of visual, if the layout does not define it.
        text: name of the array (or view) of text, if the layout does not define it.
        views: arrays (or views) of further modalities: `{"flow": VIEW}`, or `["flow=VIEW"]`.
        class_names: names of the classes in the order of the label values; by default the names in the file, or else
            the label values. Labels that are text keep their names, which must be in this list.
        undivided: clips of files without splits that count as train: none, clips with labels, or all. Otherwise,
            clips with labels need splits, and clips without labels are divided by DEFAULT_RULE with seed 0, equally in
            all commands; see `divided`.

    Returns:
        The whole content, checked; labels are 0..C-1, or UNLABELLED. The provenance lists changes as `notes`.

    Raises:
        InputError: the source cannot be read as features, or an option is invalid or does not apply to the layout.
        MissingExtraError: a package that the source needs is not installed.
    """
    named = named_views(audio, visual, text, views)
    chosen = {"views": ", ".join(f"{name}={view}" for name, view in named.items())}
    names = {"class_names": ", ".join(class_names or ())}
    if str(path).startswith(SYNTHETIC):
        _refuse_unused(path, "synthetic features", chosen | names | {"layout": layout or ""})
        return synthetic_by_name(str(path).removeprefix(SYNTHETIC))
    place = local_path(path)
    if not place.exists():
        raise InputError(f"{place} does not exist; check the path")
    name = layout or recognize(place, named)
    if name == FEATURE_FILE:
        _refuse_unused(place, "a feature file", chosen | names)
        return read_features(place)
    reader = lookup(LAYOUTS, name, "layout")
    if reader.kind != "table" and place.is_dir() != (reader.kind == "folder"):
        kinds = ("folder", "file") if place.is_dir() else ("file", "folder")
        raise InputError(f"{place} is a {kinds[0]}, but the layout {name} needs a {kinds[1]}; pass a {kinds[1]}")
    if not reader.takes_views:
        _refuse_unused(place, f"the layout {name}", chosen)
    arrays = reader.arrays(place, named)
    pairs = arrays.splits is None and arrays.labels is None and undivided != "all"
    content = assemble(place, reader.name, arrays, class_names, undivided=pairs or undivided != "none")
    return with_official_validation(divided(content, DEFAULT_RULE, seed=0) if pairs else content)


def is_address(source: str | os.PathLike[str]) -> bool:
    """Return whether `source` is a remote address or the name of synthetic features, instead of a path."""
    return str(source).startswith(SYNTHETIC) or is_remote(source)


def _refuse_unused(place: str | os.PathLike[str], owner: str, options: Mapping[str, str]) -> None:
    """Raise InputError for an option with a value that the reader would ignore."""
    for option, value in options.items():
        if value:
            name = option.replace("_", " ")
            raise InputError(f"{place}: {name} '{value}' cannot be chosen for {owner}; leave out {name}")


def named_views(audio: str | None, visual: str | None, text: str | None, views: Views) -> dict[str, str]:
    """Return the name of the array (or view) of each modality; see `open_data` for the arguments.

    Raises:
        InputError: `views` other than a mapping or a list of NAME=VIEW, an invalid name, or a modality with two
            views.
    """
    views = () if views is None else views
    if not isinstance(views, Mapping | list | tuple) or not all(isinstance(text, str) for text in views):
        raise InputError(
            f'views: {views!r:.80} is not a mapping or a list of views; pass {{"flow": VIEW}} or ["flow=VIEW"]'
        )
    pairs = list(views.items()) if isinstance(views, Mapping) else [_pair(text) for text in views]
    view_of: dict[str, str] = {}
    for name, view in [("audio", audio), ("visual", visual), ("text", text), *pairs]:
        if not view:
            continue
        check_modality(name, "--view")
        if name in view_of:
            raise InputError(f"--view: {name} has two views, '{view_of[name]}' and '{view}'; pass one view")
        view_of[name] = view
    return {name: view_of[name] for name in in_order(view_of)}


def _pair(text: str) -> tuple[str, str]:
    name, equals, view = text.partition("=")
    if not equals or not view:
        raise InputError(f"--view: '{text}' is not NAME=VIEW; pass NAME=VIEW, as in flow=raft")
    return name, view


def recognize(path: Path, views: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the name of the layout of an existing file or folder.

    Two or more views that are arrays of the file determine the layout of an npz file, or of an HDF5 file without a
    known layout.

    Args:
        path: the file or folder.
        views: modality -> name of its array or view.

    Raises:
        InputError: the path is a device or a pipe, cannot be read, or has no known layout.
    """
    if is_table(path):
        return "table"
    if path.is_dir():
        return _best(path, "folder", [entry.name for entry in path.iterdir()])
    if not path.is_file():
        raise InputError(f"{path} is a device or a pipe; pass a file or a folder")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; pass a file with features")
    if is_archive(path):
        keys = npz_keys(path)
        return COLUMNS if _are_keys(views, keys) else _best(path, "npz", keys)
    if path.suffix.lower() == ".csv":
        raise InputError(
            f"{path} is a CSV table, not features; for a manifest of media, run `aadml extract {quote(str(path))} "
            "-o F.h5` first, or train networks on the media (towers.audio, towers.visual; docs/encoders.md)"
        )
    if not h5py.is_hdf5(path):
        raise InputError(f"{path} {wrong_kind_hint(path) or f'is neither HDF5 nor npz; {_known()}'}")
    return FEATURE_FILE if is_feature_file(path) else _best(path, "h5", hdf5_keys(path), views)


def _are_keys(views: Mapping[str, str], keys: Collection[str]) -> bool:
    return len(views) > 1 and set(views.values()) <= set(keys)


def _best(path: Path, kind: str, keys: Sequence[str], views: Mapping[str, str] = MappingProxyType({})) -> str:
    shares = {
        name: sum(any(path.glob(key)) if kind == "folder" else bool(fnmatch.filter(keys, key)) for key in layout.keys)
        / len(layout.keys)
        for name, layout in LAYOUTS.items()
        if layout.kind == kind
    }
    best = max(shares, key=lambda name: shares[name])
    if shares[best] == 0 and _are_keys(views, keys):
        return COLUMNS
    if shares[best] == 0:
        names = ", ".join(sorted(keys)[:20]) or "nothing"
        advice = "" if kind == "folder" or not keys else "name its arrays audio, visual, label and split, or "
        unknown = f"has no known layout (it contains {names}); {advice}{_known()}"
        raise InputError(f"{path} {wrong_kind_hint(path) or unknown}")
    return best


def _known() -> str:
    return f"pass a feature file, or one of the layouts {', '.join(LAYOUTS)} (see `aadml list datasets`)"
