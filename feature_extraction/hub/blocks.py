"""Blocks of a network in the order of their calls, so that only the last blocks can be trained."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Literal

import torch
from torch import nn

from aadml.feature_extraction.ground.errors import InputError

Calls = dict[nn.Module, int]  # module -> time of a call, counted from 0


def trained_parts(network: nn.Module, run: Callable[[], object], blocks: int | Literal["all"]) -> list[nn.Module]:
    """Return the modules to train if only the last blocks are trained.

    The blocks are the items of the module list that runs last. Lists inside a block do not count. The blocks of a
    network in stages are therefore its stages. Modules that run after the blocks (a normalization, a pooler, a
    projection) are always trained.

    Args:
        network: a tower.
        run: function that calls the tower once.
        blocks: number of blocks to train, from the end; "all" for every module that runs.

    Returns:
        Modules whose direct parameters are trained. Their submodules are separate items.

    Raises:
        InputError: the network has no blocks, or fewer than `blocks`.
    """
    starts, ends = _calls(network, run)
    rows = _blocks(network, starts)
    if blocks == "all":  # all parts of a block are used, although some attention modules do not call their parts
        return list(dict.fromkeys([*starts, *(module for block in rows for module in block.modules())]))
    if not rows:
        raise InputError(f"blocks is {blocks}, but this network has no blocks; choose all, or freeze the network")
    if blocks > len(rows):
        raise InputError(
            f"blocks is {blocks}, but the number of blocks of this network is {len(rows)}; "
            f"choose 0 to {len(rows)}, or all"
        )
    last = max(ends[block] for block in rows)
    after = [module for module, start in starts.items() if start > last]
    return [*(module for block in rows[len(rows) - blocks :] for module in block.modules()), *after]


def train_only(network: nn.Module, parts: list[nn.Module]) -> None:
    """Enable gradients only for the direct parameters of `parts`, not for the parameters of submodules."""
    network.requires_grad_(False)
    for part in parts:
        for parameter in part.parameters(recurse=False):
            parameter.requires_grad_(True)


def _blocks(network: nn.Module, starts: Calls) -> list[nn.Module]:
    lists = [module for module in network.modules() if isinstance(module, nn.ModuleList)]
    nested = {inner for outer in lists for inner in outer.modules() if inner is not outer}
    rows = [[block for block in outer if block in starts] for outer in lists if outer not in nested]
    return max(filter(None, rows), key=lambda row: starts[row[0]], default=[])


def _calls(network: nn.Module, run: Callable[[], object]) -> tuple[Calls, Calls]:
    """Run a network; return the start of each module's first call, and the end of its last call."""
    starts: Calls = {}
    ends: Calls = {}
    clock = count()

    def begin(module: nn.Module, _: object) -> None:
        starts.update((part, next(clock)) for part in _called(module) if part not in starts)

    def finish(module: nn.Module, *_: object) -> None:
        ends.update((part, next(clock)) for part in _called(module))

    hooks = [module.register_forward_pre_hook(begin) for module in network.modules()]
    hooks += [module.register_forward_hook(finish) for module in network.modules()]
    try:
        with torch.no_grad():
            run()
    finally:
        for hook in hooks:
            hook.remove()
    return starts, ends


def _called(module: nn.Module) -> Iterator[nn.Module]:
    """Return an iterator over a module; for an `nn.MultiheadAttention`, also over its submodules.

    An `nn.MultiheadAttention` uses the weights of its submodules without calling the submodules.
    """
    return module.modules() if isinstance(module, nn.MultiheadAttention) else iter((module,))
