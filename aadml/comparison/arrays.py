"""Conversion of users' arrays to the tensors of methods, and back."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.ground.errors import InputError

Array = NDArray[Any] | Tensor
ArrayLike = NDArray[Any] | Tensor | Sequence[Any]
"""Numbers: a NumPy array or a tensor of any float or integer type, or nested lists; one row (d,) or many (n, d)."""

Media = str | Path | Sequence[str | Path]
"""One or several paths."""


_PART = 1 << 22  # numbers tested at a time


def nonfinite_row(values: Tensor) -> int | None:
    """Return the number of the first row with NaN or infinity in a matrix (n, d); None if all numbers are finite.

    The matrix is not copied.
    """
    size = max(1, _PART // max(1, values.shape[1]))
    for number, part in enumerate(values.split(size)):
        if not bool(torch.isfinite(part).all()):
            return number * size + int((~torch.isfinite(part)).any(1).nonzero()[0])
    return None


def require_finite_embeddings(vectors: Tensor, modality: str, names: Sequence[object]) -> Tensor:
    """Return the embeddings (n, e) of n items, if all are finite.

    Args:
        vectors: the embeddings.
        modality: modality of the items, for the message.
        names: n names or numbers of the items, for the message.

    Raises:
        InputError: an embedding has NaN or infinity, because the features of the item or the weights are extreme.
    """
    row = nonfinite_row(vectors)
    if row is not None:
        raise InputError(
            f"the {modality} embedding of {names[row]} contains NaN or infinity; correct extreme features of this item "
            "(`aadml inspect`), or use another model"
        )
    return vectors


def to_rows(
    values: ArrayLike | Media, name: str, *, is_matrix: bool = False
) -> tuple[Tensor, Callable[[Tensor], Array]]:
    """Return numbers as a matrix, and a function that converts results back.

    Args:
        values: (d,) or (n, d).
        name: name of the argument, for the message.
        is_matrix: whether only (n, d) is accepted.

    Returns:
        A float32 tensor (n, d) on the CPU, and a function of a result (n, e). The function returns a tensor if
        `values` is a tensor, and otherwise a NumPy array. For `values` (d,), n is 1, and the function returns a
        vector (e,).

    Raises:
        InputError: `values` are not a dense array of real numbers, have another shape or d = 0, or are not finite
            in float32.
    """
    is_tensor = isinstance(values, Tensor)
    numbers = _tensor(values, name)
    single = numbers.ndim == 1
    rows = (numbers[None] if single else numbers).detach().cpu().float()
    if rows.ndim != 2 or not rows.shape[1] or (single and is_matrix):
        shapes = "rows (n, d)" if is_matrix else "one row (d,) or many rows (n, d)"
        raise InputError(f"{name} has shape {tuple(numbers.shape)}; pass {shapes}, with d at least 1")
    if (row := nonfinite_row(rows)) is not None:
        raise InputError(f"{name}: row {row} contains NaN or infinity (in float32); pass finite numbers")

    def back(result: Tensor) -> Array:
        output = result[0] if single else result
        return output if is_tensor else output.numpy()

    return rows, back


def paths_of(values: object) -> tuple[list[str], bool] | None:
    """Return the paths in `values` as strings, and whether `values` is one path, not a sequence of paths.

    Return None if `values` is neither a path nor a nonempty sequence of paths.
    """
    if isinstance(values, str | Path):
        return [str(values)], True
    if isinstance(values, Sequence) and values and all(isinstance(path, str | Path) for path in values):
        return [str(path) for path in values], False
    return None


def to_flags(values: object, name: str) -> Tensor:
    """Return booleans, or zeros and ones, as booleans (n,).

    Raises:
        InputError: `values` are neither booleans nor zeros and ones, or do not have the shape (n,).
    """
    try:
        flags = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name}: values of type {type(values).__name__} cannot be converted to an array of booleans; "
            "pass a boolean array with one axis"
        ) from error
    if flags.ndim != 1 or flags.dtype.kind not in "biuf":
        raise InputError(f"{name} has type {flags.dtype} and shape {flags.shape}; pass a boolean array with one axis")
    other = flags[~np.isin(flags, (0, 1))]
    if len(other):
        raise InputError(f"{name} contains {other[0]}; pass booleans, or zeros and ones")
    return torch.from_numpy(flags.astype(np.bool_))


def to_codes(values: object, name: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the position of each value among the sorted distinct values, and the distinct values as names.

    Args:
        values: n names or n whole numbers; None in a list marks a row without a value.
        name: name of the argument, for the message.

    Returns:
        (n,) int64 positions 0..C-1, and the C distinct values as names. The position is UNLABELLED for None, for -1
        and for an empty name (see `class_codes`).

    Raises:
        InputError: `values` have other types or not exactly one axis, or names are mixed with numbers.
    """
    advice = "pass n names or n whole numbers, with None for a row without a value"
    try:
        array = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    except ValueError as error:
        raise InputError(f"{name} are nested lists of different lengths; {advice}") from error
    known = np.ones(array.shape, dtype=np.bool_)
    kinds = [type(values).__name__ if array.dtype == object else str(array.dtype)]
    if array.ndim == 1 and not (isinstance(values, np.ndarray | Tensor) and array.dtype.kind in "iuU"):
        listed = array.tolist() if isinstance(values, np.ndarray | Tensor) else list(cast(Iterable[object], values))
        known = np.asarray([value is not None for value in listed], dtype=np.bool_)
        kinds = sorted({type(value).__name__ for value in listed if value is not None})
        array = _of_one_kind([value for value in listed if value is not None])
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        raise InputError(f"{name} have type {', '.join(kinds)} and shape {known.shape}; {advice}")
    codes, names = class_codes(array)
    numbers = np.full(len(known), UNLABELLED, dtype=np.int64)
    numbers[known] = codes
    return numbers, names


def class_codes(values: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the class of each label, and the C class names.

    Args:
        values: (n,) whole numbers, booleans or text.

    Returns:
        (n,) positions 0..C-1 among the sorted distinct labels, and these labels as names. The position is
        UNLABELLED for the label -1 and for an empty text.
    """
    words = np.char.strip(values) if values.dtype.kind == "U" else values
    known = ~np.isin(words, ["", str(UNLABELLED)] if values.dtype.kind == "U" else [UNLABELLED])
    distinct, positions = np.unique(values[known], return_inverse=True)
    codes = np.full(len(values), UNLABELLED, dtype=np.int64)
    codes[known] = positions
    return codes, tuple(str(value) for value in distinct.tolist())


LARGEST_EXACT = 2**53
"""Largest whole number up to which floats represent all whole numbers."""


def not_whole(values: NDArray[Any]) -> NDArray[Any]:
    """Return the floats among `values` (n,) that are not finite whole numbers up to LARGEST_EXACT."""
    wrong = ~np.isfinite(values) | (values != np.round(values)) | (np.abs(values) > LARGEST_EXACT)
    return np.asarray(values[wrong])


def unlabelled_note(codes: NDArray[np.int64]) -> list[str]:
    """Return a list with a note if the `codes` (n,) of `class_codes` contain UNLABELLED; empty otherwise."""
    count = int((codes == UNLABELLED).sum())
    return [f"{count} of {len(codes)} clips have the label -1 or an empty label, which is not a class"] if count else []


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number of Python or NumPy; False for booleans."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _of_one_kind(listed: list[object]) -> NDArray[Any]:
    """Return an array of names or of whole numbers; an array of objects for other values."""
    if all(isinstance(value, str) for value in listed):
        return np.asarray(listed, dtype=np.str_)
    if all(map(is_whole, listed)):
        return np.asarray(listed)
    return np.asarray([None] * len(listed), dtype=object)


def _tensor(values: ArrayLike | Media, name: str) -> Tensor:
    """Return numbers as a tensor of a real type.

    Raises:
        InputError: `values` are not a dense array of real numbers, or some values are masked.
    """
    if isinstance(values, Tensor):
        tensor = _dense(values, name)
    else:
        try:
            array = np.asarray(_plain(values))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{name}: the values are not an array of numbers ({str(error).partition('.')[0]}); pass floats or "
                "integers"
            ) from error
        if array.dtype.kind not in "fiubc":
            kind = type(values).__name__ if array.dtype == object else str(array.dtype)
            raise InputError(
                f"{name}: values of type {kind} cannot be converted to an array of numbers; pass floats or integers"
            )
        if np.ma.is_masked(values):
            raise InputError(f"{name} is a masked array with gaps; fill the gaps, and pass a plain array")
        native = array.dtype.newbyteorder("=")
        exact = native in _KNOWN or native.kind == "c"
        tensor = torch.from_numpy(np.array(array, dtype=native if exact else np.float64))
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise InputError(f"{name} has type {str(tensor.dtype).removeprefix('torch.')}; pass floats or integers")
    return tensor


def _dense(values: Tensor, name: str) -> Tensor:
    kinds = {"sparse": values.layout != torch.strided, "quantized": values.is_quantized, "meta": values.is_meta}
    for kind, applies in kinds.items():
        if applies:
            raise InputError(f"{name} is a {kind} tensor; pass a dense tensor of floats or integers")
    return values


def _plain(values: object) -> object:
    """Convert the tensors of a list or tuple to float64 arrays. Return other values unchanged.

    NumPy does not support all types of tensors.
    """
    if isinstance(values, list | tuple):
        return [value.detach().cpu().double().numpy() if isinstance(value, Tensor) else value for value in values]
    return values


_KNOWN = (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.bool_)
"""Types that torch supports; numbers of other types (unsigned integers of 16 bits or more) are converted to float64."""
