"""Inputs of a pretrained network as a source: windows of sounds, frames of videos, tokens of captions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.loading import ItemSource, Loading
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.texts import Captions
from aadml.data.sources.waveforms import PackedWaveforms
from aadml.feature_extraction.frontends.inference import Item


@dataclass(frozen=True)
class ItemBatch:
    """A batch of b clips; a clip that is present has one or more items for a network.

    Attributes:
        clips: the items of each clip; empty for a missing clip.
        present: (b,) bool, False for a missing clip.
    """

    clips: tuple[tuple[Item, ...], ...]
    present: Tensor

    def __len__(self) -> int:
        return len(self.clips)

    def to(self, device: torch.device) -> "ItemBatch":
        """Return the batch with `present` on a device; the network moves the items."""
        return replace(self, present=self.present.to(device))

    def select(self, index: Tensor) -> "ItemBatch":
        """Return the clips `index` (m,), in that order."""
        return ItemBatch(tuple(self.clips[i] for i in index.tolist()), self.present[index])


@dataclass(frozen=True)
class CachedItems(ItemSource):
    """Base of sources that compute items from decoded files or texts, and cache the items in memory.

    Attributes:
        stored: source of the sounds, frames or texts from which items are computed.
        items: (n,) int64, the number of the stored file or text of each item.
        loading: caches of decoded media.
        cached: number of a file or text -> values computed from it; shared by all sources selected from one source.
    """

    stored: MediaFiles | PackedWaveforms | Captions
    items: Tensor
    loading: Loading = field(default_factory=Loading)
    cached: dict[int, Any] = field(default_factory=dict)

    @property
    def failures(self) -> dict[str, str]:
        """Reasons why files could not be decoded, by the name of the file (see `MediaFiles.name`)."""
        return self.stored.failures

    def decoded(self, files: Sequence[int], /) -> Sequence[NDArray[Any] | None]:
        """Return the arrays of the files or texts with indices `files`, with None for a file that cannot be decoded."""
        return self.stored.decoded(files)

    def arrays(self, index: Tensor) -> dict[int, NDArray[Any] | None]:
        """Return the arrays of the files of the items `index` (b,), except for files with values in `cached`.

        Returns:
            Dict of arrays (see `decoded`), with the numbers of the files as keys.
        """
        missing = [file for file in self.items[index].unique().tolist() if file not in self.cached]
        return dict(zip(missing, self.decoded(missing), strict=True))

    def keep(self, file: int, values: Any, size: int) -> None:
        """Cache the values of a file if all cached files, counted at `size` bytes each, stay within the limit."""
        if (len(self.cached) + 1) * size <= self.loading.memory:
            self.cached[file] = values


@dataclass(frozen=True)
class NetworkItems(CachedItems):
    """Inputs for a network. The items of a stored file or text depend on this file or text only, not on the batch.

    The stored sounds have the rate of the network, and the stored frames have its size.

    Attributes:
        make: function from decoded content to its items.
    """

    make: Callable[[NDArray[Any]], Sequence[Item]] = field(kw_only=True)

    def batch(self, index: Tensor) -> ItemBatch:
        """Return the items of the rows `index` (b,)."""
        computed = {n: tuple(self.make(values)) for n, values in self.arrays(index).items() if values is not None}
        for number, items in computed.items():
            self.keep(number, items, sum(values.nbytes for item in items for values in item.values()))
        clips = tuple(computed.get(n) or self.cached.get(n, ()) for n in self.items[index].tolist())
        return ItemBatch(clips, torch.tensor([bool(items) for items in clips], dtype=torch.bool))

    def names(self, rows: Tensor) -> list[str]:
        """Return the names of the media files of the rows with a flag in `rows` (n,); [] for texts and sounds."""
        files = dict.fromkeys(self.items[rows].tolist())
        return [self.stored.name(file) for file in files] if isinstance(self.stored, MediaFiles) else []

    def absent(self) -> Tensor:
        """Return flags (n,): True for an item without sound, frames or path. Valid after decoding was tried."""
        stored = self.stored
        flags = [isinstance(stored, MediaFiles) and stored.lacks(file) for file in self.items.tolist()]
        return torch.tensor(flags, dtype=torch.bool)

    def sums(self, index: Tensor) -> list[bytes]:
        """Return the SHA-256 of the content of the rows `index` (b,); empty for unreadable content."""
        return self.stored.sums(self.items[index].tolist())


def text_items(
    captions: Captions, make: Callable[[NDArray[Any]], Sequence[Item]], loading: Loading | None = None
) -> NetworkItems:
    """Return a source of the items that a tokenizer computes from captions. Equal captions share their items."""
    known = {text: number for number, text in enumerate(dict.fromkeys(captions.texts))}
    rows = torch.tensor([known[text] for text in captions.texts], dtype=torch.int64)
    return NetworkItems(Captions(tuple(known)), rows, loading or Loading(), make=make)
