"""Run a network over many clips so that no clip's values depend on the others; make untrained networks repeatable."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from feature_extraction.errors import InputError

Network = TypeVar("Network", bound=nn.Module)


@torch.inference_mode()
def batched(network: Callable[[Tensor], Tensor], clips: Sequence[Tensor], size: int) -> list[NDArray[np.float32]]:
    """Apply a network to the items of several clips in batches of one fixed shape.

    Every batch has exactly `size` items, the last one padded with zeros: kernels are chosen by shape, and another
    kernel rounds otherwise. So an item's values are the same whatever stands beside it.

    Args:
        network: (size, ...) -> (size, d).
        clips: one tensor (t_i, ...) a clip, all on the network's device.
        size: of a batch.

    Returns:
        One array (t_i, d) float32 a clip.
    """
    items = torch.cat(list(clips))
    rows: list[Tensor] = []
    for start in range(0, len(items), size):
        batch = items[start : start + size]
        if len(batch) < size:
            batch = torch.cat([batch, batch.new_zeros(size - len(batch), *batch.shape[1:])])
        rows.append(network(batch).float().cpu())
    whole = torch.cat(rows)[: len(items)].numpy()
    return np.split(whole, np.cumsum([len(clip) for clip in clips])[:-1])


def unfilled(build: Callable[[], Network]) -> Network:
    """Build a network whose weights are not yet set (to be loaded or drawn), without drawing a random number."""
    with torch.device("meta"):
        network = build()
    network.to_empty(device="cpu")
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_parameters()
    return network


def seeded(build: Callable[[], Network], seed: int = 0) -> Network:
    """Build a network and fill its weights from a seed: normals that keep the variance under ReLU, zero biases.

    Nothing else that draws random numbers is disturbed.
    """
    generator = torch.Generator().manual_seed(seed)
    network = unfilled(build)
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                spread = float(np.sqrt(2.0 / module.weight[0].numel()))
                module.weight.normal_(0.0, spread, generator=generator)
                if module.bias is not None:
                    module.bias.zero_()
    return network


def chosen_device(device: str, where: str) -> torch.device:
    """Resolve `auto`, `cpu` or `cuda[:n]`; `where` names the option's owner in the error."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu":
        return torch.device("cpu")
    if device.split(":")[0] == "cuda" and torch.cuda.is_available():
        return torch.device(device)
    possible = "auto, cpu, cuda" if torch.cuda.is_available() else "auto, cpu (there is no CUDA device here)"
    raise InputError(f"{where}.device: given {device}, possible are {possible}")


def bfloat16_units(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    supported: Any = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(supported and supported())
