"""Manifests of whole data sets, by the name of the set."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aadml.data.manifests import MANIFESTS
from aadml.data.manifests.listing import Listing, write_manifest
from feature_extraction.ground.errors import InputError
from feature_extraction.ground.options import completed
from feature_extraction.ground.tables import lookup


def manifest(
    dataset: str,
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    skip_missing: bool = False,
    on_note: Callable[[str], None] | None = None,
    **options: Any,
) -> Listing:
    """List the media of a data set as a manifest for `aadml.extract`.

    Args:
        dataset: a key of MANIFESTS.
        source: folder of the data set.
        output: the manifest to write.
        skip_missing: leave out clips whose media file is not there.
        on_note: called with what is missing, repeated or shared between splits, with the SHA-256 of what was read.
        options: of the data set (`media`, `classes`, `clock_limit`, `folds`, `test_fold`, `valid`, `test`, `seed`);
            None stands for the default.

    Raises:
        InputError: an unknown data set or option, or files that are not there.
    """
    list_clips = lookup(MANIFESTS, dataset, "data set with a manifest")
    given = {key: value for key, value in options.items() if value is not None}
    given |= {key: Path(given[key]) for key in ("media", "folds") if key in given}
    limit = str(given.get("clock_limit", 100))
    if limit != "none" and not limit.isdecimal():
        raise InputError(f"--clock-limit: '{limit}' given; a number or none is possible")
    if "clock_limit" in given:
        given["clock_limit"] = None if limit == "none" else int(limit)
    listing = list_clips(Path(source), **completed(list_clips, given, "manifest"))
    for line in listing.report():
        if on_note:
            on_note(line)
    gone = {entry.id for entry in listing.missing()} if skip_missing else set()
    write_manifest(output, [entry for entry in listing.entries if entry.id not in gone])
    return listing
