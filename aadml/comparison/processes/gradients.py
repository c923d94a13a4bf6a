"""Sums of gradients over the workers of a training run, sent in buckets during the backward pass."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, distributed, nn

from aadml.comparison.processes.group import answered, gradient_channel, message_of
from aadml.feature_extraction.ground.errors import InputError

BUCKET = 25 << 20
"""Bytes of gradients summed over workers in one message."""


@contextmanager
def summed_gradients(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Sum the gradient of each parameter over all workers, during the one backward pass in the context.

    Gradients are sent in buckets, each as soon as the backward pass has computed its gradients, as in PyTorch DDP
    (Li et al., 2020). A gradient that is None on all workers remains None.

    Reference: Li et al., PyTorch distributed, PVLDB 2020, https://arxiv.org/abs/2006.15704
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    channel = gradient_channel()
    if channel is None or not trained:
        yield
        return
    buckets = _Buckets(trained, channel)
    hooks = [weight.register_post_accumulate_grad_hook(buckets.computed) for weight in buckets.parameters]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
    buckets.finish()


class _Buckets:
    """Sums of gradients over all workers, in messages of about BUCKET bytes that every worker sends in one order.

    Args:
        parameters: parameters in the order of the forward pass; a backward pass computes the last gradients first.
        channel: group of all workers for these messages only. Other messages of a backward pass may come before or
            after them.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], channel: Any) -> None:
        self.parameters, self._channel = parameters, channel
        self._buckets: list[list[nn.Parameter]] = [[]]
        self._sent: list[tuple[Tensor, Any]] = []
        self._place: dict[Tensor, int] = {}
        size = 0
        for parameter in reversed(parameters):
            if size and size + parameter.nbytes > BUCKET:
                self._buckets.append([])
                size = 0
            size += parameter.nbytes
            self._buckets[-1].append(parameter)
            self._place[parameter] = len(self._buckets) - 1
        self._missing = [set(bucket) for bucket in self._buckets]

    def computed(self, parameter: Tensor) -> None:
        """Send the next buckets whose gradients are all computed, now that the gradient of `parameter` is."""
        self._missing[self._place[parameter]].discard(parameter)
        while len(self._sent) < len(self._buckets) and not self._missing[len(self._sent)]:
            self._send()

    def finish(self) -> None:
        """Send the other buckets, and set every gradient to its sum.

        Raises:
            InputError: a gradient was computed further after it was sent.
        """
        if any(parameter.grad is not None for bucket in self._buckets[: len(self._sent)] for parameter in bucket):
            raise InputError(
                "a gradient is computed in several parts, which several processes cannot sum; pass "
                "use_reentrant=False to torch.utils.checkpoint, or train in one process"
            )
        while len(self._sent) < len(self._buckets):
            self._send()
        for bucket, (wire, work) in zip(self._buckets, self._sent, strict=True):
            with answered():
                work.wait()
            sums = wire.to(bucket[0].device)
            parts = sums[len(bucket) :].split([parameter.numel() for parameter in bucket])
            for parameter, part, present in zip(bucket, parts, sums[: len(bucket)].tolist(), strict=True):
                parameter.grad = part.view_as(parameter) if present else None

    def _send(self) -> None:
        bucket = self._buckets[len(self._sent)]
        flags = torch.tensor([float(parameter.grad is not None) for parameter in bucket], device=bucket[0].device)
        grads = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in bucket]
        wire = message_of(torch.cat([flags, *(grad.flatten() for grad in grads)]))
        with answered():
            self._sent.append((wire, distributed.all_reduce(wire, group=self._channel, async_op=True)))
        for parameter in bucket:
            parameter.grad = None  # the message holds a copy
