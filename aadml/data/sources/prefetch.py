"""Prefetch of later batches: worker processes decode their sound and frames while a step is computed.

A worker decodes the same arrays as this process, so training ends in the same bytes for any number of workers. A worker
is started when a file is first missing in memory.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from multiprocessing import current_process
from multiprocessing.connection import Connection
from typing import Any, cast

from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Features, Modality
from aadml.comparison.processes import group
from aadml.comparison.processes.launch import ProcessLost
from aadml.data.sources.loading import CachedItems, Decoder
from aadml.feature_extraction.ground.worker_process import RAISED, READY, Conditions, ending, start

_DEATH_SECONDS = 5.0  # from the end of a connection to the end of its process
_BATCH_SECONDS = 1800.0  # limit for a batch: long videos on a busy machine
_CONDITIONS = Conditions(setup=partial(warnings.simplefilter, "ignore"))

Task = Mapping[Modality, Sequence[int]]
"""Modality -> the numbers of the files to decode."""
Decoded = Mapping[Modality, tuple[Mapping[int, NDArray[Any] | None], Mapping[str, str]]]
"""Modality -> (number -> array or None, path -> reason why it could not be decoded)."""


class Prefetch(AbstractContextManager["Prefetch"]):
    """Workers that decode later batches; a context manager that ends them.

    Args:
        features: features of the training clips, by modality.
    """

    def __init__(self, features: Mapping[Modality, Features]) -> None:
        self._sources = {m: f for m, f in features.items() if isinstance(f, CachedItems) and f.loading.workers}
        decoders = {m: source.elsewhere() for m, source in self._sources.items()}
        self._decoders = {m: decoder for m, decoder in decoders.items() if decoder is not None}
        workers = max((self._sources[m].loading.workers for m in self._decoders), default=0)
        self._count = 0 if current_process().daemon else workers  # a process of a sweep may have no children
        self._workers: dict[int, _PrefetchWorker] = {}

    def __exit__(self, *_: object) -> None:
        for worker in self._workers.values():
            worker.end()
        self._workers = {}

    def over(self, batches: Iterable[Tensor], features: Mapping[Modality, Features]) -> Iterator[Tensor]:
        """Yield the rows (b,) of each batch, after its missing files are decoded.

        Args:
            batches: rows (b,) of each batch of an epoch.
            features: features of the clips of the epoch, selected from those of the training clips.
        """
        if not self._count:
            yield from batches
            return
        self._sources = {m: f for m, f in features.items() if m in self._decoders and isinstance(f, CachedItems)}
        waiting: deque[tuple[Tensor, _PrefetchWorker | None]] = deque()
        for number, rows in enumerate(batches):
            ready = self._received(*waiting.popleft()) if len(waiting) == self._count else None
            waiting.append((rows, self._assigned(number % self._count, rows)))
            if ready is not None:
                yield ready
        while waiting:
            yield self._received(*waiting.popleft())

    def _assigned(self, number: int, rows: Tensor) -> "_PrefetchWorker | None":
        """Return the worker that decodes the missing files of a batch, or None if no file is missing."""
        rows = rows[group.own(len(rows))]
        task = {m: missing for m in self._decoders if (missing := self._sources[m].missing(rows))}
        if not task:
            return None
        if number not in self._workers:
            self._workers[number] = _PrefetchWorker(*start(partial(_decode, self._decoders), _CONDITIONS))
        self._workers[number].send(task)
        return self._workers[number]

    def _received(self, rows: Tensor, worker: "_PrefetchWorker | None") -> Tensor:
        for modality, (arrays, failures) in (worker.receive() if worker else {}).items():
            source = self._sources[modality]
            source.ahead.update(arrays)
            for path, reason in failures.items():
                if path not in source.failures:
                    source.failures[path] = reason
                    warnings.warn(f"{path}: the file was left out ({reason})", stacklevel=2)
        return rows


@dataclass(frozen=True)
class _PrefetchWorker:
    """A process with at most one task, so that neither side of the connection blocks the other."""

    process: Any
    connection: Connection

    def send(self, task: Task) -> None:
        try:
            self.connection.send(task)
        except OSError as error:
            raise self._lost() from error

    def receive(self) -> Decoded:
        kind, value = READY, cast(Any, None)
        try:
            while kind == READY:  # the first message of a process
                if not self.connection.poll(_BATCH_SECONDS):
                    raise ProcessLost(
                        f"a process that decodes for training returned no batch within {_BATCH_SECONDS:g} s"
                    )
                kind, value = self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        if kind == RAISED:
            raise value
        decoded: Decoded = value
        return decoded

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()

    def _lost(self) -> ProcessLost:
        self.process.join(_DEATH_SECONDS)
        return ProcessLost(f"a process that decodes for training ended ({ending(self.process.exitcode)})")


def _decode(decoders: Mapping[Modality, Decoder], task: Task, report: Callable[[Any], None]) -> Decoded:
    """Return the decoded files of a task, in a worker."""
    arrays = {m: dict(zip(numbers, decoders[m].decoded(numbers), strict=True)) for m, numbers in task.items()}
    return {modality: (values, dict(decoders[modality].failures)) for modality, values in arrays.items()}
