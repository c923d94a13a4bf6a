"""Weight files for tests."""

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, path)
