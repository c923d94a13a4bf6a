"""Cache on disk of the vectors that a frozen network computes from sounds, videos and texts."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from aadml.feature_extraction.ground.atomic import write_bytes
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.weights.table import weights_folder

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class VectorCache:
    """File of vectors, each stored under the SHA-256 of its input.

    If the file is damaged or cannot be written, its vectors are computed again. If two processes write at once, the
    vectors added by the earlier process are lost.

    Attributes:
        path: path of the file.
    """

    path: Path

    def read(self) -> dict[bytes, Tensor]:
        """Return the vectors (d,) by SHA-256; none if the file is missing or damaged."""
        try:
            content = load(self.path.read_bytes())
            rows = zip(content["keys"].numpy(), content["vectors"], strict=True)
            return {key.tobytes(): vector for key, vector in rows}
        except FileNotFoundError:
            return {}
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            _log.warning("%s: cannot be read (%s), so its vectors are computed again", self.path, error)
            return {}

    def add(self, vectors: Mapping[bytes, Tensor]) -> None:
        """Add vectors (d,) by SHA-256 to the file. Log a warning if writing fails."""
        known = {**self.read(), **vectors}
        keys = torch.from_numpy(np.frombuffer(b"".join(known), dtype=np.uint8).reshape(len(known), -1).copy())
        try:
            write_bytes(self.path, save({"keys": keys, "vectors": torch.stack(list(known.values()))}))
        except (OSError, InputError) as error:
            _log.warning("%s: vectors of a frozen network are not cached (%s)", self.path, error)


def open_vector_cache(fingerprint: str) -> VectorCache:
    """Return the cache on this machine for the vectors of a network.

    Args:
        fingerprint: string of all facts that determine the vector of a sound, video or text.
    """
    folder = weights_folder().parent / "vectors"
    return VectorCache(folder / f"{sha256(fingerprint.encode()).hexdigest()[:32]}.safetensors")
