"""Mixtures of a clip with other clips, as the proxy of the clip."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from aadml.comparison.options import Share
from aadml.feature_extraction.ground.options import OptionValues

EVEN = 0.5
"""Weight of the other clips in a convex combination."""


@dataclass(frozen=True, kw_only=True)
class MixtureOptions:
    """Options of every proxy that mixes a clip with other clips.

    Attributes:
        residual: proxy of a clip with embedding x and the mixture A of the other clips: A for "none", x + A for
            "add", and (x + A) / 2 for "convex".
        aa_on: sides of a comparison that `Objective` replaces by proxies: "all" (as in Equation 8), "anchor" or
            "reference".
        aa_mix: share of the loss that `Objective` computes on proxies; the rest is computed on the embeddings.
    """

    residual: Literal["none", "add", "convex"] = "add"
    aa_on: Literal["all", "anchor", "reference"] = "all"
    aa_mix: Share = 0.5

    def joined(self, vectors: Tensor, others: Tensor) -> Tensor:
        """Combine the vectors (b, d) with the mixtures `others` (b, d) of other clips, as `residual` defines."""
        if self.residual == "add":
            return vectors + others
        return others if self.residual == "none" else torch.lerp(vectors, others, EVEN)


MIXTURE = MixtureOptions()


def uses_only_mixtures(options: OptionValues) -> bool:
    """Return whether a loss reads only the mixtures of other clips, never an embedding itself.

    Args:
        options: options of a proxy, which include those of `MixtureOptions`.
    """
    alone: bool = options.residual == "none" and options.aa_mix == 1 and options.aa_on == "all"
    return alone


def unused(options: OptionValues) -> str | None:
    """Return a warning if no loss reads the proxies, else None; see `uses_only_mixtures` for the argument."""
    return "proxy.aa_mix is 0, so training does not use the proxies" if options.aa_mix == 0 else None
