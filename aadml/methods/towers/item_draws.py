"""Random draws of a network in training, separately for each item of its batch."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

_ATEN: Any = torch.ops.aten
_FILLING = (_ATEN.bernoulli_.float, _ATEN.uniform_.default)


def seed_of(*key: int) -> int:
    """Return a seed that depends on all numbers of a key."""
    return int.from_bytes(sha256(repr(key).encode()).digest()[:8], "little") >> 1


class ItemDraws(TorchDispatchMode):
    """Context in which every item of a batch has its own generator for dropout and stochastic depth.

    The draws of an item depend neither on the other items of the batch nor on their number. The draws therefore do
    not change if a batch is divided into parts or over workers. A random tensor is divided by item along its first
    dimension, and the generator of each item draws the part of this item. If the number of items does not divide
    that dimension, the generator `shared` draws the whole tensor. Dropout inside the fused attention of a GPU does
    not use these generators.

    Args:
        generators: one generator for each item.
        shared: generator of the draws that all items share.
    """

    def __init__(self, generators: Sequence[torch.Generator], shared: torch.Generator) -> None:
        TorchDispatchMode.__init__(self)
        self._generators, self._shared = generators, shared

    @classmethod
    def seeded(cls, seeds: Sequence[int], shared: int, device: torch.device) -> Self:
        """Return a context with new generators on `device`.

        Args:
            seeds: one seed for the generator of each item.
            shared: seed of the generator for the draws that all items share.
            device: device of the generators.
        """
        return cls([torch.Generator(device).manual_seed(seed) for seed in seeds],
                   torch.Generator(device).manual_seed(shared))  # fmt: skip

    @classmethod
    def current(cls) -> Self | None:
        """Return the innermost active context of this class; None without an active context."""
        return next((mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, cls)), None)

    def copy(self) -> Self:
        """Return a copy that continues with the same draws, for a repeated pass through part of the network."""
        return type(self)([generator.clone_state() for generator in self._generators], self._shared.clone_state())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, with the generators of this context for the draws of certain operations.

        These operations are `native_dropout` in training, `rand`, and `bernoulli_` or `uniform_` called without a
        generator.
        """
        options = kwargs or {}
        if func is _ATEN.native_dropout.default and args[2]:
            keep_rate = 1 - args[1]
            mask = self._filled(torch.empty_like(args[0]), lambda part, g: part.bernoulli_(keep_rate, generator=g))
            return args[0] * mask / keep_rate, mask.bool()
        if func is _ATEN.rand.default:
            return self._filled(torch.empty(*args, **options), lambda part, g: part.uniform_(generator=g))
        if func in _FILLING and options.get("generator") is None:
            return self._filled(args[0], lambda part, g: func(part, *args[1:], **{**options, "generator": g}))
        return func(*args, **options)

    def _filled(self, values: Tensor, fill: Callable[[Tensor, torch.Generator], object]) -> Tensor:
        for part, generator in self._parts(values):
            fill(part, generator)
        return values

    def _parts(self, values: Tensor) -> Iterator[tuple[Tensor, torch.Generator]]:
        if values.ndim == 0 or len(values) % len(self._generators):
            return iter([(values, self._shared)])
        return zip(values.chunk(len(self._generators)), self._generators, strict=True)
