"""States, downloads and verification of weight files, selected by name, by recipe or from the Hugging Face Hub."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub.snapshot import find
from aadml.feature_extraction.jobs.recipes import RECIPES
from aadml.feature_extraction.weights.hub_names import PREFIX, expanded
from aadml.feature_extraction.weights.table import (
    WEIGHTS,
    published,
    recorded_checksums,
    verify,
    weights_folder,
    weights_path,
)


@dataclass(frozen=True)
class WeightState:
    """State of a weight file on this machine.

    Attributes:
        name: key of `WEIGHTS`, or file of a model of the Hugging Face Hub.
        path: path of the file.
        present: whether the file exists.
        sha256: SHA-256 of the undamaged file; "" if the file was never used.
        check: facts that a download is compared with.
        license: license of the publication.
        url: address of the file, or of its model on the hub; the folder for a model in a folder.
        problem: difference from the published file, or from the file of the first use; "" if none was found.
    """

    name: str
    path: str
    present: bool
    sha256: str
    check: str
    license: str
    url: str
    problem: str = ""


def weights(
    action: Literal["list", "get", "verify"] = "list",
    name: str | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
) -> list[WeightState]:
    """List, obtain or verify weight files.

    Args:
        action: `list` reads no content. `get` downloads or copies absent files, and verifies all files. `verify`
            compares the present files with the published checksums and with those of the first use.
        name: name of a weight file, or of a recipe of features; a recipe selects all its files. `get` also accepts
            `hf:MODEL[@revision]`. `list` and `verify` accept None for all files.
        folder: folder of files that `get` copies to the cache; None for a download.

    Returns:
        The state of each file. `verify` reports a damaged file as `problem` and an absent file as not present.

    Raises:
        InputError: an invalid argument, or a file for `get` that cannot be obtained or differs from the published
            file.
    """
    if action not in ("list", "get", "verify"):
        raise InputError(f"weights: '{action}' is not an action; choose from list, get, verify")
    if action == "get" and name is None:
        raise InputError(
            "weights get: the name is missing; pass a name of `aadml weights list`, or a recipe of "
            "`aadml list feature-recipes`"
        )
    if folder is not None and action != "get":
        raise InputError(
            f"weights {action}: the folder is {folder}, but only `aadml weights get` copies files; leave the folder out"
        )
    if name is not None and name.startswith(PREFIX):
        return _of_the_hub(action, name, folder)
    names = _files(name)
    if action == "get":
        fetch(names, None if folder is None else Path(folder).expanduser())
    return [_state(each, checks=action != "list") for each in names]


def fetch(names: Iterable[str], folder: Path | None = None) -> None:
    """Obtain and verify weight files.

    Args:
        names: keys of `WEIGHTS`.
        folder: folder of files to copy to the cache; None for a download.

    Raises:
        InputError: a file cannot be obtained, or differs from the published file. The message lists the other absent
            files.
    """
    names = list(names)
    for number, name in enumerate(names):
        try:
            weights_path(name, folder)
        except InputError as error:
            absent = [other for other in names[number + 1 :] if not (weights_folder() / WEIGHTS[other].file).is_file()]
            if not absent:
                raise
            raise type(error)(f"{error} (also absent: {', '.join(absent)})") from error


def _files(name: str | None) -> tuple[str, ...]:
    if name is None:
        return tuple(WEIGHTS)
    if name in RECIPES:
        return RECIPES[name].weights
    published(name)  # raises InputError with the nearest name
    return (name,)


def _state(name: str, *, checks: bool) -> WeightState:
    entry, problem = WEIGHTS[name], ""
    path, checksum = weights_folder() / entry.file, recorded_checksums().get(entry.file, "")
    if checks and path.is_file():
        try:
            checksum = verify(name)
        except InputError as error:
            problem = str(error)
    return WeightState(name, str(path), path.is_file(), checksum, entry.check, entry.license, entry.url, problem)


def _of_the_hub(action: str, name: str, folder: str | os.PathLike[str] | None) -> list[WeightState]:
    if action != "get" or folder is not None:
        raise InputError(
            f"weights {action} {name}: models of the Hugging Face Hub can only be downloaded; "
            f"run `aadml weights get {name}`, or pass hf:FOLDER to a job"
        )
    options = expanded(name, "text")[1]
    snapshot = find(options["model"], options.get("revision"))
    pinned = "the size, by huggingface_hub" if snapshot.revision else "a folder of this machine; no published checksum"
    check = f"{pinned}; revision {snapshot.revision}" if snapshot.revision else pinned
    url = f"https://huggingface.co/{snapshot.model}" if snapshot.revision else str(snapshot.folder)
    return [
        WeightState(file, str(snapshot.folder / file), True, checksum, check, snapshot.license, url)
        for file, checksum in snapshot.checksums().items()
    ]
