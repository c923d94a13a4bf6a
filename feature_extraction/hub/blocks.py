"""The blocks of a network in the order in which they run, so that the last of them can be trained alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Literal

import torch
from torch import nn

from aadml.feature_extraction.ground.errors import InputError


@dataclass(frozen=True)
class Order:
    """What ran, and when.

    Attributes:
        start: module -> number of its first call.
        end: module -> number of the end of its last call.
    """

    start: dict[nn.Module, int]
    end: dict[nn.Module, int]


def trained_parts(network: nn.Module, run: Callable[[], object], blocks: int | Literal["all"]) -> list[nn.Module]:
    """Name the modules that are trained where the last blocks are.

    The blocks are those of the list of modules that runs last; lists within its blocks do not count, so that the blocks
    of a network in stages are its stages. What runs after them (a normalization, a pooler, a projection) is always
    trained.

    Args:
        network: a tower.
        run: calls the tower once.
        blocks: how many, from the end; "all" for everything that runs.

    Raises:
        InputError: more blocks than there are.
    """
    order = _order(network, run)
    rows = _blocks(network, order)
    if blocks == "all":  # what a block holds is used, though some attentions do not call their parts
        return list(dict.fromkeys([*order.start, *(module for block in rows for module in block.modules())]))
    if not rows:
        raise InputError("blocks: this network has none; 'all' is possible, or freeze it")
    if blocks > len(rows):
        raise InputError(f"blocks: {blocks} given; this network has {len(rows)}, so 0 to {len(rows)} or all")
    last = max(order.end[block] for block in rows)
    after = [module for module, began in order.start.items() if began > last]
    return [*(module for block in rows[len(rows) - blocks :] for module in block.modules()), *after]


def train_only(network: nn.Module, parts: list[nn.Module]) -> None:
    """Let the parameters of some modules be trained, those of their children not, and no others."""
    network.requires_grad_(False)
    for part in parts:
        for parameter in part.parameters(recurse=False):
            parameter.requires_grad_(True)


def _blocks(network: nn.Module, order: Order) -> list[nn.Module]:
    lists = [module for module in network.modules() if isinstance(module, nn.ModuleList)]
    within = {inner for one in lists for inner in one.modules() if inner is not one}
    rows = [[block for block in one if block in order.start] for one in lists if one not in within]
    return max(filter(None, rows), key=lambda row: order.start[row[0]], default=[])


def _order(network: nn.Module, run: Callable[[], object]) -> Order:
    order = Order({}, {})
    with _noted(network, order), torch.no_grad():
        run()
    return order


@contextmanager
def _noted(network: nn.Module, order: Order) -> Iterator[None]:
    clock = count()

    def begin(module: nn.Module, _: object) -> None:
        for one in _called(module):
            order.start.setdefault(one, next(clock))

    def end(module: nn.Module, *_: object) -> None:
        for one in _called(module):
            order.end[one] = next(clock)

    hooks = [
        hook
        for module in network.modules()
        for hook in (module.register_forward_pre_hook(begin), module.register_forward_hook(end))
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _called(module: nn.Module) -> Iterator[nn.Module]:
    """Give a module that is called; torch's attention uses the weights of its parts without calling them."""
    return module.modules() if isinstance(module, nn.MultiheadAttention) else iter((module,))
