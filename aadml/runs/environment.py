"""Environment of a run: versions, commit, machine, and the hashes of the data and of the judgments."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from aadml.comparison.clips import Splits
from aadml.comparison.features import Features, StoredSource
from aadml.comparison.processes import group
from aadml.comparison.relevance import Judgments
from aadml.configuration.config import Config
from aadml.data.splitting.splits import DrawNote
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import file_digest
from aadml.feature_extraction.ground.json_values import parse_as
from aadml.methods.audio_text.options import UNTRAINED
from aadml.model.packing import WEIGHTS
from aadml.runs.data import is_path_of_weights
from aadml.runs.manifest import ENVIRONMENT, RunManifest, read_manifest

_ROWS_AT_ONCE = 1 << 14

PACKAGES = ("aadml", "torch", "numpy", "scipy", "scikit-learn", "h5py", "opencv-python", "av")
HEADLESS = "opencv-python-headless"
"""Package that replaces `opencv-python` on a machine without a display."""


@dataclass(frozen=True)
class Data:
    """Data of a run.

    Attributes:
        name: name of the data.
        sha256: SHA-256 of the divided data.
        notes: notes on the division into splits.
        drawn: whether the seed of the run drew clips or classes of the splits; None for a run of an earlier version.
        judgments: SHA-256 of the grades by which test clips are relevant, or "" without judgments; None for a run of
            an earlier version.
    """

    name: str
    sha256: str
    notes: tuple[str, ...]
    drawn: bool | None = None
    judgments: str | None = None


@dataclass(frozen=True)
class Environment:
    """Machine, software and data of a run: content of `environment.json`.

    Attributes:
        commit: commit of the package's checkout; None outside a checkout or without git.
        versions: package -> version; None if the package is not installed.
        device: device used for training.
        device_name: name of the GPU, or architecture of the processor.
        threads: number of threads.
        data: training data.
        clips: split -> number of clips.
        processes: number of training processes.
        networks: SHA-256 of the initial weights: of networks of `transformers` by modality, and of weight files by
            option and file name. Runs of earlier versions lack weight files, or all entries.
    """

    commit: str | None
    versions: Mapping[str, str | None]
    device: str
    device_name: str
    threads: int
    data: Data
    clips: Mapping[str, int]
    processes: int = 1
    networks: Mapping[str, str] = field(default_factory=dict)


def environment(splits: Splits, sha256: str, device: torch.device, networks: Mapping[str, str]) -> Environment:
    """Return the environment of a run.

    Args:
        splits: training data.
        sha256: hash of the data.
        device: device of the training.
        networks: see `Environment`.
    """
    drawn = any(isinstance(note, DrawNote) for note in splits.notes)
    return Environment(
        commit=git_commit(),
        versions={"python": platform.python_version()} | _versions(),
        device=str(device),
        device_name=torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        threads=torch.get_num_threads(),
        data=Data(splits.name, sha256, splits.notes, drawn, _judgments(splits)),
        clips={split: len(splits[split]) for split in ("train", "valid", "test")},
        processes=group.count(),
        networks=networks,
    )


def read_environment(run: Path | RunManifest) -> Environment:
    """Read the environment of a run.

    Raises:
        InputError: the folder is not a run, or the file is damaged.
    """
    manifest = read_manifest(run)
    return parse_as(Environment, manifest.read(ENVIRONMENT), manifest.folder / ENVIRONMENT)


def check_same_data(
    manifest: RunManifest, config: Config, splits: Splits, sha256: str, remedy: str, *, judged: bool = True
) -> Environment:
    """Return the environment of a run that was begun with the same data and judgments.

    Args:
        manifest: manifest of the run.
        config: config of the run.
        splits: the data.
        sha256: SHA-256 of the data; see `data_hash`.
        remedy: what to do with other data or judgments, for messages.
        judged: whether the judgments are compared.

    Raises:
        InputError: the SHA-256 of the data or of the judgments differs from that of the run.
    """
    before, name = read_environment(manifest), splits.name or "data in memory"
    if before.data.sha256 != sha256:
        raise InputError(
            f"{name}: the data have changed since {manifest.folder} was begun, or another version of aadml divides "
            f"them differently; {remedy}"
        )
    if judged and before.data.judgments not in (None, _judgments(splits)):
        name = config.common.relevance or name
        raise InputError(f"{name}: the judgments have changed since {manifest.folder} was begun; {remedy}")
    return before


def _judgments(splits: Splits) -> str:
    rule = splits.test.relevant
    if not isinstance(rule, Judgments):
        return ""
    return hashlib.sha256(json.dumps(rule.grades, sort_keys=True).encode()).hexdigest()


def _versions() -> dict[str, str | None]:
    headless = installed_version(HEADLESS)
    return {name: installed_version(name) for name in PACKAGES} | ({HEADLESS: headless} if headless else {})


def installed_version(package: str) -> str | None:
    """Return the version of a package; None if the package is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def git_commit() -> str | None:
    """Return the commit of the package's checkout, with "-dirty" after changes; None without a checkout or git.

    A repository around an installed package, such as one with a `.venv`, is not its checkout.
    """
    folder = Path(__file__).parents[2]
    if not (folder / ".git").exists():
        return None
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return process.stdout.strip() or None


def initial_weights(config: Config) -> dict[str, str]:
    """Compute the SHA-256 of each file of initial weights, by option and file name: "audio_weights/Cnn14.pth".

    Hidden files and Markdown files in a folder of weights are left out.
    """
    sums: dict[str, str] = {}
    for key, value in vars(config.options).items():
        if isinstance(value, str) and value not in ("", UNTRAINED) and is_path_of_weights(key):
            place = Path(value) / WEIGHTS if key == "start" else Path(value)
            files = sorted(place.glob("[!.]*")) if place.is_dir() else [place]
            sums |= {
                f"{key}/{path.name}": file_digest(path) for path in files if path.is_file() and path.suffix != ".md"
            }
    return sums


def data_hash(splits: Splits) -> str:
    """Return the SHA-256 of features, sound, captions, labels, ids and the division into splits.

    Raises:
        InputError: features are computed batch by batch and have no `content` to hash.
    """
    digest = hashlib.sha256()
    for split in ("train", "valid", "test"):
        clips = splits[split]
        digest.update("\n".join((split, *clips.class_names, *clips.ids)).encode())
        digest.update(clips.labels.numpy().tobytes())
        if clips.all_labels is not None:
            digest.update(clips.all_labels.numpy().tobytes())
        for modality in clips.modalities:
            digest.update(modality.encode())
            flags = clips.present.get(modality)
            if flags is not None and not _of_paths(clips[modality], flags):
                digest.update(flags.numpy().tobytes())
            for part in _content(clips[modality], modality):
                digest.update(part)
    return digest.hexdigest()


def _of_paths(features: Features, flags: torch.Tensor) -> bool:
    """Return whether flags (n,) are False for exactly the items with an empty path, which `content` distinguishes."""
    if isinstance(features, torch.Tensor):
        return False
    from aadml.data.sources.media_files import MediaFiles

    if not isinstance(features, MediaFiles):
        return False
    return flags.tolist() == [bool(features.paths[file]) for file in features.items.tolist()]


def _content(features: Features, modality: str) -> Iterator[bytes]:
    if isinstance(features, torch.Tensor):
        for rows in features.split(_ROWS_AT_ONCE):
            yield rows.contiguous().numpy().tobytes()
    elif isinstance(features, StoredSource):
        yield from features.content()
    else:
        raise InputError(
            f"{modality}: {type(features).__name__} has no method `content`, which the hash of the data needs; "
            "add the method"
        )
