"""Blocks of Inception-V3 (Szegedy et al., CVPR 2016) as data: a block has branches, and a branch has steps.

The names equal those of torchvision's state dict, so that the tensors of published files are loaded by name.

Reference: Szegedy et al., Rethinking the Inception architecture for computer vision, CVPR 2016, https://doi.org/10.1109/CVPR.2016.308
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

PoolPadding = Literal["counted", "excluded"]
LastPool = Literal["average", "max"]
Kernel = int | tuple[int, int]


class Conv(NamedTuple):
    """One convolution of a branch: its name in the state dict, output channels and kernel size."""

    name: str
    channels: int
    kernel: Kernel


Fork = tuple[Conv, ...]  # convolutions of the same input, with concatenated channels
Branch = tuple[str | Conv | Fork, ...]  # a string is the name of a pool


def _wide(pooled: int) -> tuple[Branch, ...]:
    return (
        (Conv("branch1x1", 64, 1),),
        (Conv("branch5x5_1", 48, 1), Conv("branch5x5_2", 64, 5)),
        (Conv("branch3x3dbl_1", 64, 1), Conv("branch3x3dbl_2", 96, 3), Conv("branch3x3dbl_3", 96, 3)),
        ("average", Conv("branch_pool", pooled, 1)),
    )


def _factored(middle: int) -> tuple[Branch, ...]:
    across, down = (1, 7), (7, 1)
    return (
        (Conv("branch1x1", 192, 1),),
        (Conv("branch7x7_1", middle, 1), Conv("branch7x7_2", middle, across), Conv("branch7x7_3", 192, down)),
        (
            Conv("branch7x7dbl_1", middle, 1),
            Conv("branch7x7dbl_2", middle, down),
            Conv("branch7x7dbl_3", middle, across),
            Conv("branch7x7dbl_4", middle, down),
            Conv("branch7x7dbl_5", 192, across),
        ),
        ("average", Conv("branch_pool", 192, 1)),
    )


def _forked(pool: str) -> tuple[Branch, ...]:
    across, down = (1, 3), (3, 1)
    return (
        (Conv("branch1x1", 320, 1),),
        (Conv("branch3x3_1", 384, 1), (Conv("branch3x3_2a", 384, across), Conv("branch3x3_2b", 384, down))),
        (
            Conv("branch3x3dbl_1", 448, 1),
            Conv("branch3x3dbl_2", 384, 3),
            (Conv("branch3x3dbl_3a", 384, across), Conv("branch3x3dbl_3b", 384, down)),
        ),
        (pool, Conv("branch_pool", 192, 1)),
    )


# the last convolution of each of these branches halves the grid
_HALVED: tuple[Branch, ...] = (
    (Conv("branch3x3", 384, 3),),
    (Conv("branch3x3dbl_1", 64, 1), Conv("branch3x3dbl_2", 96, 3), Conv("branch3x3dbl_3", 96, 3)),
    ("halving max",),
)
_HALVED_FACTORED: tuple[Branch, ...] = (
    (Conv("branch3x3_1", 192, 1), Conv("branch3x3_2", 320, 3)),
    (
        Conv("branch7x7x3_1", 192, 1),
        Conv("branch7x7x3_2", 192, (1, 7)),
        Conv("branch7x7x3_3", 192, (7, 1)),
        Conv("branch7x7x3_4", 192, 3),
    ),
    ("halving max",),
)


class Unit(nn.Module):
    """Convolution without bias, batch normalization (epsilon 0.001), ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: Kernel, *, stride: int = 1, same: bool = True) -> None:
        super().__init__()
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        padding = (size[0] // 2, size[1] // 2) if same else (0, 0)
        self.conv = nn.Conv2d(inputs, outputs, size, stride=stride, padding=padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, inputs, h, w) to (n, outputs, h', w'); h' = h and w' = w if `same` is true and `stride` = 1."""
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Mixed(nn.Module):
    """Block of parallel branches, whose output channels are concatenated."""

    def __init__(self, inputs: int, branches: tuple[Branch, ...], *, pool_padding: PoolPadding) -> None:
        super().__init__()
        self.branches = branches
        self.counted = pool_padding == "counted"
        halving = any("halving max" in branch for branch in branches)
        self.outputs = 0
        for branch in branches:
            width = inputs
            for step in branch:
                if isinstance(step, str):
                    continue
                last = halving and step is branch[-1]
                for name, channels, kernel in _ends(step):
                    self.add_module(name, Unit(width, channels, kernel, stride=2 if last else 1, same=not last))
                width = sum(end.channels for end in _ends(step))
            self.outputs += width

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, c, h, w) to (n, outputs, h, w); a halving block outputs (h - 1) // 2 by (w - 1) // 2."""
        joined: list[Tensor] = []
        for branch in self.branches:
            ends = [x]
            for step in branch:
                ends = self._step(ends[0] if len(ends) == 1 else torch.cat(ends, 1), step)
            joined += ends
        return torch.cat(joined, 1)

    def _step(self, x: Tensor, step: str | Conv | Fork) -> list[Tensor]:
        if step == "average":
            return [F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=self.counted)]
        if step == "max":
            return [F.max_pool2d(x, 3, stride=1, padding=1)]
        if isinstance(step, str):
            return [F.max_pool2d(x, 3, stride=2)]
        return [getattr(self, end.name)(x) for end in _ends(step)]


def _ends(step: Conv | Fork) -> Fork:
    return (step,) if isinstance(step, Conv) else step


def blocks(last_pool: LastPool) -> list[tuple[str, tuple[Branch, ...]]]:
    """Return the blocks after the stem, each with its name and branches.

    Args:
        last_pool: pool of the last block, "average", or "max" as in TensorFlow's graph of 2015-12-05 and its ports.
    """
    wide = [("Mixed_5b", _wide(32)), ("Mixed_5c", _wide(64)), ("Mixed_5d", _wide(64))]
    widths = {"Mixed_6b": 128, "Mixed_6c": 160, "Mixed_6d": 160, "Mixed_6e": 192}
    factored = [(name, _factored(middle)) for name, middle in widths.items()]
    forked = [("Mixed_7b", _forked("average")), ("Mixed_7c", _forked(last_pool))]
    return [*wide, ("Mixed_6a", _HALVED), *factored, ("Mixed_7a", _HALVED_FACTORED), *forked]
