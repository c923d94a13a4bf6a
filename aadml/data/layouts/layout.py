"""Interface of a file layout of features: its reader, and the arrays that the reader returns."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.foreign.hdf5 import require_keys
from aadml.feature_extraction.ground.contracts import Condition, require_contract, require_result
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.manifest import ALIASES


@dataclass(frozen=True)
class LayoutArrays:
    """Arrays of a data set as stored in its files, before labels are recoded and arrays are checked.

    Args:
        features: modality -> (n, d) numbers of any type.
        labels: (n,), (n, 1) or one-hot (n, C); integers, whole floats or text; None if the clips have no labels.
        splits: n splits: `train`, `valid` or `test`; None if the clips have no splits.
        ids: n names; by default split and row number.
        class_names: names of the classes; by default the label values. The order is that of the sorted label
            values, or that of the positions if `positional` is True.
        positional: whether each label is either a position in `class_names` or `UNLABELLED`.
        notes: notes on the data, one sentence each.
        present: modality -> (n,) mask of the clips with the modality; the features of other clips are ignored.
        texts: texts of all clips if a clip has several; the features of `text` are then the first text of each
            clip.
        all_labels: (n, C) marks of all classes of each clip, for positional labels; None if no clip has several.
        sources: the files whose SHA-256 is recorded; by default the path that was read.
    """

    features: Mapping[str, NDArray[Any]]
    labels: NDArray[Any] | None
    splits: Sequence[str] | None
    ids: Sequence[str] | None = None
    class_names: Sequence[str] | None = None
    positional: bool = False
    notes: Sequence[str] = ()
    present: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    texts: Texts | None = None
    all_labels: NDArray[np.bool_] | None = None
    sources: Sequence[str | os.PathLike[str]] = ()


def _holds_arrays(arrays: LayoutArrays) -> bool:
    """Return whether features, labels, splits and ids have the annotated types."""
    features: Any = arrays.features
    if not isinstance(features, Mapping):
        return False
    values = [*features.values(), *([] if arrays.labels is None else [arrays.labels])]
    words = (*(arrays.splits if arrays.splits is not None else ()), *(arrays.ids if arrays.ids is not None else ()))
    return all(isinstance(array, np.ndarray) for array in values) and all(isinstance(word, str) for word in words)


class LayoutReader(Protocol):
    """Reader of a layout: a function of a path, and of the name of the array or view of each modality."""

    def __call__(
        self, path: Path, views: Mapping[str, str], /
    ) -> Annotated[
        LayoutArrays,
        Condition("LayoutArrays(features: {name: array}, labels: array, splits: list of str)", _holds_arrays),
    ]:
        """Read the arrays of a data set."""
        ...


Kind = Literal["h5", "npz", "folder", "table"]


@dataclass(frozen=True)
class Layout:
    """File layout of features.

    Args:
        name: name, recorded in the provenance.
        kind: "h5" (an HDF5 file), "npz", "folder" or "table" (a file or a folder).
        keys: patterns of keys, or of names in a folder. The layout with the largest share of its keys in a file is
            selected.
        read: the reader.
        takes_views: whether `read` uses its second argument.

    Raises:
        InputError: `kind` is not one of these words, or `read` has another signature.
    """

    name: str
    kind: Kind
    keys: tuple[str, ...]
    read: LayoutReader
    takes_views: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError(
                f"layout {self.name}: kind is {self.kind!r:.80}; choose from {', '.join(get_args(Kind))} (table stands "
                "for any file or folder)"
            )
        require_contract(self.read, LayoutReader, "reader", f"of the layout {self.name}")

    def arrays(self, path: Path, views: Mapping[str, str]) -> LayoutArrays:
        """Return the arrays of a file or folder.

        Args:
            path: the file or folder.
            views: modality -> name of its array or view.

        Raises:
            InputError: the path cannot be read in this layout, or the reader does not return LayoutArrays.
        """
        return require_result(self.read(path, views), LayoutReader, "reader", self.read)


def same_rows(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Check that all arrays have the same number of rows.

    Raises:
        InputError: two arrays differ in length; the message names the arrays.
    """
    counts = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
    first = next(iter(counts))
    for name, count in counts.items():
        if count != counts[first]:
            raise InputError(
                f"{path}: '{first}' has {counts[first]} rows, but '{name}' has {count} rows; store the same clip in "
                "row i of both arrays"
            )


def left_out(keys: Collection[str], used: Collection[str]) -> list[str]:
    """Return a list with a note on the arrays that are not in use; empty if all arrays are."""
    left = sorted({*keys} - {*used})
    return [f"arrays were left out: {', '.join(left)}"] if left else []


def read_parts(
    path: Path,
    names: Sequence[str],
    keys: Collection[str],
    read: Callable[[Path, Collection[str]], Mapping[str, NDArray[Any]]],
) -> tuple[dict[str, NDArray[Any]], list[str], list[str]]:
    """Read arrays that are stored in parts: `train`, `test`, and optionally `valid`, `val`, `validation` or `dev`.

    Args:
        path: the file.
        names: names of the arrays; the first array decides whether there is a validation part.
        keys: keys of the file.
        read: function from the path and some keys to the arrays with these keys.

    Returns:
        The rows (n, ...) of all parts by name of the array, the split of each row, and a note on unused keys if
        there are any.

    Raises:
        InputError: a missing key, an unreadable array, parts of an array with different widths, or arrays of a part
            with different lengths.
    """
    first = names[0]
    valid = {part: "valid" for part in ("valid", *ALIASES) if f"{first}_{part}" in keys}
    parts = {"train": "train", **valid, "test": "test"}
    key_of = {(name, part): f"{name}_{part}" for part in parts for name in names}
    require_keys(path, list(key_of.values()), keys)
    arrays = read(path, list(key_of.values()))
    joined = {
        name: _stacked(path, {key: arrays[key] for (of, _), key in key_of.items() if of == name}) for name in names
    }
    for part in parts:
        same_rows(path, {key_of[name, part]: arrays[key_of[name, part]] for name in names})
    splits = [split for part, split in parts.items() for _ in arrays[key_of[first, part]]]
    return joined, splits, left_out(keys, key_of.values())


def _stacked(path: Path, parts: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Join the parts of one array, each with its key; a part (n, 1) is joined as (n,)."""
    rows = {name: part[:, 0] if part.ndim == 2 and part.shape[1] == 1 else part for name, part in parts.items()}
    first = next(iter(rows))
    for name, part in rows.items():
        if part.ndim == 0 or part.shape[1:] != rows[first].shape[1:]:
            raise InputError(
                f"{path}: '{first}' has shape {parts[first].shape}, but '{name}' has shape {parts[name].shape}; "
                "pass arrays that differ only in the number of rows"
            )
    return np.concatenate(list(rows.values()))
