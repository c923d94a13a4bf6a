"""Sound and frames of the batches to come, decoded by processes of their own while a step is computed.

What a process decodes is what this one would, so a training ends in the same bytes whatever their number. They are
started when something is first missing in memory.
"""

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import current_process
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray
from torch import Tensor

from aadml.comparison.features import Features, Modality
from aadml.comparison.processes import group
from aadml.comparison.processes.launch import ProcessLost
from aadml.data.sources.loading import Loading
from aadml.feature_extraction.ground.worker_process import RAISED, READY, Conditions, ending, start

_DEATH_SECONDS = 5.0  # a process that hung up may take a moment to end
_ANSWER_SECONDS = 1800.0  # a batch of long videos on a busy machine
_CONDITIONS = Conditions(setup=partial(warnings.simplefilter, "ignore"))

Task = Mapping[Modality, Sequence[int]]
"""Modality -> the numbers of what is to be decoded."""
Decoded = Mapping[Modality, tuple[Mapping[int, NDArray[Any] | None], Mapping[str, str]]]
"""Modality -> number -> what was decoded, and path -> why it could not be."""


class PrefetchDecoder(Protocol):
    """What decodes in a process of its own."""

    @property
    def failures(self) -> dict[str, str]:
        """Path -> why it could not be decoded."""

    def decoded(self, numbers: Sequence[int], /) -> Sequence[NDArray[Any] | None]:
        """Decode what has these numbers."""


@runtime_checkable
class Decodable(Protocol):
    """A source whose batches may be decoded elsewhere."""

    loading: Loading
    ahead: dict[int, NDArray[Any] | None]

    @property
    def failures(self) -> dict[str, str]:
        """Path -> why it could not be decoded."""

    def missing(self, index: Tensor) -> list[int]:
        """Number what of the rows `index` (b,) is not in memory."""

    def elsewhere(self) -> PrefetchDecoder | None:
        """Return what decodes the same in another process; None where nothing is worth it."""


class Prefetch:
    """Processes that decode for the batches to come; use it as a context, at whose end none is left.

    Args:
        features: of the training clips, by modality.
    """

    def __init__(self, features: Mapping[Modality, Features]) -> None:
        self._sources = {m: f for m, f in features.items() if isinstance(f, Decodable) and f.loading.workers}
        decoders = {m: source.elsewhere() for m, source in self._sources.items()}
        self._decoders = {m: decoder for m, decoder in decoders.items() if decoder is not None}
        workers = max((self._sources[m].loading.workers for m in self._decoders), default=0)
        self._count = 0 if current_process().daemon else workers  # a process of a sweep may have no children
        self._workers: dict[int, _PrefetchWorker] = {}

    def __enter__(self) -> "Prefetch":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers.values():
            worker.end()
        self._workers = {}

    def over(self, batches: Iterable[Tensor], features: Mapping[Modality, Features]) -> Iterator[Tensor]:
        """Give the rows (b,) of each batch, once what is missing of it lies in its sources.

        Args:
            batches: of an epoch.
            features: of the clips that the epoch takes, selected from those of the training clips.
        """
        if not self._count:
            yield from batches
            return
        self._sources = {m: f for m, f in features.items() if m in self._decoders and isinstance(f, Decodable)}
        waiting: deque[tuple[Tensor, _PrefetchWorker | None]] = deque()
        for number, rows in enumerate(batches):
            done = self._received(*waiting.popleft()) if len(waiting) == self._count else None
            waiting.append((rows, self._asked(number % self._count, rows)))
            if done is not None:
                yield done
        while waiting:
            yield self._received(*waiting.popleft())

    def _asked(self, number: int, rows: Tensor) -> "_PrefetchWorker | None":
        """Ask a process for what of a batch is missing; None where nothing is."""
        own = rows[group.own(len(rows))]
        task = {m: missing for m in self._decoders if (missing := self._sources[m].missing(own))}
        if not task:
            return None
        if number not in self._workers:
            self._workers[number] = _PrefetchWorker(*start(partial(_decode, self._decoders), _CONDITIONS))
        self._workers[number].ask(task)
        return self._workers[number]

    def _received(self, rows: Tensor, worker: "_PrefetchWorker | None") -> Tensor:
        for modality, (arrays, failures) in (worker.answer() if worker else {}).items():
            source = self._sources[modality]
            source.ahead.update(arrays)
            for path, reason in failures.items():
                if path not in source.failures:
                    source.failures[path] = reason
                    warnings.warn(f"{path}: left out, {reason}", stacklevel=2)
        return rows


@dataclass(frozen=True)
class _PrefetchWorker:
    """A process that has at most one task, so that neither of two waits for the other to listen."""

    process: Any
    connection: Connection

    def ask(self, task: Task) -> None:
        try:
            self.connection.send(task)
        except OSError as error:
            raise self._lost() from error

    def answer(self) -> Decoded:
        try:
            kind, value = self._heard()
            if kind == READY:  # the first thing it says
                kind, value = self._heard()
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

    def _heard(self) -> tuple[int, Any]:
        if not self.connection.poll(_ANSWER_SECONDS):
            raise ProcessLost(f"a process that decodes for the training gave no batch in {_ANSWER_SECONDS:g} s")
        heard: tuple[int, Any] = self.connection.recv()
        return heard

    def _lost(self) -> ProcessLost:
        self.process.join(_DEATH_SECONDS)
        return ProcessLost(f"a process that decodes for the training ended ({ending(self.process.exitcode)})")


def _decode(decoders: Mapping[Modality, PrefetchDecoder], task: Task, report: Callable[[Any], None]) -> Decoded:
    """Do a task; runs in a process of its own."""
    found = {m: dict(zip(numbers, decoders[m].decoded(numbers), strict=True)) for m, numbers in task.items()}
    return {modality: (arrays, dict(decoders[modality].failures)) for modality, arrays in found.items()}
