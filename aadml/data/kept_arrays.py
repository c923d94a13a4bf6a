"""What was decoded of media, kept on disk by their content as far as a budget goes."""

import hashlib
import io
import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feature_extraction.foreign import npy_array
from feature_extraction.ground.atomic import write_bytes
from feature_extraction.ground.errors import InputError
from feature_extraction.weights import weights_folder

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeptArrays:
    """Files of arrays in `$AADML_CACHE/decoded`; what is damaged there, or cannot be written, is decoded again.

    Attributes:
        budget: bytes that all of them together may take.
    """

    budget: int

    def get(self, key: str) -> NDArray[Any] | None:
        """Read an array; None where it is not kept."""
        try:
            return npy_array(self._place(key))
        except InputError:
            return None

    def add(self, key: str, values: NDArray[Any]) -> None:
        """Keep an array, where it fits."""
        content = io.BytesIO()
        np.save(content, values, allow_pickle=False)
        if self._held[0] + content.tell() > self.budget:
            return
        self._held[0] += content.tell()
        try:
            write_bytes(self._place(key), content.getvalue(), durable=False)
        except (OSError, InputError) as error:
            _log.warning("what was decoded is not kept (%s)", error)

    @cached_property
    def _held(self) -> list[int]:
        """Count the bytes that are there; what other processes add meanwhile is not seen."""
        return [sum(path.stat().st_size for path in _folder().glob("*.npy"))]

    def _place(self, key: str) -> Path:
        return _folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.npy"


def _folder() -> Path:
    return weights_folder().parent / "decoded"
