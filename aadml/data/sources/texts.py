"""Captions as sources: the words themselves, and the ids of their tokens."""

import hashlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.padding import Padded, pad


@dataclass(frozen=True)
class Captions:
    """Captions as strings, before a method tokenizes them.

    Attributes:
        texts: n cleaned captions.
    """

    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def select(self, index: Tensor) -> "Captions":
        """Return only the captions `index` (m,)."""
        return Captions(tuple(self.texts[i] for i in index.tolist()))

    def content(self) -> Iterator[bytes]:
        """Yield the captions, for the hash of the data."""
        yield from (text.encode() + b"\0" for text in self.texts)

    def batch(self, index: Tensor) -> list[str]:
        """Return the captions `index` (b,)."""
        return [self.texts[i] for i in index.tolist()]

    @property
    def failures(self) -> dict[str, str]:
        """Failures of decoding, always empty."""
        return {}

    def decoded(self, numbers: Sequence[int]) -> list[NDArray[np.uint8]]:
        """Return the UTF-8 bytes (m,) of the captions with indices `numbers`; a space for an empty caption."""
        return [np.frombuffer(self.texts[i].encode() or b" ", dtype=np.uint8) for i in numbers]

    def sums(self, numbers: Sequence[int]) -> list[bytes]:
        """Return the SHA-256 of the captions with indices `numbers`."""
        return [hashlib.sha256(self.texts[i].encode()).digest() for i in numbers]


@dataclass(frozen=True)
class Tokens:
    """Ids of the tokens of n captions.

    Attributes:
        ids: (w_i,) int32 ids of each caption.
    """

    ids: tuple[NDArray[np.int32], ...]

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, index: Tensor) -> "Tokens":
        """Return only the captions `index` (m,)."""
        return Tokens(tuple(self.ids[i] for i in index.tolist()))

    def batch(self, index: Tensor) -> Padded:
        """Return the ids (b, w) int64 of the captions `index` (b,), padded with zeros."""
        return pad([torch.from_numpy(self.ids[i]).long() for i in index.tolist()])


def tokens(captions: Captions, encode: Callable[[Sequence[str]], list[list[int]]], *, longest: int = 512) -> Tokens:
    """Return the token ids of captions.

    Args:
        captions: cleaned captions.
        encode: function from texts to the token ids of each text.
        longest: largest number of tokens; longer captions keep their first tokens and the last token, with a warning.

    Returns:
        The ids of all captions; a caption without tokens has the id of the padding.
    """
    encoded = encode(captions.texts)
    cut = [ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]] for ids in encoded]
    if long := sum(len(ids) > longest for ids in encoded):
        warnings.warn(f"{long} of {len(cut)} captions were cut to {longest} tokens", stacklevel=2)
    return Tokens(tuple(np.asarray(ids or [0], dtype=np.int32) for ids in cut))
