"""What was decoded of media, kept on disk by their content as far as a budget goes."""

import hashlib
import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from aadml.feature_extraction.ground.atomic import write_bytes
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.table import weights_folder

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ArrayCache:
    """Files of arrays in `$AADML_CACHE/decoded`; what is damaged there, or cannot be written, is decoded again.

    Attributes:
        budget: bytes that all of them together may take.
    """

    budget: int

    def get(self, key: str) -> NDArray[Any] | None:
        """Read an array; None where it is not kept."""
        try:
            return load_file(self._place(key))["values"]
        except (OSError, SafetensorError, KeyError, ValueError):
            return None

    def add(self, key: str, values: NDArray[Any]) -> None:
        """Keep an array, where it fits."""
        content = save({"values": np.ascontiguousarray(values)})
        if self._held[0] + len(content) > self.budget:
            return
        self._held[0] += len(content)
        try:
            write_bytes(self._place(key), content, durable=False)
        except (OSError, InputError) as error:
            _log.warning("what was decoded is not kept (%s)", error)

    @cached_property
    def _held(self) -> list[int]:
        """Count the bytes that are there; what other processes add meanwhile is not seen."""
        return [sum(path.stat().st_size for path in _folder().glob("*.safetensors"))]

    def _place(self, key: str) -> Path:
        return _folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:40]}.safetensors"


def _folder() -> Path:
    return weights_folder().parent / "decoded"
