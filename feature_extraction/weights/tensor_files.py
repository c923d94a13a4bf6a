"""Tensors from the weight files people have: safetensors, PyTorch state dicts, NumPy archives, TensorFlow checkpoints.

Nothing but tensors is ever read: a pickle goes through `torch.load(weights_only=True)`, an archive through
`allow_pickle=False`. What is slow to read is kept once more as safetensors.
"""

import hashlib
import logging
import pickle
import struct
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from aadml.feature_extraction.foreign import npz_arrays, refuse_zip_bomb
from aadml.feature_extraction.ground.archives import DAMAGED, is_archive
from aadml.feature_extraction.ground.atomic import atomic_path
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.tf_checkpoint import is_tf_checkpoint, read_tf_checkpoint

_log = logging.getLogger(__name__)

# what a damaged pickle raises beside DAMAGED
_MISREAD = (IndexError, AttributeError, AssertionError, struct.error)
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
        kept: where a converted copy of exactly this content is looked for, and kept; None: neither. A copy that is
            damaged, or cannot be written, costs the time to convert again.

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
        with suppress(InputError):  # damaged
            return _safetensors(kept)
    tensors = _foreign(path)
    if kept is not None:
        try:
            write_tensors(kept, tensors)
        except (OSError, InputError) as error:
            _log.warning("%s: what was converted is not kept (%s)", path, error)
    return tensors


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, whole or not at all."""
    with atomic_path(path) as temporary:
        save_file({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, temporary)


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: is not a complete safetensors file ({_line(error)})") from error


def _foreign(path: Path) -> dict[str, Tensor]:
    if is_tf_checkpoint(path):
        return {name: torch.from_numpy(array) for name, array in read_tf_checkpoint(path).items()}
    if is_archive(path) and _is_numpy_archive(path):
        return {name: _tensor(name, array, path) for name, array in npz_arrays(path).items()}
    try:
        with torch.serialization.safe_globals(_numpy_arrays()):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise InputError(f"{path}: holds more than tensors, or is not a weight file at all; it was not read") from error
    except (*DAMAGED, *_MISREAD) as error:
        raise InputError(f"{path}: is not a complete PyTorch weight file ({_line(error)})") from error
    return _unwrapped(content, path)


def _numpy_arrays() -> list[Any]:
    """Name what rebuilds a NumPy array: as harmless as a tensor, and older files (VGGish's PCA, PANNs) hold some."""
    rebuild = {"_reconstruct": np.empty(0).__reduce__()[0], "scalar": np.float64(0).__reduce__()[0]}
    named = [(f, f"numpy.{core}.multiarray.{name}") for name, f in rebuild.items() for core in ("core", "_core")]
    return [np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i4", "i8", "u1", "?")), *named]


def _is_numpy_archive(path: Path) -> bool:
    """Tell an npz from PyTorch's archives; whichever it is, it must not unpack to far more than it is."""
    try:
        with zipfile.ZipFile(path) as archive:
            refuse_zip_bomb(archive, path.stat().st_size)
            names = archive.namelist()
    except DAMAGED as error:
        raise InputError(f"{path}: is not a complete archive ({_line(error)})") from error
    return bool(names) and all(name.endswith(".npy") for name in names)


def _tensor(name: str, array: NDArray[Any], path: Path) -> Tensor:
    try:
        return torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: {name} holds {array.dtype}; numbers are needed") from error


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
    for name, tensor in tensors.items():
        dense = tensor.layout is torch.strided and tensor.device.type == "cpu"
        if not dense or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise InputError(f"{path}: {name} declares {tuple(tensor.shape)}, more than is there")
    if not tensors:
        raise InputError(f"{path}: holds no tensors (its keys are {', '.join(map(str, list(content)[:5]))})")
    return tensors


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
