"""Extraction of features in batches, in a second thread beside the thread that receives decoded clips."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import EXTRACTORS, Description, Extractor
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, Wanted
from aadml.feature_extraction.ground.errors import InputError, cause

_Batch = list[tuple[int, DecodedPart]]


def wanted_of(extractor: Extractor, *, keeps_time: bool = False) -> Wanted:
    """Return the work of the decoding processes for an extractor.

    Args:
        extractor: extractor of one modality.
        keeps_time: whether features over time are recorded. If not, the decoding processes also pool the features of an
            extractor without a network.
    """
    pools = extractor.describe is None and not keeps_time
    return Wanted(extractor.inputs, extractor.prepare, extractor.minimum_seconds, extractor.pool if pools else None)


@contextmanager
def errors_of(extractor: Extractor, where: str) -> Iterator[None]:
    """Raise an exception within the context as InputError. Exceptions of extractors of aadml are not changed.

    Args:
        extractor: extractor that is called within the context.
        where: occasion of the call, for the message ("in a trial run on noise").
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # any error of the user's code
        if any(registry.is_own(extractor.name) for registry in EXTRACTORS.values()):
            raise
        raise InputError(
            f"{extractor.name} fails {where} ({type(error).__name__}: {cause(error)}); correct the extractor"
        ) from error


class Describer:
    """Context manager that extracts features from decoded clips in batches; its exit processes incomplete batches.

    To limit the memory, at most one batch is in the network while one batch per modality is collected. An exception of
    an extractor is raised in a later call, or at the exit.

    Args:
        extractors: extractors by modality.
        record: called with the number of a clip, the decoded modality, and the features, in the thread that uses the
            describer. The features are those over time (t, d) if `keeps_time`, or else the pooled features (d,). They
            are None for a failure, or if the features over time or the pooled features contain NaN or infinity.
        keeps_time: whether features over time are recorded, by extractor.
    """

    def __init__(
        self,
        extractors: Mapping[str, Extractor],
        record: Callable[[int, DecodedPart, NDArray[Any] | None], None],
        keeps_time: Callable[[Extractor], bool] = lambda _: False,
    ) -> None:
        self._extractors = extractors
        self._record = record
        self._keeps_time = keeps_time
        self._batches: dict[str, _Batch] = {}
        self._running: tuple[_Batch, Future[list[Description]]] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="describe")

    def __enter__(self) -> "Describer":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Extract and record the remaining clips; drop them after an exception."""
        try:
            if kind is None:
                for modality in list(self._batches):
                    self._start(modality)
                self._collect()
        finally:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def add(self, number: int, part: DecodedPart) -> None:
        """Add a decoded clip, and start the extraction of a full batch.

        A failure, and a clip for an extractor without `describe`, are recorded at once.
        """
        if part.prepared is None:
            self._record(number, part, None)
            return
        if self._extractors[part.modality].describe is None:
            self._finish(number, part, part.prepared)
            return
        batch = self._batches.setdefault(part.modality, [])
        batch.append((number, part))
        if len(batch) >= self._extractors[part.modality].batch_clips:
            self._start(part.modality)

    def _start(self, modality: str) -> None:
        self._collect()
        batch = self._batches.pop(modality)
        describe = self._extractors[modality].describe
        assert describe is not None
        prepared: Sequence[NDArray[Any]] = [part.prepared for _, part in batch if part.prepared is not None]
        self._running = (batch, self._thread.submit(describe, prepared))

    def _collect(self) -> None:
        if self._running is None:
            return
        (batch, described), self._running = self._running, None
        with errors_of(self._extractors[batch[0][1].modality], "on decoded clips"):
            pairs = [*zip(batch, described.result(), strict=True)]
        for (number, part), description in pairs:
            self._finish(number, part, description)

    def _finish(self, number: int, part: DecodedPart, description: NDArray[Any]) -> None:
        """Pool the features of a clip, except those that the decoding process has pooled, and record the result."""
        extractor = self._extractors[part.modality]
        keeps_time = self._keeps_time(extractor)
        pools = extractor.fit is None if keeps_time else extractor.describe is not None
        with errors_of(extractor, "on decoded clips"):
            pooled = extractor.pool(description) if pools else description
            with np.errstate(over="ignore"):  # numbers beyond float32 become infinity
                is_finite = all(np.isfinite(np.asarray(each, np.float32)).all() for each in (description, pooled))
        if is_finite:
            self._record(number, part, description if keeps_time else pooled)
        else:
            broken = DecodedPart(part.modality, reason="corrupt", detail="the features contain NaN or infinity")
            self._record(number, broken, None)
