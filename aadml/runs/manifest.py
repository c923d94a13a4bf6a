"""Manifest of a run folder: the files of the run and their checksums."""

import logging
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from shlex import quote

from aadml.feature_extraction.ground.checksummed_json import FileSum, read_sealed, seal
from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.file_content import read_bytes
from aadml.feature_extraction.ground.json_values import read_as
from aadml.feature_extraction.weights.hub_names import PREFIX

MANIFEST = "manifest.json"
LOG = "metrics.jsonl"
CONFIG = "config.yaml"
ENVIRONMENT = "environment.json"
EVALUATION = "evaluation.json"
RESERVED = (MANIFEST, CONFIG, ENVIRONMENT, LOG, EVALUATION, "model.safetensors", "model.json", "README.md")
"""Names of the files of a run; a folder that contains one of them is not accepted for a new run."""

FORMAT = "aadml-run"
VERSION = 2

NUMBERED = re.compile(r"(state|best)-(\d+)\.safetensors")
_log = logging.getLogger("aadml")
_EMPTY_LOG = FileSum.of(b"")


@dataclass(frozen=True)
class RunManifest:
    """Manifest of a run as of one commit.

    Attributes:
        folder: folder of the run. The folder is not stored in `manifest.json`.
        run: unique name of the run.
        generation: number of the commit, from 1.
        log: size and SHA-256 of the valid part of `metrics.jsonl`.
        files: name -> size and SHA-256.
        seconds: seconds spent fitting so far.
    """

    folder: Path
    run: str
    generation: int = 0
    log: FileSum = _EMPTY_LOG
    files: Mapping[str, FileSum] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def continuation(self) -> str:
        """Hint for a run that is not finished. A run without a config cannot be resumed."""
        if CONFIG not in self.files:
            return "start a new run"
        return f"continue the training with `aadml train --resume {quote(str(self.folder))}`"

    def to_bytes(self) -> bytes:
        """Return the content of `manifest.json`."""
        content = asdict(replace(self, files=dict(sorted(self.files.items()))))
        del content["folder"]
        return seal({"format": FORMAT, "version": VERSION, **content})

    @property
    def is_finished(self) -> bool:
        """Whether training and scoring finished, and the evaluation file exists."""
        return EVALUATION in self.files and (self.folder / EVALUATION).is_file()

    def numbered(self, kind: str) -> str | None:
        """Return the name of the file of a kind ("state", "best") in the run; None if there is no such file."""
        return next((name for name in self.files if (match := NUMBERED.fullmatch(name)) and match[1] == kind), None)

    def read(self, name: str) -> bytes:
        """Read a file of the run, and compare it with its checksum.

        Raises:
            InputError: the file is not in the manifest, or is missing, damaged or changed.
        """
        path = self.folder / name
        if name not in self.files:
            raise InputError(f"{path} does not exist, because training was not finished; {self.continuation}")
        data = _bytes_of(path)
        self.files[name].check(data, path)
        return data

    def read_log(self) -> bytes:
        """Read the valid part of the log, and compare it with its checksum.

        Raises:
            InputError: the log is missing, damaged or changed.
        """
        path = self.folder / LOG
        data = _bytes_of(path)[: self.log.size] if self.log.size else b""
        self.log.check(data, path)
        return data


def read_manifest(run: Path | RunManifest) -> RunManifest:
    """Read the manifest of a run folder. An argument of type `RunManifest` is returned unchanged.

    Raises:
        InputError: the folder is not a run, or its manifest is damaged.
    """
    if isinstance(run, RunManifest):
        return run
    folder, path = run, run / MANIFEST
    try:
        content = read_sealed(path, FORMAT, VERSION)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder} {_why_not_a_run(folder)}") from None
    values = {key: value for key, value in content.items() if key not in ("format", "version")}
    manifest = replace(read_as(RunManifest, {**values, "folder": "."}, path), folder=folder)  # any bytes in the path
    for name in manifest.files:
        if "\0" in name or name.startswith("/") or ".." in Path(name).parts:
            raise InputError(f"{path} lists '{name}', which is not a file inside the run folder; copy the run again")
    return manifest


def is_run(folder: Path) -> bool:
    """Return whether a folder contains a run, finished or not."""
    return (folder / MANIFEST).is_file()


def is_finished(folder: Path) -> bool:
    """Return whether a folder contains a run whose training and scoring finished.

    Raises:
        InputError: the manifest is damaged.
    """
    return (folder / EVALUATION).is_file() and is_run(folder) and read_manifest(folder).is_finished


def newest_run(folder: Path) -> Path:
    """Return the newest finished run in a folder of runs.

    If the folder contains several finished runs, a warning is logged.

    A model on the Hugging Face Hub ("hf:org/name") is downloaded, and its folder is returned. Any other path, such as a
    folder without finished runs, is returned unchanged.

    Raises:
        InputError: the model cannot be downloaded, or the manifest of a run in the folder is damaged.
    """
    if str(folder).startswith(PREFIX):
        from aadml.model.sharing import downloaded  # imported late, with the facts of models

        return downloaded(str(folder))
    if is_run(folder) or not folder.is_dir():
        return folder
    runs = sorted(filter(is_finished, folder.iterdir()), key=lambda run: (run / EVALUATION).stat().st_mtime)
    if len(runs) > 1:
        _log.warning(f"{folder} contains {len(runs)} finished runs; the newest is used: {runs[-1]}")
    return runs[-1] if runs else folder


def _bytes_of(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise DamagedFileError(
            f"{path} cannot be read ({error.strerror}), but the manifest of the run lists the file; restore the file"
        ) from error


def _why_not_a_run(folder: Path) -> str:
    if not folder.exists():
        return "does not exist; create a run with `aadml train`"
    if not folder.is_dir():
        return "is a file, not a folder; pass the folder of a run"
    runs = sorted(filter(is_run, folder.iterdir()), key=lambda run: (run / MANIFEST).stat().st_mtime)
    unfinished = [run for run in runs if not (run / EVALUATION).is_file()]
    if unfinished:
        return f"is a folder of runs, not a run; {read_manifest(unfinished[-1]).continuation}"
    if runs:
        return f"is a folder of runs, not a run; pass one of its runs, such as {runs[-1]}"
    return f"is not a run folder (the file {MANIFEST} is missing); create a run with `aadml train`"
