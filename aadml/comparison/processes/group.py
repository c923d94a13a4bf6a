"""Rows divided over the workers of a training run, and sums over workers; a single process changes no value.

All workers share each batch. Each worker encodes its own rows, and the outputs are gathered with their gradient.
Each worker then computes its part of a sum. The loss of a batch is therefore the sum of the results of all workers,
and the gradient of the loss is the sum of the gradients of these results. The dropout of a row does not depend on
the worker that encodes the row.

Workers connect inside `joined`. Rows are divided only inside `divided`, which surrounds the training loop. All
workers call the functions of this module in the same order. Use `by_first` or `alone` for work of a single worker.
Communicating functions raise ProcessLost if another worker ended or does not respond.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
from safetensors.torch import load, save
from torch import Tensor, distributed

from aadml.comparison.autograd_functions import Gradients, once_differentiable
from aadml.comparison.processes import launch
from aadml.comparison.processes.launch import ProcessLost
from aadml.feature_extraction.ground.errors import InputError

Name = TypeVar("Name", bound=str)
V = TypeVar("V")
T = TypeVar("T")

TIMEOUT = timedelta(minutes=30)
"""Maximum wait for other workers, including validation on rank 0, before the job ends."""

_FACTS = ":facts"  # no tensor has this name, since tensors are named after Python attributes


@dataclass(frozen=True)
class _Place:
    rank: int = 0
    count: int = 1
    gradients: Any = None  # group of all workers for the sums of gradients


_ALONE = _Place()
_job: ContextVar[_Place] = ContextVar("job", default=_ALONE)
_place: ContextVar[_Place] = ContextVar("place", default=_ALONE)
_connections = itertools.count()
_encoding: ContextVar[int | None] = ContextVar("encoding", default=None)


@contextmanager
def joined() -> Iterator[None]:
    """Connect to the other workers of the job for the duration of the context.

    The context has no effect without other workers, or inside another such context. If the program has connected the
    workers itself, its process group is used.

    Raises:
        ProcessLost: the other workers do not respond.
        InputError: the program's process group has no backend for the CPU.
    """
    if not launch.started() or count() > 1:
        yield
        return
    own_group = not distributed.is_initialized()
    if own_group:
        _connect()
    elif "cpu:" not in distributed.get_backend_config():
        raise InputError(
            f"the process group of this program has the backend {distributed.get_backend()}, which cannot send values "
            "of the CPU; call init_process_group without a backend, or with cpu:gloo,cuda:nccl"
        )
    channel = distributed.new_group()
    with _set(_job, _Place(distributed.get_rank(), distributed.get_world_size(), channel)):
        try:
            yield
        except BaseException:
            launch.claim_last_word()  # before the other workers notice that this one ended
            raise
    distributed.destroy_process_group(None if own_group else channel)


def _connect() -> None:
    # A later import, as by optimizers, would bind the group as a default argument, and its threads sometimes abort the
    # process at exit (torch 2.13).
    import torch.distributed.nn
    from torch.distributed import PrefixStore  # type: ignore[attr-defined]

    cards = torch.cuda.device_count()
    own_cards = cards > 0 and cards >= launch.processes_here()
    with answered():
        store, rank, workers = _rendezvous()
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if own_cards else "gloo",
            # the addresses of an earlier group of this job are still in the store
            store=PrefixStore(f"aadml/{next(_connections)}", store), rank=rank, world_size=workers,
            timeout=TIMEOUT,
        )  # fmt: skip


@cache
def _rendezvous() -> tuple[Any, int, int]:
    """Return the store of the job, which one worker may serve, the rank of this worker, and the number of workers."""
    from torch.distributed import rendezvous  # type: ignore[attr-defined]

    store, rank, workers = next(rendezvous("env://"))
    return store, rank, workers


@contextmanager
def _set(variable: ContextVar[V], value: V) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def divided() -> AbstractContextManager[None]:
    """Return a context in which rows are divided over the connected workers."""
    return _set(_place, _job.get())


def alone() -> AbstractContextManager[None]:
    """Return a context in which rows are not divided: this worker computes with all rows."""
    return _set(_place, _ALONE)


def count() -> int:
    """Return the number of connected workers, including this worker."""
    return _job.get().count


def is_first() -> bool:
    """Return whether this worker reads and writes the run: True for rank 0, and outside `joined`."""
    return _job.get().rank == 0


def own_device(device: torch.device) -> torch.device:
    """Return the GPU of this worker in a job of `torchrun` if `device` is a GPU, else `device`."""
    if device.type != "cuda" or not launch.started():
        return device
    return torch.device("cuda", launch.local_rank() % torch.cuda.device_count())


def own(total: int) -> slice:
    """Return the rows of this worker among `total` rows, divided evenly and in order; outside `divided`, all rows."""
    place = _place.get()
    return _rows_of(place.rank, place.count, total)


def _rows_of(rank: int, workers: int, total: int) -> slice:
    size, more = divmod(total, workers)
    start = rank * size + min(rank, more)
    return slice(start, start + size + (rank < more))


def together(total: int, encode: Callable[[], dict[Name, Tensor]]) -> dict[Name, Tensor]:
    """Encode the rows of this worker, and gather the outputs of all workers, differentiably.

    Args:
        total: number b of rows of the batch.
        encode: function that returns a dictionary of the outputs (r, d) for the r rows of this worker. The names
            are the same on all workers.

    Returns:
        Dictionary of the outputs (b, d) for all rows, with the names of `encode`.
    """
    if not _is_divided():
        return encode()
    with _set(_encoding, total):
        parts = encode()
    gather: Callable[..., tuple[Tensor, ...]] = _Gathered.apply
    return dict(zip(parts, gather(own(total), total, *parts.values()), strict=True))


def drawn_rows(rows: int) -> tuple[int, slice]:
    """Return the number of rows for which to draw random numbers, and the slice of the draws for this worker.

    Inside `together`, every worker draws for the whole batch and uses only the draws of its rows. The draws of a
    row therefore do not depend on the division.

    Args:
        rows: number of rows of this worker.
    """
    total = _encoding.get()
    return (rows, slice(None)) if total is None else (total, own(total))


def gathered(part: Tensor, total: int) -> Tensor:
    """Gather the rows (total, d) of all workers, without gradient, from the rows `part` (r, d) of each worker.

    If rows are not divided, `part` is returned unchanged.
    """
    return _all_rows(part, total) if _is_divided() else part


def portion(value: Tensor) -> Tensor:
    """Return `value` divided by the number of workers, so that the sum over workers equals `value`.

    The value must be equal on all workers. If rows are not divided, the value is returned unchanged.
    """
    return value / _place.get().count if _is_divided() else value


def summed(values: Sequence[Tensor]) -> list[Tensor]:
    """Sum scalars or other tensors over all workers in one message, without gradient."""
    if not _is_divided() or not values:
        return list(values)
    sums = _reduced(torch.cat([value.detach().flatten().double() for value in values]))
    parts = sums.split([value.numel() for value in values])
    return [part.view(value.shape).to(value.dtype) for part, value in zip(parts, values, strict=True)]


def largest(values: Tensor) -> Tensor:
    """Return the maximum over all workers, entry by entry."""
    if not _is_divided():
        return values
    return _reduced(values.clone(memory_format=torch.contiguous_format), distributed.ReduceOp.MAX)


def gradient_channel() -> Any:
    """Return the process group for the sums of gradients, or None if rows are not divided."""
    return _place.get().gradients if _is_divided() else None


def by_first(compute: Callable[[], Mapping[str, T]]) -> dict[str, T]:
    """Compute a result (valid JSON) on rank 0 only, and return the result on all workers."""
    if count() == 1:
        return dict(compute())
    data = b""
    if is_first():
        with alone():
            data = json.dumps(dict(compute())).encode()
    result: dict[str, T] = json.loads(_from_first(data))
    return result


def tensors_of_first(state: tuple[Mapping[str, Tensor], T] | None) -> tuple[Mapping[str, Tensor], T] | None:
    """Return the `state` of rank 0 on all workers.

    Args:
        state: tensors of any shapes by name, and a value that is valid JSON, as a pair; None if there is no state.
    """
    if count() == 1:
        return state
    data = b""
    if is_first() and state is not None:
        tensors = {key: value.detach().cpu().contiguous().clone() for key, value in state[0].items()}
        facts = bytearray(json.dumps(state[1]).encode())
        data = save({**tensors, _FACTS: torch.frombuffer(facts, dtype=torch.uint8)})
    received = _from_first(data)
    if not received or is_first():
        return state
    tensors = load(received)
    return tensors, json.loads(bytes(tensors.pop(_FACTS).tolist()))


def _is_divided() -> bool:
    return _place.get().count > 1


class _Gathered(torch.autograd.Function):
    """Gathering of rows of several matrices from all workers, with one message per forward or backward pass."""

    @staticmethod
    def forward(ctx: Any, rows: slice, total: int, *parts: Tensor) -> tuple[Tensor, ...]:
        ctx.rows, ctx.widths = rows, [part.shape[1] for part in parts]
        return tuple(torch.split(_all_rows(torch.cat(parts, 1), total), ctx.widths, 1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        return None, None, *_reduced(torch.cat(gradients, 1))[ctx.rows].split(ctx.widths, 1)


def _reduced(values: Tensor, how: Any = distributed.ReduceOp.SUM) -> Tensor:
    """Reduce values over all workers, through the CPU if workers share a GPU. `values` may be overwritten."""
    wire = message_of(values)
    with answered():
        distributed.all_reduce(wire, how)
    return wire.to(values.device)


def _all_rows(part: Tensor, total: int) -> Tensor:
    """Gather the rows (total, ...) of all workers from the rows `part` (r, ...) of each worker."""
    workers = count()
    most = -(-total // workers)
    wire = message_of(torch.cat([part, part.new_zeros(most - len(part), *part.shape[1:])]))
    pieces = [torch.empty_like(wire) for _ in range(workers)]
    with answered():
        distributed.all_gather(pieces, wire)
    counts = [len(range(total)[_rows_of(rank, workers, total)]) for rank in range(workers)]
    return torch.cat([piece[:size] for piece, size in zip(pieces, counts, strict=True)]).to(part.device)


def message_of(values: Tensor) -> Tensor:
    """Return contiguous values as a message, on the CPU if workers share a GPU. A message may be overwritten."""
    apart = values.is_cuda and "nccl" not in distributed.get_backend_config()
    return values.cpu() if apart else values


def _from_first(data: bytes) -> bytes:
    with answered():
        size = torch.tensor(len(data))
        distributed.broadcast(size, 0)
        if not size:
            return b""
        wire = torch.frombuffer(bytearray(data) or bytearray(int(size)), dtype=torch.uint8)
        distributed.broadcast(wire, 0)
    return wire.numpy().tobytes()


@contextmanager
def answered() -> Iterator[None]:
    """Inside the context, convert errors of the communication between workers to ProcessLost."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessLost("a process of the training run ended or does not respond") from error
