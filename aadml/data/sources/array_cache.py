"""Cache of decoded media on disk, with a size limit.

The content of the media files determines the keys. Arrays of other versions of the decoders are not returned.
"""

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
    """Cache of arrays as files in the folder `decoded` of the cache folder, which AADML_CACHE sets.

    A damaged file counts as missing.

    Attributes:
        budget: size limit of the folder, in bytes.
    """

    budget: int

    def get(self, key: str) -> NDArray[Any] | None:
        """Return the array of a key, or None if the cache has no readable file for the key."""
        try:
            return load_file(_path(key))["values"]
        except (OSError, SafetensorError, KeyError, ValueError):
            return None

    def add(self, key: str, values: NDArray[Any]) -> None:
        """Write an array if the folder then stays within the budget. Log a warning if writing fails."""
        content = save({"values": np.ascontiguousarray(values)})
        if self._used[0] + len(content) > self.budget:
            return
        self._used[0] += len(content)
        try:
            write_bytes(_path(key), content, durable=False)
        except (OSError, InputError) as error:
            _log.warning("decoded media are not cached (%s); set AADML_CACHE to a folder that can be written", error)

    @cached_property
    def _used(self) -> list[int]:
        """Bytes in the folder, as a list of one number, without files that other processes add later."""
        return [sum(path.stat().st_size for path in _path("").parent.glob("[!.]*.safetensors"))]  # no temporary files


def _path(key: str) -> Path:
    from aadml.feature_extraction.media.decoding import decoder_versions  # slow to import

    name = hashlib.sha256(f"{decoder_versions()} {key}".encode()).hexdigest()[:40]
    return weights_folder().parent / "decoded" / f"{name}.safetensors"
