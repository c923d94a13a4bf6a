"""The random baseline: vectors without information."""

from collections.abc import Mapping
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Features, Modality
from aadml.comparison.options import Width
from aadml.methods.method import Context, Method, as_vectors
from aadml.methods.training.settings import Training


class RandomMethod(Method):
    """Method that draws a random vector for every item; equal items of one modality have equal vectors."""

    def __init__(self, dimension: int, seed: int) -> None:
        self._dimension, self._seed = dimension, seed

    def fit(self, train: Clips, valid: Clips, session: object = None) -> None:
        """Do nothing."""

    def embed(self, features: Features, modality: Modality) -> Tensor:
        """Return a random vector for each row of the features (n, d), as a tensor (n, dimension).

        Raises:
            InputError: the features are computed batch by batch.
        """
        rows = as_vectors(features, "the random baseline").detach().cpu().float().contiguous().numpy()
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
        """Load the seed."""
        self._seed = int(state["seed"])

    def parameters_count(self) -> int:
        """Return 0: nothing is fitted."""
        return 0


def random_vectors(context: Context, settings: Training, *, dimension: Width = 10) -> Method:
    """Build the chance-level baseline: a random vector for each item.

    The vector of an item is drawn from a normal distribution. The draw is seeded by a hash of the config's seed, the
    modality and the bytes of the item's features. An item therefore always has the same vector, independently of other
    items. A random projection is not a chance baseline: a projection keeps the clips of a class together, and scores
    above chance.

    Args:
        context: seed of the vectors.
        settings: not used, since nothing is trained.
        dimension: dimension of the vectors.
    """
    return RandomMethod(dimension, context.seed)
