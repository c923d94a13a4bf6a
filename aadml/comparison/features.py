"""Features by modality: vectors in memory, vectors in a file, or features computed batch by batch."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from aadml.comparison.arrays import nonfinite_row
from aadml.comparison.stored_rows import StoredRows
from aadml.feature_extraction.feature_file.names import check_modality
from aadml.feature_extraction.ground.errors import InputError

Modality = str
"""audio, visual, text, or any other name of a modality (see `aadml.feature_extraction.feature_file.names`)."""

Direction = tuple[Modality, Modality]
"""(anchors or queries, candidates or gallery)."""


@runtime_checkable
class Source(Protocol):
    """Features of one modality, computed batch by batch, such as waveforms or token ids."""

    def __len__(self) -> int:
        """Return the number of items n."""

    def select(self, index: Tensor) -> "Source":
        """Return the source of the items with the numbers `index` (m,), in that order."""

    def batch(self, index: Tensor) -> object:
        """Return the padded features of the items with the numbers `index` (b,), as input of the modality's encoder."""


@runtime_checkable
class StoredSource(Source, Protocol):
    """Source with identifiable items, before a method transforms the items."""

    def content(self) -> Iterator[bytes]:
        """Yield bytes that identify the items: the bytes of the items, or checksums of their files."""


Features = Tensor | Source
Matrix = Tensor | StoredRows
"""Features that are vectors of equal width."""


def check_present(modality: str, flags: Tensor, count: int) -> None:
    """Raise InputError if the presence flags of n clips are not (n,) bool."""
    if flags.shape != (count,) or flags.dtype != torch.bool:
        raise InputError(
            f"{modality}: present has type {flags.dtype} and shape {tuple(flags.shape)}; pass booleans of shape "
            f"({count},)"
        )


def check_features(modality: str, features: Features, count: int) -> None:
    """Check the name and the features of a modality.

    Raises:
        InputError: the name is invalid, or the features are neither finite floats (count, d) nor a `Source` of `count`
            items.
    """
    check_modality(modality, "clips")
    if hasattr(nn.ModuleDict, modality):  # networks are stored by the names of their modalities
        raise InputError(f"clips: '{modality}' is reserved by torch and cannot be a modality; choose another name")
    if not isinstance(features, Tensor | Source):
        raise InputError(
            f"clips: the {modality} features have type {type(features).__name__}; pass a tensor, or use Clips.of"
        )
    if len(features) != count:
        raise InputError(f"clips: there are {len(features)} {modality} features for {count} ids; pass one row per id")
    if isinstance(features, Tensor):
        if features.ndim != 2 or not features.is_floating_point():
            raise InputError(
                f"clips: the {modality} features have type {features.dtype} and shape {tuple(features.shape)}; pass "
                "floats (n, d)"
            )
        if (row := nonfinite_row(features)) is not None:
            raise InputError(
                f"clips: the {modality} features contain NaN or infinity, first at row {row}; pass finite features"
            )
