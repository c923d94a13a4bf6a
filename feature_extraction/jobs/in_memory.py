"""Extraction of a few items in memory, without a ledger and a feature file."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.backbones import Extractor
from aadml.feature_extraction.engines.decoding_workers import DecodedPart, DecodingSettings, Task, decode_all
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.jobs.batching import Describer, wanted_of
from aadml.feature_extraction.jobs.plan import TIME_LIMIT
from aadml.feature_extraction.media.inputs import Limits


def extract_in_memory(extractor: Extractor, items: Sequence[str], workers: int = 2) -> NDArray[np.float32]:
    """Compute the features (n, d) of n media files, or of n texts, with one extractor.

    Args:
        extractor: extractor without a fit.
        items: at least one path; texts if the modality is text.
        workers: maximum number of decoding processes.

    Raises:
        InputError: an item cannot be decoded, or its features are not finite.
    """
    modality, values = extractor.modality, dict[int, NDArray[Any]]()

    def record(number: int, part: DecodedPart, description: NDArray[Any] | None) -> None:
        if description is None:
            other = "text" if modality == "text" else "file"
            raise InputError(
                f"{items[number]} cannot be read as {modality} ({part.reason}, {part.detail}); pass another {other}"
            )
        values[number] = description

    settings = DecodingSettings({modality: wanted_of(extractor)}, TIME_LIMIT, Limits())
    tasks = (Task(number, {modality: item}) for number, item in enumerate(items))
    decoded = decode_all(tasks, settings, clips=len(items), workers=workers)
    with Describer({modality: extractor}, record) as describer, closing(decoded):
        for task, (part,) in decoded:
            describer.add(task.number, part)
    return np.stack([values[number] for number in range(len(items))]).astype(np.float32)
