"""What a run was made with: versions, commit, machine, the hash of the data."""

import hashlib
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import aadml
from aadml.comparison.types import Features, Splits, StoredSource
from feature_extraction.ground.errors import InputError

PACKAGES = ("aadml", "torch", "numpy", "scipy", "scikit-learn", "h5py", "opencv-python", "av")


def environment(splits: Splits, sha256: str, device: torch.device) -> dict[str, Any]:
    """Describe the machine, the software and the data of a run; `sha256` is that of the data."""
    return {
        "commit": commit(),
        "versions": {"python": platform.python_version()} | {name: installed(name) for name in PACKAGES},
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
        "threads": torch.get_num_threads(),
        "data": {"name": splits.name, "sha256": sha256, "notes": list(splits.notes)},
        "clips": {split: len(splits[split]) for split in ("train", "valid", "test")},
    }


def installed(package: str) -> str | None:
    """Give the version of an installed package, None where it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Give the commit of the checkout the package lies in, marked where files were changed; None outside one."""
    folder = Path(aadml.__file__).parent
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def data_hash(splits: Splits) -> str:
    """Hash features, sound, captions, labels, ids and the division into splits (SHA-256).

    Raises:
        InputError: features that are made batch by batch and cannot be told from others.
    """
    digest = hashlib.sha256()
    for split in ("train", "valid", "test"):
        clips = splits[split]
        digest.update("\n".join((split, *clips.class_names, *clips.ids)).encode())
        digest.update(clips.labels.numpy().tobytes())
        for modality in clips.modalities:
            digest.update(modality.encode())
            for part in _content(clips[modality], modality):
                digest.update(part)
    return digest.hexdigest()


def _content(features: Features, modality: str) -> Iterator[bytes]:
    if isinstance(features, torch.Tensor):
        yield features.contiguous().numpy().tobytes()
    elif isinstance(features, StoredSource):
        yield from features.content()
    else:
        raise InputError(
            f"{modality}: {type(features).__name__} has no `content` by which it could be told from others"
        )
