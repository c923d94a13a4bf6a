"""Base class of sources that compute items from decoded files or texts, cached in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from aadml.data.sources.loading import ItemSource, Loading
from aadml.data.sources.media_files import MediaFiles
from aadml.data.sources.texts import Captions
from aadml.data.sources.waveforms import PackedWaveforms


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
