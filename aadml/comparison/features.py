"""Features by modality: vectors in memory, vectors in a file, or what is made batch by batch."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from aadml.comparison.arrays import all_finite
from aadml.comparison.stored_rows import StoredRows
from aadml.feature_extraction.feature_file import check_modality
from aadml.feature_extraction.ground.errors import InputError

Modality = str
"""audio, visual, text, or any other name of a modality (see `aadml.feature_extraction.feature_file.names`)."""

Direction = tuple[Modality, Modality]
"""(anchors or queries, candidates or gallery)."""


@runtime_checkable
class Source(Protocol):
    """Features of one modality that are made batch by batch (waveforms, token ids) instead of lying in memory."""

    def __len__(self) -> int:
        """Count the items n."""

    def select(self, index: Tensor) -> "Source":
        """Return the source of the items `index` (m,) alone, in that order."""

    def batch(self, index: Tensor) -> object:
        """Return the padded features of the items `index` (b,), as the encoder of this modality takes them."""


@runtime_checkable
class StoredSource(Source, Protocol):
    """A source as it lies on disk, before a method lays its inputs over it: it can be told from another."""

    def content(self) -> Iterator[bytes]:
        """Give what identifies the items: their bytes, or sums of their files."""


Features = Tensor | Source
Matrix = Tensor | StoredRows
"""Features that are vectors, all of one width."""


def check_present(modality: str, there: Tensor, count: int) -> None:
    """Refuse what does not say of n clips whether they have a modality: (n,) bool is wanted."""
    if there.shape != (count,) or there.dtype != torch.bool:
        raise InputError(f"{modality}: present is {there.dtype} {tuple(there.shape)}; bool ({count},) is wanted")


def check_features(modality: str, features: Features, count: int) -> None:
    """Refuse features that no method could take: another count than n, no floats (n, d), NaN, or no possible name."""
    check_modality(modality, "clips")
    if hasattr(nn.ModuleDict, modality):  # networks are kept under the names of their modalities
        raise InputError(
            f"clips: '{modality}' is a word of torch and cannot be the name of a modality here; take another"
        )
    if not isinstance(features, Tensor | Source):
        raise InputError(f"clips: the {modality} features are not a tensor but {type(features).__name__}; see Clips.of")
    if len(features) != count:
        raise InputError(f"clips: {count} ids but {len(features)} {modality} features")
    if isinstance(features, Tensor):
        if features.ndim != 2 or not features.is_floating_point():
            raise InputError(
                f"clips: {modality} features must be floats (n, d), not {features.dtype} {tuple(features.shape)}"
            )
        if not all_finite(features):
            row = int((~torch.isfinite(features)).any(1).nonzero()[0])
            raise InputError(f"clips: the {modality} features hold NaN or infinity, first at row {row}")
