"""Vectors that a network which is not trained made of sounds and texts, kept on disk by their content."""

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
    """A file of vectors, each under the SHA-256 of what it was made of.

    It is a cache: one that is damaged, or cannot be written, costs the time to make its vectors again. Two processes
    that write at once lose what the first of them added.

    Attributes:
        path: of the file.
    """

    path: Path

    def read(self) -> dict[bytes, Tensor]:
        """Give what is kept: SHA-256 -> (d,)."""
        try:
            content = load(self.path.read_bytes())
            return {row.tobytes(): one for row, one in zip(content["keys"].numpy(), content["vectors"], strict=True)}
        except FileNotFoundError:
            return {}
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            _log.warning("%s: cannot be read, its vectors are made again (%s)", self.path, error)
            return {}

    def add(self, found: Mapping[bytes, Tensor]) -> None:
        """Keep further vectors (d,)."""
        known = {**self.read(), **found}
        keys = torch.from_numpy(np.frombuffer(b"".join(known), dtype=np.uint8).reshape(len(known), -1).copy())
        try:
            write_bytes(self.path, save({"keys": keys, "vectors": torch.stack(list(known.values()))}))
        except (OSError, InputError) as error:
            _log.warning("%s: vectors of a network that is not trained are not kept (%s)", self.path, error)


def open_vector_cache(fingerprint: str) -> VectorCache:
    """Name the file, in the cache of this machine, that keeps the vectors of a network.

    Args:
        fingerprint: everything that decides what the network makes of a sound or text.
    """
    folder = weights_folder().parent / "vectors"
    return VectorCache(folder / f"{sha256(fingerprint.encode()).hexdigest()[:32]}.safetensors")
