"""Tensors of weight files: safetensors, PyTorch state dicts, NumPy archives, TensorFlow checkpoints.

Only tensors are read. Pickles are read by `torch.load(weights_only=True)`. NumPy archives must not contain Python
objects. Files of formats other than safetensors can be cached as safetensors.
"""

import logging
import os
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

from aadml.feature_extraction.foreign.numpy_files import npz_arrays, refuse_zip_bomb
from aadml.feature_extraction.ground.archives import DAMAGED, damage_as, is_archive
from aadml.feature_extraction.ground.atomic import atomic_path, write_text
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.file_content import sha256
from aadml.feature_extraction.weights.tf_checkpoint import is_tf_checkpoint, read_tf_checkpoint

_log = logging.getLogger(__name__)

# exceptions of a damaged pickle besides DAMAGED
_MISREAD = (IndexError, AttributeError, AssertionError, struct.error)
_HDF5 = b"\x89HDF\r\n\x1a\n"  # signature
_WRAPPERS = ("model", "state_dict", "model_state_dict")  # usual keys of the state dict


def check_state(state: Mapping[str, Tensor], expected: Mapping[str, Tensor], network: str) -> None:
    """Check that tensors have the names and shapes of a network's state.

    Args:
        state: name -> tensor of a weight file.
        expected: state of the network, on any device.
        network: name of the network, for the message.

    Raises:
        InputError: a tensor is missing or unknown, or has another shape. The message contains the first such tensor.
    """
    missing = [f"tensor {name} is missing" for name in expected if name not in state]
    unknown = [f"{name} is not a tensor of this network" for name in state if name not in expected]
    differing = [
        f"{name} has shape {tuple(state[name].shape)} instead of {tuple(tensor.shape)}"
        for name, tensor in expected.items()
        if name in state and state[name].shape != tensor.shape
    ]
    for problems in (missing, unknown, differing):
        if problems:
            count = f"mismatched tensors: {len(problems)}; tensors in the file: {len(state)}"
            raise InputError(f"{network} weights: {problems[0]} ({count}); pass a weight file of this network")


def read_tensors(path: Path, *, cache: Path | None = None) -> dict[str, Tensor]:
    """Read all tensors of a weight file.

    Args:
        path: a safetensors file, recognized by its suffix, or a PyTorch, NumPy or TensorFlow file, recognized by
            its content.
        cache: path of the converted copy of exactly this content; None for no copy. A copy is read if it has the
            SHA-256 in the file `<cache>.sha256`; a missing, damaged or unchecked copy is written. In a folder without
            write permission, an unchecked copy of an earlier version is read. A copy that cannot be written causes
            only a warning. A safetensors file is not copied.

    Returns:
        Tensors on the CPU, by name; wrappers such as PANNs' `model` are removed.

    Raises:
        InputError: the file does not exist, has another format, is damaged, has no tensors, or contains unsafe
            objects.
    """
    if not path.is_file():
        raise InputError(f"{path} is not a file; pass a .safetensors, .pth or .npz file, or a TensorFlow checkpoint")
    if path.suffix == ".safetensors":
        return _safetensors(path)
    refuse_keras(path)
    if cache is not None and _is_intact(cache):
        with suppress(InputError):  # damaged
            return _safetensors(cache)
    tensors = _foreign(path)
    if cache is not None:
        try:
            write_tensors(cache, tensors)
            write_text(_checksum_of(cache), sha256(cache))
        except (OSError, InputError) as error:
            _log.warning("%s: the converted copy is not cached (%s)", path, error)
    return tensors


def _checksum_of(cache: Path) -> Path:
    return cache.with_name(f"{cache.name}.sha256")


def _is_intact(cache: Path) -> bool:
    """True if a copy has its checksum, or has none and cannot be replaced."""
    with suppress(OSError):
        if not _checksum_of(cache).exists() and not os.access(cache.parent, os.W_OK):
            return cache.is_file()
        return _checksum_of(cache).read_bytes() == sha256(cache).encode()
    return False


def refuse_keras(path: Path) -> None:
    """Raise InputError for a weight file of Keras: HDF5 (`.weights.h5`, `.h5`) or the archive `.keras`."""
    with path.open("rb") as file:
        kind = "an HDF5 file (the format of Keras)" if file.read(8) == _HDF5 else ""
    if is_archive(path):
        with suppress(*DAMAGED), zipfile.ZipFile(path) as archive:
            kind = "a model of Keras" if "model.weights.h5" in archive.namelist() else kind
    if kind:
        raise InputError(
            f"{path} is {kind}, and the names of Keras do not identify the layers of the weights; pass "
            "the published file of the network (see `aadml weights list`), or save the tensors as .safetensors with "
            "the names of the PyTorch network"
        )


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors of any shape as a safetensors file, completely or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    with atomic_path(path) as temporary:
        save_file({name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}, temporary)


def _safetensors(path: Path) -> dict[str, Tensor]:
    problem, advice = f"{path} is not a complete safetensors file", "restore the file from a copy"
    with damage_as(problem, advice, (SafetensorError, OSError, ValueError)):
        return load_file(path)


def _foreign(path: Path) -> dict[str, Tensor]:
    if is_tf_checkpoint(path):
        return {name: torch.from_numpy(array) for name, array in read_tf_checkpoint(path).items()}
    if is_archive(path) and _is_numpy_archive(path):
        return {name: _tensor(name, array, path) for name, array in npz_arrays(path).items()}
    problem, advice = f"{path} is not a complete PyTorch weight file", "download the file again"
    with damage_as(problem, advice, (*DAMAGED, *_MISREAD)), torch.serialization.safe_globals(_numpy_arrays()):
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise InputError(f"{path} contains data other than tensors; pass a file of tensors only") from error
    return _unwrapped(content, path)


def _numpy_arrays() -> list[Any]:
    """Return the types and functions that `torch.load` needs as safe globals for NumPy arrays.

    Older files, for example those of PANNs and of the PCA of VGGish, contain such arrays.
    """
    rebuild = {"_reconstruct": np.empty(0).__reduce__()[0], "scalar": np.float64(0).__reduce__()[0]}
    named = [(f, f"numpy.{core}.multiarray.{name}") for name, f in rebuild.items() for core in ("core", "_core")]
    return [np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in ("f2", "f4", "f8", "i4", "i8", "u1", "?")), *named]


def _is_numpy_archive(path: Path) -> bool:
    """Return whether an archive is an npz file, not a PyTorch file. Raise InputError for a decompression bomb."""
    problem, advice = f"{path} is not a complete archive", "download the file again"
    with damage_as(problem, advice), zipfile.ZipFile(path) as archive:
        refuse_zip_bomb(archive, path.stat().st_size)
        names = archive.namelist()
    return bool(names) and all(name.endswith(".npy") for name in names)


def _tensor(name: str, array: NDArray[Any], path: Path) -> Tensor:
    try:
        return torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{path}: {name} has type {array.dtype}, which PyTorch does not read; pass numeric arrays, such as float32"
        ) from error


def _unwrapped(content: Any, path: Path) -> dict[str, Tensor]:
    for key in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping):
        raise InputError(f"{path} contains an object of type {type(content).__name__}; pass a state dict of tensors")
    arrays = {
        str(name).removeprefix("module."): torch.from_numpy(value) if isinstance(value, np.ndarray) else value
        for name, value in content.items()
    }
    tensors = {name: value for name, value in arrays.items() if isinstance(value, Tensor)}
    for name, tensor in tensors.items():
        if tensor.layout is not torch.strided or tensor.device.type != "cpu":
            kind = f"a tensor of layout {tensor.layout} on the device {tensor.device}"
            raise InputError(f"{path}: {name} is {kind}; save dense tensors on the CPU")
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise InputError(
                f"{path}: {name} has shape {tuple(tensor.shape)}, which needs more data than the file contains; "
                "download the file again"
            )
    if not tensors:
        raise InputError(
            f"{path} contains no tensors (keys found: {', '.join(map(str, list(content)[:5])) or 'none'}); "
            "pass a state dict of tensors"
        )
    return tensors
