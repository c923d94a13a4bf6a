"""Features by modality: vectors in memory, vectors in a file, or features computed batch by batch."""

from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from aadml.comparison.arrays import nonfinite_row
from aadml.comparison.relevance import Items
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


def check_mapping(subject: str, values: object) -> None:
    """Raise InputError, with `subject` before the verb, if values are not a mapping."""
    if not isinstance(values, Mapping):
        raise InputError(f"{subject} have type {type(values).__name__}; pass {{modality: tensor}}")


def check_tensor(subject: str, values: object, kind: torch.dtype, shape: tuple[int | str, ...], content: str) -> None:
    """Check the type and the shape of a tensor.

    Args:
        subject: start of the message, with its verb.
        values: the tensor.
        kind: type of the numbers.
        shape: size of each axis; a name for any size.
        content: content of a row, for the message.

    Raises:
        InputError: the values are not a tensor of this type and shape.
    """
    properties = f"type {type(values).__name__}"
    if isinstance(values, Tensor):
        if values.dtype == kind and len(shape) == values.ndim and all(map(_fits, values.shape, shape)):
            return
        properties = f"type {values.dtype} and shape {tuple(values.shape)}"
    sizes = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
    expected = f"a tensor ({sizes}) of {str(kind).removeprefix('torch.')}, {content}"
    raise InputError(f"{subject} {properties}; pass {expected}")


def _fits(size: int, expected: int | str) -> bool:
    return isinstance(expected, str) or size == expected


def check_items(kind: str, items: Items, classes: int | str, present: Mapping[str, Tensor]) -> None:
    """Check the labels and presence flags of clips or embeddings.

    Args:
        kind: "clips" or "embeddings", for messages.
        items: clips or embeddings.
        classes: number of columns of `all_labels`; a name for any number.
        present: modality -> flags.

    Raises:
        InputError: `labels` is not (n,) int64, `all_labels` is not (n, classes) bool, or flags are not (n,) bool.
    """
    count = len(items.ids)
    check_tensor(f"{kind}: labels have", items.labels, torch.int64, (count,), "one label per id")
    if items.all_labels is not None:
        content = "one row per id and one column per class name"
        check_tensor(f"{kind}: all_labels has", items.all_labels, torch.bool, (count, classes), content)
    check_mapping(f"{kind}: present", present)
    for modality, flags in present.items():
        check_tensor(f"{modality}: present has", flags, torch.bool, (count,), "one flag per id")


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
