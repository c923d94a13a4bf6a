"""Networks describe groups of clips in a thread of their own, while this one goes on receiving decoded clips."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Description, Extractor
from aadml.feature_extraction.engines.decoding_workers import DecodedPart

_Queue = list[tuple[int, DecodedPart]]


class Describer:
    """Gathers prepared clips, has each group described, and hands the descriptions on.

    At most one group is being described and one is being gathered, for each modality, so memory stays flat. Use it as
    a context: at its end nothing is left waiting.
    """

    def __init__(
        self, extractors: Mapping[str, Extractor], record: Callable[[int, DecodedPart, NDArray[Any] | None], None]
    ) -> None:
        """Prepare.

        Args:
            extractors: by modality; those without `describe` are never asked.
            record: what to do with a clip's number, its part, and its description (None where that is a failure);
                called in the thread that uses the describer.
        """
        self._extractors = extractors
        self._record = record
        self._gathered: dict[str, _Queue] = {}
        self._running: tuple[_Queue, Future[list[Description]]] | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="describe")

    def __enter__(self) -> "Describer":
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Describe and hand on what is left; after an exception, drop it."""
        try:
            if kind is None:
                for modality in list(self._gathered):
                    self._start(modality)
                self._collect()
        finally:
            self._thread.shutdown(wait=True, cancel_futures=True)

    def add(self, number: int, part: DecodedPart) -> None:
        """Take a prepared clip; a full group is given to its network."""
        queue = self._gathered.setdefault(part.modality, [])
        queue.append((number, part))
        if len(queue) >= self._extractors[part.modality].batch_clips:
            self._start(part.modality)

    def _start(self, modality: str) -> None:
        self._collect()
        queue = self._gathered.pop(modality)
        describe = self._extractors[modality].describe
        assert describe is not None
        prepared: Sequence[NDArray[Any]] = [part.prepared for _, part in queue if part.prepared is not None]
        self._running = (queue, self._thread.submit(describe, prepared))

    def _collect(self) -> None:
        if self._running is None:
            return
        (queue, described), self._running = self._running, None
        for (number, part), description in zip(queue, described.result(), strict=True):
            if np.isfinite(description).all():
                self._record(number, part, description)
            else:
                broken = DecodedPart(part.modality, reason="corrupt", detail="its description holds NaN or infinity")
                self._record(number, broken, None)
