"""Activation checkpointing: activations inside a block are computed again for the gradient instead of stored."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from aadml.methods.towers.item_draws import ItemDraws


def checkpoint_blocks(network: nn.Module, parts: Iterable[nn.Module]) -> None:
    """Change a network's blocks in `parts`: each block then stores only its inputs for the gradient.

    Blocks are those items of module lists that have submodules, but no module list inside.
    """
    chosen = set(parts)
    lists = [module for module in network.modules() if isinstance(module, nn.ModuleList)]
    for block in {block for members in lists for block in members}:
        holds_list = any(isinstance(part, nn.ModuleList) for part in block.modules())
        if block in chosen and not holds_list and next(block.children(), None) is not None:
            block.forward = partial(_computed_again, block.forward)


def _computed_again(forward: Callable[..., object], *args: Any, **options: Any) -> object:
    if not torch.is_grad_enabled():
        return forward(*args, **options)
    again: Callable[..., object] = checkpoint
    return again(forward, *args, use_reentrant=False, context_fn=_contexts, **options)


def _contexts() -> tuple[AbstractContextManager[object], AbstractContextManager[object]]:
    """Return contexts for the first and second computation of a block; both computations draw the same numbers."""
    draws = ItemDraws.current()
    return nullcontext(), draws.copy() if draws else nullcontext()
