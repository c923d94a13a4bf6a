"""Mixtures of a clip with other clips, as the proxy of the clip."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from aadml.comparison.options import Share

EVEN = 0.5
"""Weight of the other clips in a convex combination."""


@dataclass(frozen=True, kw_only=True)
class MixtureOptions:
    """Options of every proxy that mixes a clip with other clips.

    Attributes:
        residual: "none" (only the mixture A of the other clips), "add" x + A, or "convex" (x + A) / 2.
        aa_on: sides of a comparison that `Objective` replaces by proxies: "all" (Equation 8), "anchor" or "reference".
        aa_mix: share of the loss that `Objective` computes on proxies; the rest is computed on the embeddings.
    """

    residual: Literal["none", "add", "convex"] = "add"
    aa_on: Literal["all", "anchor", "reference"] = "all"
    aa_mix: Share = 0.5

    def joined(self, vectors: Tensor, others: Tensor) -> Tensor:
        """Return the mixtures of the vectors (b, d) with the mixtures of other clips (b, d), as `residual` defines."""
        if self.residual == "add":
            return vectors + others
        return others if self.residual == "none" else torch.lerp(vectors, others, EVEN)


MIXTURE = MixtureOptions()
