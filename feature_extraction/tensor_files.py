"""Tensors from the weight files people have: safetensors, PyTorch state dicts, NumPy archives, TensorFlow checkpoints.

Nothing but tensors is ever read: a pickle goes through `torch.load(weights_only=True)`, an archive through
`allow_pickle=False`. What is slow to read is kept once more as safetensors.
"""

import hashlib
import pickle
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from feature_extraction.ground.archives import DAMAGED, is_archive
from feature_extraction.ground.atomic import atomic_path
from feature_extraction.ground.errors import InputError
from feature_extraction.tf_checkpoint import is_tf_checkpoint, read_tf_checkpoint

# what a damaged pickle raises beside DAMAGED
_MISREAD = (KeyError, IndexError, AttributeError, TypeError, AssertionError, struct.error)
_WRAPPERS = ("model", "state_dict", "model_state_dict")  # keys under which people keep the state dict


def sha256(path: Path) -> str:
    """Compute the SHA-256 of a file; of a folder, or a checkpoint's several files, that of their names and contents."""
    if path.is_file():
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    root, found = (path, path.rglob("*")) if path.is_dir() else (path.parent, path.parent.glob(f"{path.name}.*"))
    digest = hashlib.sha256()
    for file in sorted(file for file in found if file.is_file()):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + bytes.fromhex(sha256(file)))
    return digest.hexdigest()


def read_tensors(path: Path, *, kept: Path | None = None) -> dict[str, Tensor]:
    """Read all tensors of a weight file.

    Args:
        path: of any of the formats above, told by its content.
        kept: where a converted copy of exactly this content is looked for, and kept; None: neither.

    Returns:
        Name -> tensor on the CPU; wrappers such as PANNs' `model` are taken off.

    Raises:
        InputError: there is no such file, or it is none of these formats, damaged, or holds more than tensors.
    """
    if path.is_dir() or not (path.is_file() or is_tf_checkpoint(path)):
        raise InputError(f"{path}: no such weight file; give a .safetensors, .pth, .npz or TensorFlow checkpoint")
    if path.suffix == ".safetensors":
        return _safetensors(path)
    if kept is not None and kept.is_file():
        return _safetensors(kept)
    tensors = _foreign(path)
    if kept is not None:
        write_tensors(kept, tensors)
    return tensors


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all."""
    with atomic_path(path) as temporary:
        save_file({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, temporary)


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: is not a whole safetensors file ({_line(error)})") from error


def _foreign(path: Path) -> dict[str, Tensor]:
    if is_tf_checkpoint(path):
        return {name: torch.from_numpy(array) for name, array in read_tf_checkpoint(path).items()}
    if _is_numpy_archive(path):
        try:
            with np.load(path, allow_pickle=False) as archive:
                return {name: torch.from_numpy(np.asarray(archive[name])) for name in archive.files}
        except (*DAMAGED, TypeError) as error:
            raise InputError(f"{path}: is not a whole NumPy archive of numbers ({_line(error)})") from error
    try:
        with torch.serialization.safe_globals(_numpy_arrays()):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InputError(f"{path}: holds more than tensors, or is no weight file at all; it was not read") from error
    except (*DAMAGED, *_MISREAD) as error:
        raise InputError(f"{path}: is not a whole PyTorch weight file ({_line(error)})") from error
    return _unwrapped(content, path)


def _numpy_arrays() -> list[Any]:
    """Name what rebuilds a NumPy array: as harmless as a tensor, and older files (VGGish's PCA, PANNs) hold some."""
    rebuild: dict[str, Any] = {"_reconstruct": np.empty(0).__reduce__()[0], "scalar": np.float64(0).__reduce__()[0]}
    named = [(f, f"numpy.{core}.multiarray.{name}") for name, f in rebuild.items() for core in ("core", "_core")]
    return [np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i4", "i8", "u1", "?")), *named]


def _is_numpy_archive(path: Path) -> bool:
    if not is_archive(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except DAMAGED as error:
        raise InputError(f"{path}: is not a whole archive ({_line(error)})") from error
    return bool(names) and all(name.endswith(".npy") for name in names)


def _unwrapped(content: Any, path: Path) -> dict[str, Tensor]:
    for key in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping):
        raise InputError(f"{path}: holds a {type(content).__name__}, not a state dict of tensors")
    arrays = {
        str(name).removeprefix("module."): torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in content.items()
    }
    tensors = {name: value for name, value in arrays.items() if isinstance(value, Tensor)}
    if not tensors:
        raise InputError(f"{path}: holds no tensors (its keys are {', '.join(map(str, list(content)[:5]))})")
    return tensors


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
