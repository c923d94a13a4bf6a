"""Inference in batches of one shape, networks with stored or random weights, and the choice of a device."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aadml.feature_extraction.ground.errors import InputError

Network = TypeVar("Network", bound=nn.Module)


@torch.inference_mode()
def batched(network: Callable[[Tensor], Tensor], clips: Sequence[Tensor], size: int) -> list[NDArray[np.float32]]:
    """Apply a network to the items of several clips in batches of one fixed shape.

    Every batch has exactly `size` items; zeros pad the last batch. The shape determines the kernel, and kernels round
    differently. A fixed shape therefore makes the values of an item independent of the other items.

    Args:
        network: function (size, ...) -> (size, d).
        clips: one tensor (t_i, ...) per clip, on the device of the network.
        size: number of items of a batch.

    Returns:
        One array (t_i, d) float32 per clip.
    """
    items = [item for clip in clips for item in clip]
    rows: list[Tensor] = []
    for start in range(0, len(items), size):
        batch = torch.stack(items[start : start + size])
        if len(batch) < size:
            batch = torch.cat([batch, batch.new_zeros(size - len(batch), *batch.shape[1:])])
        rows.append(network(batch).float().cpu())
    return np.split(torch.cat(rows)[: len(items)].numpy(), np.cumsum([len(clip) for clip in clips])[:-1])


def loaded(build: Callable[[], Network], state: Mapping[str, Tensor]) -> Network:
    """Build a frozen network with the weights `state`, without initializing, copying or converting values.

    Args:
        build: function that returns the network.
        state: all parameters and buffers of the network, with the right shapes and types.
    """
    with torch.device("meta"):
        network = build()
    network.load_state_dict(state, assign=True)
    return network.requires_grad_(False)


def seeded(build: Callable[[], Network], seed: int = 0) -> Network:
    """Build a network with random weights from a seed.

    Weights are drawn from a normal distribution with variance 2 / fan-in. Biases are zero, and a batch normalization is
    the identity. The states of the global random generators do not change.

    Args:
        build: function that returns the network.
        seed: seed of the weights.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.device("meta"):
        shapes = {name: tensor.shape for name, tensor in build().state_dict().items()}
    state: dict[str, Tensor] = {}
    for name, shape in shapes.items():
        if name.endswith("num_batches_tracked"):
            state[name] = torch.zeros((), dtype=torch.int64)
        elif len(shape) > 1:
            spread = math.sqrt(2.0 / shape[1:].numel())
            state[name] = torch.empty(shape).normal_(0.0, spread, generator=generator)
        else:  # a batch normalization starts as the identity, a bias at zero
            state[name] = torch.ones(shape) if name.endswith((".bn.weight", "running_var")) else torch.zeros(shape)
    return loaded(build, state)


def chosen_device(device: str, where: str) -> torch.device:
    """Return the device for `auto`, `cpu` or `cuda[:n]`; `where` is the prefix of `.device` in the message.

    Raises:
        InputError: the device is unknown or not available.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cpu":
        return torch.device("cpu")
    kind, _, number = device.partition(":")
    count = torch.cuda.device_count()
    if kind == "cuda" and count and (number in ("", "0") or (number.isdigit() and int(number) < count)):
        return torch.device(device)
    last = f" to cuda:{count - 1}" if count > 1 else ""
    possible = f"auto, cpu, cuda, cuda:0{last}" if count else "auto, cpu (this machine has no CUDA device)"
    raise InputError(f"{where}.device is {device}; choose from {possible}")


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Return whether a network multiplies in bfloat16: if `precision` is "bfloat16", or "auto" on a capable device."""
    return precision == "bfloat16" or (precision == "auto" and bfloat16_units(device))


def bfloat16_units(device: torch.device) -> bool:
    """Return whether the device multiplies bfloat16 in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    supported: Any = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return bool(supported and supported())
