"""The manifest of a run folder: which files are the run, and how each is checked when it is read."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from aadml.feature_extraction.ground.checksummed_json import FileSum, read_sealed, seal
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import read_as
from aadml.model.files import FIRST_EDITION

MANIFEST = "manifest.json"
LOG = "metrics.jsonl"
CONFIG = "config.yaml"
ENVIRONMENT = "environment.json"
EVALUATION = "evaluation.json"
RESERVED = (MANIFEST, CONFIG, ENVIRONMENT, LOG, EVALUATION, "model.safetensors", "model.json", "README.md")
"""Names that a run gives its files; a folder in which one of them lies already is not taken for a new run."""

FORMAT = "aadml-run"
VERSION = 2

NUMBERED = re.compile(r"(state|best)-(\d+)\.safetensors")
_EMPTY_LOG = FileSum.of(b"")


@dataclass(frozen=True)
class RunManifest:
    """What a commit says.

    Attributes:
        run: a name no other run has.
        generation: of the commit, from 1.
        log: how much of `metrics.jsonl` counts, and its SHA-256.
        files: name -> sum.
        seconds: spent fitting so far.
    """

    run: str
    generation: int = 0
    log: FileSum = _EMPTY_LOG
    files: Mapping[str, FileSum] = field(default_factory=dict)
    seconds: float = 0.0

    def to_bytes(self) -> bytes:
        """Write the manifest as it stands on disk."""
        ordered = replace(self, files=dict(sorted(self.files.items())))
        return seal({"format": FORMAT, "version": VERSION, **asdict(ordered)})

    def numbered(self, kind: str) -> str | None:
        """Name the file of a kind ("state", "best"); None where there is none."""
        return next((name for name in self.files if (found := NUMBERED.fullmatch(name)) and found[1] == kind), None)


def read_manifest(folder: Path) -> RunManifest:
    """Read the manifest of a run folder.

    Raises:
        InputError: not a run folder, one of the first edition, or a damaged manifest.
    """
    path = folder / MANIFEST
    try:
        content = read_sealed(path, FORMAT, VERSION)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder}: {_why_not_a_run(folder)}") from None
    found = read_as(
        RunManifest, {key: value for key, value in content.items() if key not in ("format", "version")}, path
    )
    for name in found.files:
        _check_inside(name, path)
    return found


def is_run(folder: Path) -> bool:
    """Tell whether a folder holds a run, finished or not."""
    return (folder / MANIFEST).is_file()


def is_finished(folder: Path) -> bool:
    """Tell whether a folder holds a run that was trained and scored to the end."""
    return (folder / EVALUATION).is_file() and is_run(folder) and EVALUATION in read_manifest(folder).files


def read_file(folder: Path, name: str, manifest: RunManifest | None = None) -> bytes:
    """Read a file of a run and check it against the manifest.

    Raises:
        InputError: the manifest does not name it, or it is missing, damaged or changed.
    """
    manifest = manifest or read_manifest(folder)
    path = folder / name
    if name not in manifest.files:
        raise InputError(f"{path}: no such file in this run; it was not trained to the end")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}), though the run names it") from error
    manifest.files[name].check(data, path)
    return data


def read_log(folder: Path, manifest: RunManifest | None = None) -> bytes:
    """Read the part of the log that counts, and check it.

    Raises:
        InputError: it is missing, damaged or changed.
    """
    manifest = manifest or read_manifest(folder)
    path = folder / LOG
    try:
        data = path.read_bytes() if manifest.log.size else b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}), though the run names it") from error
    data = data[: manifest.log.size]
    manifest.log.check(data, path)
    return data


def _check_inside(name: str, manifest: Path) -> None:
    """Refuse the name of a file that leads out of the folder."""
    if name.startswith("/") or ".." in Path(name).parts:
        raise InputError(f"{manifest}: names '{name}', which is not in its folder")


def _why_not_a_run(folder: Path) -> str:
    if not folder.exists():
        return "no such folder; `aadml train` makes one"
    if not folder.is_dir():
        return "is a file; a run is a folder"
    if (folder / "checkpoint.safetensors").is_file():
        return FIRST_EDITION
    return f"not a run folder (no {MANIFEST} in it); `aadml train` makes one"
