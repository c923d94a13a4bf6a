"""Inference in batches of one shape, networks with stored or random weights, and the choice of a device."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aadml.feature_extraction.ground.errors import InputError

Network = TypeVar("Network", bound=nn.Module)
Item = Mapping[str, NDArray[Any]]
"""Input for one window, frame or text: argument -> array without the batch dimension."""


@dataclass(frozen=True)
class Runner:
    """Network with its pooling and device.

    Attributes:
        network: network in evaluation mode, on its device.
        pool: function from network and items to one vector per item.
        device: device of the network.
        half: whether to multiply in bfloat16.
        batch: number of items of a batch.
    """

    network: Any
    pool: Callable[[Any, Mapping[str, Tensor]], Tensor]
    device: torch.device
    half: bool
    batch: int

    def __call__(self, clips: Iterable[Sequence[Item]]) -> list[NDArray[np.float32]]:
        """Compute the vectors of the items of clips: (t, d) for each clip of t items.

        Items of equal shape form batches of one fixed size, across clips; copies of an item pad the last batch. The
        batch shape determines the kernel, and kernels round differently. Items are released after their batch. At most
        one clip and one batch per shape are in memory.

        Args:
            clips: items of each clip, computed lazily.
        """
        waiting: dict[object, list[tuple[int, Item]]] = {}
        rows: dict[int, NDArray[np.float32]] = {}
        ends = [0]
        for clip in clips:
            for number, item in enumerate(clip, start=ends[-1]):
                queue = waiting.setdefault(tuple((name, values.shape) for name, values in item.items()), [])
                queue.append((number, item))
                if len(queue) == self.batch:
                    rows |= self._rows(queue)
                    queue.clear()
            ends.append(ends[-1] + len(clip))
        for queue in filter(None, waiting.values()):
            rows |= self._rows(queue, fill=self.batch - len(queue))
        return [np.stack([rows[number] for number in range(*span)]) for span in pairwise(ends)]

    @torch.inference_mode()
    def _rows(self, queue: Sequence[tuple[int, Item]], fill: int = 0) -> dict[int, NDArray[np.float32]]:
        items = [item for _, item in [*queue, *list(queue[:1]) * fill]]
        stacked = {name: torch.from_numpy(np.stack([item[name] for item in items])) for name in items[0]}
        if self.device.type == "cuda":
            stacked = {name: values.pin_memory() for name, values in stacked.items()}
        batch = {name: values.to(self.device, non_blocking=True) for name, values in stacked.items()}
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            vectors = self.pool(self.network, batch).float().cpu().numpy()
        return {number: row for (number, _), row in zip(queue, vectors, strict=False)}


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
