"""Creation of manifests from tables, folders and published data sets."""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any

from aadml.comparison.options import Seed
from aadml.data.ave import ANNOTATIONS
from aadml.data.manifests import MANIFESTS
from aadml.data.manifests.listing import ListedClip, Listing, ListingFunction, write_manifest
from aadml.data.manifests.published import PublishedTables
from aadml.data.manifests.splitting import draws, with_splits
from aadml.data.splitting.division import DEFAULT_RULE
from aadml.data.splitting.folds import first_five
from aadml.feature_extraction.ground.argument_types import checked_call
from aadml.feature_extraction.ground.atomic import refuse_input, refuse_links, refuse_other_kind, write_text
from aadml.feature_extraction.ground.contracts import require_result
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, completed, keywords, schema
from aadml.feature_extraction.ground.registry import lookup

_LIST = "# missing videos, listed by aadml manifest\n"  # a comment line for yt-dlp
_OWN = ("folder", "table")  # listings of the user's media, for which missing media are an error


def manifest(
    *places: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    split: str | None = None,
    split_by: str | None = None,
    seed: Seed | None = None,
    skip_missing: bool = False,
    on_note: Callable[[str], None] | None = None,
    **options: Any,
) -> Path:
    """List media as a manifest for `aadml.extract`.

    Args:
        places: a folder of media or a CSV file; or the name of a data set (a key of MANIFESTS), followed by its
            folder.
        output: manifest to write; by default a new file, SOURCE.manifest.csv beside the source.
        split: rule of the splits: random:TRAIN/VALID/TEST (shares, class by class); by default the splits of the
            source, or random:0.7/0.1/0.2 if no clip has a split.
        split_by: name of a column, such as "speaker" or "video"; clips with the same value in this column stay in
            the same split.
        seed: random seed of all draws; 0 by default.
        skip_missing: leave out clips without a media file.
        on_note: called with sentences on missing, repeated and shared recordings, on the shares of the splits, and
            on the SHA-256 of the inputs.
        options: options of a table (`header`, `comment`, `columns`, `media`, `media_name`, `labels_separator`,
            `first_label`, `no_labels`), a folder (`no_labels`) or a data set (`media`, `whole_recordings`,
            `classes`, `clock_limit`, `folds`); None and False mean the default.

    Returns:
        The path of the manifest. If videos of a data set have no file, their names are listed beside the manifest
        FILE.csv in FILE.missing.txt. After a comment line, the list has one name per line: the YouTube id, or for
        VEGAS and Clotho the id of the clip. A list of an earlier call is replaced or removed.

    Raises:
        InputError: an unknown or invalid source or option, missing media, or an output that cannot be written or
            replaced.
    """
    note, (name, source) = on_note or (lambda line: None), _named(places)
    if name in _OWN and not any(options.get(key) for key in ("header", "columns", "media_name")):
        _refuse_known(source)
    target = _target(output, source)
    entry = lookup(MANIFESTS, name, "data set with a manifest")
    list_clips: Callable[..., Listing] = entry.listing if isinstance(entry, PublishedTables) else entry
    options |= {"seed": seed} if "seed" in schema(list_clips) else {}
    chosen = {key: _converted(key, value) for key, value in options.items() if value is not None and value is not False}
    values = completed(list_clips, OptionValues(**chosen), "manifest", name=name)
    listing = checked_call(list_clips)(source, **keywords(list_clips, values))
    require_result(listing, ListingFunction, "data set", list_clips)
    absent = {} if name in _OWN else dict.fromkeys((*map(_name, listing.missing()), *listing.absent))
    if skip_missing or name in _OWN:
        listing = _without_missing(listing, source, skip=skip_missing)
    if "seed" not in schema(list_clips) and seed is not None and not draws(listing, split):
        raise InputError(
            f"--seed {seed} has no effect, because {source} defines the splits; pass --split {DEFAULT_RULE} as well"
        )
    if listing.entries:
        listing = with_splits(listing, split, split_by, seed or 0)
    for line in listing.report():
        note(line)
    names = target.with_name(f"{target.stem}.missing.txt")
    refuse_links(names)
    if absent:
        refuse_other_kind(names, "a list of missing videos", _is_list, "remove or rename this file")
    write_manifest(target, listing.entries)
    if absent:
        write_text(names, "".join((_LIST, *(f"{name}\n" for name in absent))))
        note(f"the {len(absent)} missing videos are listed in {names}")
    elif names.is_file() and _is_list(names):
        names.unlink()
    return target


def _name(clip: ListedClip) -> str:
    return clip.source or clip.id


def _is_list(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline(10_000) == _LIST.encode()


def _named(places: tuple[str | os.PathLike[str], ...]) -> tuple[str, Path]:
    """Return the key of MANIFESTS and the source; a single argument is a folder or a table."""
    if len(places) == 2:
        return str(places[0]), Path(places[1])
    if len(places) != 1:
        raise InputError(
            f"manifest: there are {len(places)} arguments; pass a folder or a table, or the name of a data set and "
            "its folder"
        )
    source = Path(places[0])
    if str(source) in MANIFESTS and not source.exists():
        raise InputError(f"manifest: '{source}' is the name of a data set; pass its folder as well")
    if not source.exists():
        raise InputError(f"{source} does not exist; check the path")
    if (source / "manifest.csv").is_file() and _is_manifest(source / "manifest.csv"):
        raise InputError(
            f"{source} contains manifest.csv, which is already a manifest; run "
            f"`aadml extract {quote(str(source / 'manifest.csv'))} -o F.h5`"
        )
    return "folder" if source.is_dir() else "table", source


def _refuse_known(source: Path) -> None:
    """Raise InputError if `source` is or contains a table of a published data set."""
    files = [source] if source.is_file() else sorted(file for file in source.iterdir() if file.is_file())
    recognizers = {name: entry.recognizes for name, entry in MANIFESTS.items() if isinstance(entry, PublishedTables)}
    recognizers["ave"] = lambda file: file.name == ANNOTATIONS
    for file, (name, recognizes) in product(files, recognizers.items()):
        if recognizes(file):
            raise InputError(
                f"{file} is a table of the data set {name}; run `aadml manifest {name} "
                f"{quote(str(file.parent if name == 'ave' else source))}`, or pass "
                "the folder of the media alone"
            )


def _target(output: str | os.PathLike[str] | None, source: Path) -> Path:
    """Return the path of the manifest to write: a new file, or an existing manifest that `output` names."""
    if output is None:
        name = source.absolute().stem if source.is_file() else source.absolute().name
        target = source.absolute().with_name(f"{name}.manifest.csv")
        if os.path.lexists(target):
            is_manifest = target.is_file() and _is_manifest(target)
            known = f"--output {target} to replace the manifest, or " if is_manifest else ""
            raise InputError(f"{target} exists; pass {known}--output with another path")
        return target
    refuse_other_kind(output, "a manifest", _is_manifest)
    refuse_input(output, source)
    return Path(output)


def _is_manifest(path: Path) -> bool:
    with path.open("rb") as file:
        columns = file.readline(10_000).decode("utf-8-sig", errors="replace").strip().split(",")
    return columns[0] == "id" and "split" in columns


def _converted(key: str, value: Any) -> Any:
    """Return the value of an option, converted for the listing functions."""
    if key in ("media", "folds"):
        if not isinstance(value, str | os.PathLike):
            raise InputError(f"{key} has type {type(value).__name__}; pass the path of a folder")
        return Path(value)
    if key == "clock_limit":
        if value != "none" and not (str(value).isdecimal() and len(str(value)) < 10):
            raise InputError(
                f"--clock-limit: '{value}' is neither none nor a number of at most nine digits; pass a number or none"
            )
        return None if value == "none" else int(value)
    return value


def _without_missing(listing: Listing, source: Path, *, skip: bool) -> Listing:
    missing = listing.missing()
    if not missing:
        return listing
    files = first_five([str(file) for entry in missing for file in entry.files if not file.is_file()])
    counts = f"media files are missing for {len(missing)} of {len(listing.entries)} clips"
    if not skip:
        other = "restore the files" if source.is_dir() else "pass --media with the folder of the files"
        raise InputError(f"{source}: {counts} ({files}); pass --skip-missing to leave out these clips, or {other}")
    excluded = {entry.id for entry in missing}
    entries = tuple(entry for entry in listing.entries if entry.id not in excluded)
    note = f"{counts}, and these clips were left out ({files})"
    return replace(listing, entries=entries, notes=(*listing.notes, note))
