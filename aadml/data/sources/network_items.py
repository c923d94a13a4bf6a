"""Sounds, frames and captions as a pretrained network is given them: a source of windows, of pictures or of tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.loading import Loading
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.texts import Captions

Item = dict[str, NDArray[Any]]
"""Arguments of a network for one window, frame or text."""


class Stored(Protocol):
    """Sounds, frames or texts by number."""

    @property
    def failures(self) -> dict[str, str]:
        """Path -> why it could not be decoded."""

    def decoded(self, numbers: Sequence[int], /) -> Sequence[NDArray[Any] | None]:
        """Give samples (s,), frames (t, h, w, 3) or UTF-8 bytes (m,); None for what cannot be had."""

    def sums(self, numbers: Sequence[int], /) -> list[bytes]:
        """Give the SHA-256 of their content; empty where it cannot be read."""


@dataclass(frozen=True)
class ItemBatch:
    """A batch of b clips, each of them one or more items of a network.

    Attributes:
        clips: the items of each clip; none of one that could not be had.
        present: (b,) bool, which could be had.
    """

    clips: tuple[tuple[Item, ...], ...]
    present: Tensor

    def __len__(self) -> int:
        return len(self.clips)

    def to(self, device: torch.device) -> "ItemBatch":
        """Take what is a tensor to a device; the items follow where the network runs."""
        return replace(self, present=self.present.to(device))

    def select(self, index: Tensor) -> "ItemBatch":
        """Return the clips `index`, in that order."""
        return ItemBatch(tuple(self.clips[i] for i in index.tolist()), self.present[index])


@dataclass(frozen=True)
class NetworkItems:
    """What prepares the inputs of a network, over what is stored: each by itself, so that a batch changes nothing.

    Attributes:
        stored: sounds at the network's rate, frames of its size, or captions.
        make: what is decoded of one of them -> its items.
        items: (n,) int64, which of them each row is.
        loading: what of the items is kept in memory, and who decodes.
        cached: number -> its items; shared by everything selected from one source.
        ahead: what was decoded ahead for the next batch; shared alike.
    """

    stored: Stored
    make: Callable[[NDArray[Any]], Sequence[Item]]
    items: Tensor
    loading: Loading = field(default_factory=Loading)
    cached: dict[int, tuple[Item, ...]] = field(default_factory=dict)
    ahead: dict[int, NDArray[Any] | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def failures(self) -> dict[str, str]:
        """Path -> why it could not be decoded."""
        return self.stored.failures

    def select(self, index: Tensor) -> "NetworkItems":
        """Return the source of the rows `index` (m,) alone."""
        return replace(self, items=self.items[index])

    def elsewhere(self) -> MediaFiles | None:
        """Return what decodes the same media in another process; None where nothing is worth it."""
        none = torch.zeros(0, dtype=torch.int64)
        return replace(self.stored, items=none) if isinstance(self.stored, MediaFiles) else None

    def missing(self, index: Tensor) -> list[int]:
        """Number what of the rows `index` (b,) is not in memory."""
        return [number for number in self.items[index].unique().tolist() if number not in self.cached]

    def batch(self, index: Tensor) -> ItemBatch:
        """Give the items of the rows `index` (b,)."""
        missing = self.missing(index)
        wanted = [number for number in missing if number not in self.ahead]
        self.ahead.update(zip(wanted, self.stored.decoded(wanted), strict=True))
        made = {n: tuple(self.make(values)) for n in missing if (values := self.ahead[n]) is not None}
        self.ahead.clear()
        for number, items in made.items():
            self._keep(number, items)
        clips = tuple(made.get(n) or self.cached.get(n, ()) for n in self.items[index].tolist())
        return ItemBatch(clips, torch.tensor([bool(items) for items in clips], dtype=torch.bool))

    def sums(self, index: Tensor) -> list[bytes]:
        """Give the SHA-256 of the content of the rows `index` (b,); empty where it cannot be read."""
        return self.stored.sums(self.items[index].tolist())

    def _keep(self, number: int, made: tuple[Item, ...]) -> None:
        # items of one set are of like size, so their number times this one's tells what they hold
        held = (len(self.cached) + 1) * sum(values.nbytes for item in made for values in item.values())
        if held <= self.loading.memory:
            self.cached[number] = made


def text_items(
    captions: Captions, make: Callable[[NDArray[Any]], Sequence[Item]], loading: Loading | None = None
) -> NetworkItems:
    """Lay a tokenizer over captions; equal ones are one text."""
    known = {text: number for number, text in enumerate(dict.fromkeys(captions.texts))}
    rows = torch.tensor([known[text] for text in captions.texts], dtype=torch.int64)
    return NetworkItems(Captions(tuple(known)), make, rows, loading or Loading())
