"""Rows divided over the processes of a training, and what the processes add up; alone, everything is as it is given.

A batch is one for all processes: each encodes its own rows, the outputs are gathered with their gradient, and what a
process computes from there on is its part of a sum. So the loss of a batch is the sum of what all processes return, its
gradient the sum of theirs, and a row draws the same dropout wherever it is encoded.

Processes meet inside `joined`; rows are divided only inside `divided`, which is the training loop. What is called there
is called by all processes in the same order; what only one may do is left to `by_first`, or done in `alone`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
from safetensors.torch import load, save
from torch import Tensor, distributed, nn

from aadml.comparison.processes import launch
from aadml.comparison.processes.launch import ProcessLost
from aadml.feature_extraction.ground.json_values import JsonObject

Name = TypeVar("Name", bound=str)

TIMEOUT = timedelta(minutes=30)
"""How long a process waits for the others, the first one's validation included, before the job ends."""


_FACTS = ":facts"  # beside tensors whose names are those of Python attributes


@dataclass(frozen=True)
class _Place:
    rank: int = 0
    count: int = 1


_ALONE = _Place()
_job: ContextVar[_Place] = ContextVar("job", default=_ALONE)
_place: ContextVar[_Place] = ContextVar("place", default=_ALONE)
_encoding: ContextVar[int | None] = ContextVar("encoding", default=None)


@contextmanager
def joined() -> Iterator[None]:
    """Join the processes that `torchrun` started; one that was started alone joins nobody.

    Raises:
        ProcessLost: the others do not come.
    """
    if not launch.started() or distributed.is_initialized():
        yield
        return
    # Imported later, as optimizers do, its functions would keep the group as their default, and with it threads that
    # now and then abort the process at its end (torch 2.13).
    import torch.distributed.nn

    cards = torch.cuda.device_count()
    own_cards = cards > 0 and cards >= launch.processes_here()
    with _answered():
        distributed.init_process_group("cpu:gloo,cuda:nccl" if own_cards else "gloo", timeout=TIMEOUT)
    token = _job.set(_Place(distributed.get_rank(), distributed.get_world_size()))
    try:
        yield
    except BaseException:
        launch.claim_last_word()  # before the others see that this process is gone
        raise
    finally:
        _job.reset(token)
    distributed.destroy_process_group()


@contextmanager
def divided() -> Iterator[None]:
    """Divide rows over the processes that joined, as long as the context lasts."""
    token = _place.set(_job.get())
    try:
        yield
    finally:
        _place.reset(token)


@contextmanager
def alone() -> Iterator[None]:
    """Compute with all rows in this process, as long as the context lasts."""
    token = _place.set(_ALONE)
    try:
        yield
    finally:
        _place.reset(token)


def count() -> int:
    """Count the processes that joined."""
    return _job.get().count


def is_first() -> bool:
    """Tell whether this process is the one that reads and writes the run."""
    return _job.get().rank == 0


def own_device(device: torch.device) -> torch.device:
    """Give this process a card of its own, where there are cards."""
    if device.type != "cuda" or not launch.started():
        return device
    return torch.device("cuda", launch.local_rank() % torch.cuda.device_count())


def own(total: int) -> slice:
    """Say which of `total` rows are this process's: an even share, in order."""
    place = _place.get()
    size, more = divmod(total, place.count)
    start = place.rank * size + min(place.rank, more)
    return slice(start, start + size + (place.rank < more))


def together(total: int, encode: Callable[[], dict[Name, Tensor]]) -> dict[Name, Tensor]:
    """Encode this process's rows of a batch, and gather those of all with their gradient.

    Args:
        total: rows of the batch, b.
        encode: gives the outputs of this process's rows by name, each (own, d), the same names everywhere.

    Returns:
        The outputs of all rows, each (b, d).
    """
    if not _is_divided():
        return encode()
    token = _encoding.set(total)
    try:
        parts = encode()
    finally:
        _encoding.reset(token)
    gather: Callable[..., tuple[Tensor, ...]] = _Gathered.apply
    return dict(zip(parts, gather(own(total), total, *parts.values()), strict=True))


def drawn_rows(rows: int) -> tuple[int, slice]:
    """Say for how many rows to draw, and which of the draws are those of the `rows` at hand.

    Every process draws for the whole batch and takes its own rows: a row's draws then do not depend on who encodes it.
    """
    total = _encoding.get()
    return (rows, slice(None)) if total is None else (total, own(total))


def gathered(part: Tensor, total: int) -> Tensor:
    """Put the rows (own, d) of all processes together (total, d), without gradient."""
    if not _is_divided():
        return part
    whole = part.new_zeros(total, *part.shape[1:])
    whole[own(total)] = part
    return _reduced(whole)


def portion(value: Tensor) -> Tensor:
    """Give this process's part of a value that all processes compute alike."""
    return value / _place.get().count if _is_divided() else value


def summed(values: Sequence[Tensor]) -> list[Tensor]:
    """Add up scalars or other tensors over all processes, without gradient; one message for all."""
    if not _is_divided() or not values:
        return list(values)
    whole = _reduced(torch.cat([value.detach().flatten().double() for value in values]))
    parts = whole.split([value.numel() for value in values])
    return [part.view(value.shape).to(value.dtype) for part, value in zip(parts, values, strict=True)]


def largest(values: Tensor) -> Tensor:
    """Give the largest of all processes' values, entry by entry."""
    return _reduced(values, distributed.ReduceOp.MAX) if _is_divided() else values


def sum_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Add up the gradients of parameters over all processes; one that has none anywhere keeps none."""
    if not _is_divided():
        return
    chosen = [one for one in parameters if one.requires_grad]
    there = torch.tensor([float(one.grad is not None) for one in chosen], device=chosen[0].device)
    grads = [torch.zeros_like(one) if one.grad is None else one.grad for one in chosen]
    whole = _reduced(torch.cat([there, *(grad.flatten() for grad in grads)]))
    parts = whole[len(chosen) :].split([one.numel() for one in chosen])
    for one, part, present in zip(chosen, parts, whole[: len(chosen)].tolist(), strict=True):
        one.grad = part.view_as(one) if present else None


def by_first(compute: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """Let the first process compute something alone; all get its result, which JSON can hold."""
    if count() == 1:
        return dict(compute())
    data = b""
    if is_first():
        with alone():
            data = json.dumps(dict(compute())).encode()
    found: dict[str, Any] = json.loads(_from_first(data))
    return found


def tensors_of_first(
    given: tuple[Mapping[str, Tensor], JsonObject] | None,
) -> tuple[Mapping[str, Tensor], JsonObject] | None:
    """Give all processes the tensors and facts that the first one has, or has not."""
    if count() == 1:
        return given
    data = b""
    if is_first() and given is not None:
        ready = {key: value.detach().cpu().contiguous().clone() for key, value in given[0].items()}
        data = save({**ready, _FACTS: torch.frombuffer(bytearray(json.dumps(given[1]).encode()), dtype=torch.uint8)})
    received = _from_first(data)
    if not received or is_first():
        return given
    tensors = load(received)
    return tensors, json.loads(bytes(tensors.pop(_FACTS).tolist()))


def _is_divided() -> bool:
    return _place.get().count > 1


class _Gathered(torch.autograd.Function):
    """Rows of all processes, of several matrices in one message, either way."""

    @staticmethod
    def forward(ctx: Any, rows: slice, total: int, *parts: Tensor) -> tuple[Tensor, ...]:
        ctx.rows, ctx.widths = rows, [part.shape[1] for part in parts]
        whole = parts[0].new_zeros(total, sum(ctx.widths))
        whole[rows] = torch.cat(parts, 1)
        return tuple(torch.split(_reduced(whole), ctx.widths, 1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        return None, None, *_reduced(torch.cat(gradients, 1))[ctx.rows].split(ctx.widths, 1)


def _reduced(values: Tensor, how: Any = distributed.ReduceOp.SUM) -> Tensor:
    """Reduce values over all processes; where processes share a card, on the way over the processor."""
    apart = values.is_cuda and "nccl" not in distributed.get_backend_config()
    wire = values.cpu() if apart else values.contiguous().clone()
    with _answered():
        distributed.all_reduce(wire, how)
    return wire.to(values.device)


def _from_first(data: bytes) -> bytes:
    with _answered():
        size = torch.tensor(len(data))
        distributed.broadcast(size, 0)
        wire = (
            torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else torch.empty(int(size), dtype=torch.uint8)
        )
        if len(wire):
            distributed.broadcast(wire, 0)
    return wire.numpy().tobytes()


@contextmanager
def _answered() -> Iterator[None]:
    """Say of what the network reports what it means."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessLost("a process of the training ended, or did not answer") from error
