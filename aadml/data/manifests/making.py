"""Manifests of tables, folders and whole data sets."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from aadml.data.manifests import MANIFESTS
from aadml.data.manifests.listing import Listing, write_manifest
from aadml.data.manifests.splitting import DEFAULT, draws, with_splits
from aadml.feature_extraction.ground.atomic import write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import completed
from aadml.feature_extraction.ground.registry import lookup

_OWN = ("folder", "table")  # what a person put together: what is missing there was not left out on purpose
_SHOWN = 8


def manifest(
    *places: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    split: str | None = None,
    split_by: str | None = None,
    seed: int | None = None,
    skip_missing: bool = False,
    on_note: Callable[[str], None] | None = None,
    **options: Any,
) -> Path:
    """List media as a manifest for `aadml.extract`.

    Args:
        places: a folder of media or a CSV file; or the name of a data set (a key of MANIFESTS), then its folder.
        output: the manifest to write; by default beside the source, `<name>.manifest.csv`, which must not exist yet.
        split: "random:0.7/0.1/0.2" (train, valid, test; each class by itself) or "column:NAME"; by default what the
            source says, and where it says nothing, "random:0.7/0.1/0.2".
        split_by: a column, such as a speaker, whose values are never divided between splits.
        seed: of a random split; 0 by default.
        skip_missing: leave out clips whose media file is not there.
        on_note: called with what is missing, repeated or shared between splits, with the shares that were reached, and
            with the SHA-256 of what was read.
        options: of a table (`columns`, `media`, `labels_separator`, `first_label`, `no_labels`), a folder
            (`no_labels`) or a data set (`media`, `classes`, `clock_limit`, `folds`, `test_fold`, `valid`, `test`); None
            and False stand for the default.

    Returns:
        The place of the manifest. Videos that AVE or VEGAS name and that are not there are listed beside it in
        `<manifest>.missing.txt`, a name (YouTube's for AVE) a line.

    Raises:
        InputError: an unknown data set, column or option, shares that cannot be, ids that repeat, or files that are
            not there.
    """
    name, source = _named(places)
    target = _target(output, source)
    list_clips = lookup(MANIFESTS, name, "data set with a manifest")
    given = _given(options | ({"seed": seed} if name not in _OWN else {}))
    listing = list_clips(source, **completed(list_clips, given, "manifest"))
    absent = listing.missing_names() if name not in _OWN else []
    listing = _without_missing(listing, source, skip=skip_missing, needed=name in _OWN)
    if name in _OWN and seed is not None and not draws(listing, split):
        raise InputError(f"--seed {seed}: no split is drawn, as {source} says which clip is for what; "
                         f"--split {DEFAULT} draws one")  # fmt: skip
    if listing.entries:
        listing = with_splits(listing, split, split_by, seed or 0)
    for line in listing.report():
        if on_note:
            on_note(line)
    write_manifest(target, listing.entries)
    if absent:
        names = target.with_name(f"{target.stem}.missing.txt")
        write_text(names, "".join(f"{name}\n" for name in absent))
        if on_note:
            on_note(f"the {len(absent)} videos that are missing are listed in {names}")
    return target


def _named(places: tuple[str | os.PathLike[str], ...]) -> tuple[str, Path]:
    """Give the name of what is listed, and where it is."""
    if len(places) == 2:
        return str(places[0]), Path(places[1])
    if len(places) != 1:
        raise InputError("manifest: give a folder or a table, or the name of a data set and its folder")
    source = Path(places[0])
    if str(source) in MANIFESTS and not source.exists():
        raise InputError(f"manifest: '{source}' is the name of a data set; give its folder too")
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    return "folder" if source.is_dir() else "table", source


def _target(output: str | os.PathLike[str] | None, source: Path) -> Path:
    """Say where the manifest goes; nothing of the user's is replaced but an older manifest that was named."""
    if output is None:
        whole = source.absolute()
        target = whole.with_name(f"{whole.stem if source.is_file() else whole.name}.manifest.csv")
        if target.exists():
            raise InputError(f"{target}: exists; give --output {target} to replace it, or another place")
        return target
    target = Path(output)
    if target.is_file() and not _is_manifest(target):
        raise InputError(f"{target}: exists and is not a manifest; it is not overwritten, name another output")
    if target.exists() and source.exists() and target.samefile(source):
        raise InputError(f"{target}: is what is read; name another output")
    return target


def _is_manifest(path: Path) -> bool:
    with path.open("rb") as file:
        columns = file.readline(10_000).decode("utf-8-sig", errors="replace").strip().split(",")
    return columns[0] == "id" and "split" in columns


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Give the options that were chosen, as the data sets take them."""
    given = {key: value for key, value in options.items() if value is not None and value is not False}
    given |= {key: Path(given[key]) for key in ("media", "folds") if key in given}
    limit = str(given.get("clock_limit", 100))
    if limit != "none" and not limit.isdecimal():
        raise InputError(f"--clock-limit: '{limit}' given; a number or none is possible")
    if "clock_limit" in given:
        given["clock_limit"] = None if limit == "none" else int(limit)
    return given


def _without_missing(listing: Listing, source: Path, *, skip: bool, needed: bool) -> Listing:
    missing = listing.missing() if skip or needed else []
    if not missing:
        return listing
    files = [str(file) for entry in missing for file in entry.files if not file.is_file()]
    some = f"{', '.join(files[:_SHOWN])}{' ...' if len(files) > _SHOWN else ''}"
    counts = f"{len(missing)} of {len(listing.entries)} clips have no media file"
    if not skip:
        raise InputError(f"{source}: {counts} ({some}); give --skip-missing to leave them out, or --media FOLDER")
    gone = {entry.id for entry in missing}
    entries = tuple(entry for entry in listing.entries if entry.id not in gone)
    return replace(listing, entries=entries, notes=(*listing.notes, f"{counts} and were left out ({some})"))
