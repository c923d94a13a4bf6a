"""The random baseline: what a method scores that knows nothing."""

from collections.abc import Mapping
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.comparison.options import Width
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.method import Context, Method
from aadml.methods.training.settings import Training


class RandomMethod(Method):
    """See `random_vectors`."""

    def __init__(self, dimension: int, seed: int) -> None:
        self._dimension, self._seed = dimension, seed

    def fit(self, train: Clips, valid: Clips, session: object = None) -> None:
        """Learn nothing."""

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Draw a vector for each of n items (n, d) -> (n, dimension)."""
        if not isinstance(features, Tensor):
            raise InputError("the random baseline needs features as vectors")
        rows = features.detach().cpu().float().contiguous().numpy()
        prefix = f"{self._seed} {modality} ".encode()
        drawn = np.empty((len(rows), self._dimension), dtype=np.float32)
        for number, row in enumerate(rows):
            key = int.from_bytes(blake2b(prefix + row.tobytes(), digest_size=16).digest(), "little")
            drawn[number] = np.random.Generator(np.random.Philox(key=key)).standard_normal(self._dimension)
        return torch.from_numpy(drawn)

    def state(self) -> dict[str, Tensor]:
        """Return the seed."""
        return {"seed": torch.tensor(self._seed)}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over the seed."""
        self._seed = int(state["seed"])

    def parameters_count(self) -> int:
        """Count nothing."""
        return 0


def random_vectors(context: Context, settings: Training, *, dimension: Width = 10) -> Method:
    """Random vectors, independent of what an item shows: the chance level, as a method like any other.

    An item's vector is drawn from a normal distribution whose seed is a hash of the config's seed, the modality and
    the bytes of the item's features, so that an item always has the same vector, whoever else is embedded. A random
    projection would not do: it keeps a class together, and whole classes in random order score above chance.

    Args:
        context: seed.
        settings: not used; nothing is learned.
        dimension: of the vectors.
    """
    return RandomMethod(dimension, context.seed)
