"""Attention of an anchor over a few keys (AADML, Equations 5 and 6), learned or without parameters."""

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from annotated_types import Interval
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.options import Temperature
from aadml.comparison.pairwise import TINY
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import OnlyWith

Kind = Literal["mha", "identity-start", "free"]
Heads = Annotated[int, Interval(ge=1, le=65_536)] | Literal["auto"]
LEARNED = OnlyWith("attention", "mha", "identity-start")
MOST_HEADS = 5  # largest number that "auto" chooses


@dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """Options of the attention over a set of keys.

    Attributes:
        attention: "mha" is multi-head attention with Xavier initialization. "identity-start" is the same attention,
            initialized as the softmax of dot products (W_q = W_k = 2I, W_v = W_o = I). "free" is the softmax of cosine
            / temperature, without parameters.
        heads: number of heads, or "auto" for the largest divisor of d not above 5 (AADML states no number).
        temperature: temperature of free attention (0.1: the value in the experiments of this library).
    """

    attention: Kind = "mha"
    heads: Annotated[Heads, LEARNED] = "auto"
    temperature: Annotated[Temperature, OnlyWith("attention", "free")] = 0.1


class Attention(nn.Module):
    """Attention over a set of keys, either multi-head with an output projection, or a softmax of cosines ("free").

    Masked keys have weight 0; the result of a set without keys is 0.

    Args:
        dimension: d of queries, keys, values and the result.
        options: see `AttentionOptions`.

    Raises:
        InputError: the heads do not divide the dimension.
    """

    def __init__(self, dimension: int, options: AttentionOptions) -> None:
        super().__init__()
        self.kind = options.attention
        divisors = [heads for heads in range(1, dimension + 1) if dimension % heads == 0]
        if options.heads != "auto" and options.heads not in divisors:
            raise InputError(
                f"proxy.heads: {options.heads} heads do not divide {dimension} dimensions; choose from "
                f"{', '.join(map(str, divisors))}, or auto"
            )
        self.heads = max(h for h in divisors if h <= MOST_HEADS) if options.heads == "auto" else int(options.heads)
        self.temperature = options.temperature
        if self.kind != "free":
            self.query, self.key = nn.Linear(dimension, dimension), nn.Linear(dimension, dimension)
            self.value, self.output = nn.Linear(dimension, dimension), nn.Linear(dimension, dimension)
            self._start()

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Compute the attention of queries over the keys of each set.

        Args:
            queries: (s, l, d), l queries in each of s sets.
            keys: (s, k, d).
            values: (s, k, d).
            mask: (s, k) bool, true where there is a key.

        Returns:
            (s, l, d).
        """
        if self.kind == "free":
            cosine = F.normalize(queries, dim=2, eps=TINY) @ F.normalize(keys, dim=2, eps=TINY).mT
            return self._weights(cosine / self.temperature, mask[:, None]) @ values
        query, key = self._split(self.query(queries)), self._split(self.key(keys))
        logits = query @ key.mT * query.shape[3] ** -0.5  # (s, h, l, k)
        mixed = self._weights(logits, mask[:, None, None]) @ self._split(self.value(values))
        attended: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return attended.masked_fill(~mask.any(1)[:, None, None], 0)

    def _split(self, vectors: Tensor) -> Tensor:
        """Split vectors (s, k, d) into heads (s, h, k, d / h)."""
        heads: Tensor = vectors.unflatten(2, (self.heads, -1)).transpose(1, 2)
        return heads

    def _weights(self, logits: Tensor, mask: Tensor) -> Tensor:
        # the finite floor, instead of minus infinity, keeps weights and gradients of a set without keys finite
        wide = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
        masked = wide.masked_fill(~mask, torch.finfo(wide.dtype).min)
        return torch.softmax(masked, -1).masked_fill(~mask, 0).to(logits.dtype)

    @torch.no_grad()
    def _start(self) -> None:
        for layer, gain in ((self.query, 2), (self.key, 2), (self.value, 1), (self.output, 1)):
            nn.init.zeros_(layer.bias)
            if self.kind == "mha":
                nn.init.xavier_uniform_(layer.weight)
            else:
                nn.init.eye_(layer.weight).mul_(gain)
