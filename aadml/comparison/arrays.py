"""Arrays as people have them, as the tensors that methods take, and back again."""

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aadml.feature_extraction.ground.errors import InputError

Array = NDArray[Any] | Tensor
ArrayLike = NDArray[Any] | Tensor | Sequence[Any]
"""Numbers: a NumPy array or a tensor of any float or integer type, or nested lists; one row (d,) or many (n, d)."""

Media = str | Path | Sequence[str | Path]
"""One path, or several."""


_PART = 1 << 22  # numbers looked at together


def all_finite(values: Tensor) -> bool:
    """Tell whether a matrix (n, d) is without NaN and infinity; little memory beside it is taken."""
    parts = values.split(max(1, _PART // max(1, values.shape[1])))
    return all(bool(torch.isfinite(part).all()) for part in parts)


def to_rows(values: ArrayLike | Media, name: str) -> tuple[Tensor, Callable[[Tensor], Array]]:
    """Take numbers as a matrix.

    Args:
        values: (d,) or (n, d).
        name: of the argument, for the message.

    Returns:
        (n, d) float32 on the CPU, and a function that gives a result (n, e) the kind and number of rows of `values`:
        NumPy for NumPy and lists, tensors for tensors, (e,) for (d,).

    Raises:
        InputError: not numbers, NaN or infinity, or of another shape.
    """
    is_tensor = isinstance(values, Tensor)
    given = _tensor(values, name)
    single = given.ndim == 1
    rows = (given[None] if single else given).detach().cpu().float()
    if rows.ndim != 2 or not rows.shape[1]:
        raise InputError(f"{name}: of shape {tuple(given.shape)}; wanted one row (d,) or many (n, d)")
    wrong = ~torch.isfinite(rows).all(1)
    if bool(wrong.any()):
        raise InputError(f"{name}: row {int(wrong.nonzero()[0])} holds NaN or infinity (in float32)")

    def back(result: Tensor) -> Array:
        one = result[0] if single else result
        return one if is_tensor else one.numpy()

    return rows, back


def paths_of(values: object) -> tuple[list[str], bool] | None:
    """Read one path or several; None where it is neither.

    Returns:
        The paths, and whether it was one alone.
    """
    if isinstance(values, str | Path):
        return [str(values)], True
    if isinstance(values, Sequence) and values and all(isinstance(one, str | Path) for one in values):
        return [str(one) for one in values], False
    return None


def to_flags(values: object, name: str) -> Tensor:
    """Take truth values, or zeros and ones, as booleans (n,).

    Raises:
        InputError: anything else.
    """
    try:
        given = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: not an array of booleans") from error
    if given.ndim != 1 or given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
        raise InputError(f"{name}: {given.dtype} {given.shape} given; n booleans are wanted")
    return torch.from_numpy(given.astype(np.bool_))


def to_codes(values: object, name: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Number what stands in an array or a list, in the order of the values.

    Args:
        values: n names or n whole numbers; None in a list in place of what a row does not have.
        name: of the argument, for the message.

    Returns:
        (n,) numbers 0..C-1, -1 where there is None, and the C values as names.

    Raises:
        InputError: anything else, or names beside numbers.
    """
    try:
        given = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    except ValueError:
        given = np.empty((), dtype=object)
    there = np.ones(given.shape, dtype=np.bool_)
    if given.ndim == 1 and not (isinstance(values, np.ndarray | Tensor) and given.dtype.kind in "iuU"):
        listed = given.tolist() if isinstance(values, np.ndarray | Tensor) else list(cast(Iterable[object], values))
        there = np.asarray([one is not None for one in listed], dtype=np.bool_)
        given = _of_one_kind([one for one in listed if one is not None])
    if given.ndim != 1 or given.dtype.kind not in "iuU":
        raise InputError(
            f"{name}: {given.dtype} {given.shape} given; n names or n whole numbers are wanted, None for a row without"
        )
    found, codes = np.unique(given, return_inverse=True)
    numbers = np.full(len(there), -1, dtype=np.int64)
    numbers[there] = codes
    return numbers, tuple(map(str, found))


def is_whole(value: object) -> bool:
    """Tell whether something is a whole number, of Python or NumPy; a truth value is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _of_one_kind(listed: list[object]) -> NDArray[Any]:
    """Give an array of names, or of whole numbers; of anything else an array of objects."""
    if all(isinstance(one, str) for one in listed):
        return np.asarray(listed, dtype=np.str_)
    if all(map(is_whole, listed)):
        return np.asarray(listed)
    return np.asarray([None] * len(listed), dtype=object)


def _tensor(values: ArrayLike | Media, name: str) -> Tensor:
    """Read numbers as a tensor of a real type.

    Raises:
        InputError: not numbers, complex ones, truth values, or masked ones.
    """
    if isinstance(values, Tensor):
        given = _dense(values, name)
    else:
        try:
            array = np.asarray(_plain(values))
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: not an array of numbers ({str(error).partition('.')[0]})") from error
        if array.dtype.kind not in "fiubc":
            kind = type(values).__name__ if array.dtype == object else str(array.dtype)
            raise InputError(f"{name}: not an array of numbers, but {kind}")
        if np.ma.is_masked(values):
            raise InputError(f"{name}: a masked array given; fill its gaps first")
        own = array.dtype.newbyteorder("=")
        given = torch.from_numpy(
            np.array(array, dtype=own if own in _KNOWN else np.float64 if own.kind != "c" else own)
        )
    if given.is_complex() or given.dtype == torch.bool:
        raise InputError(
            f"{name}: {str(given.dtype).removeprefix('torch.')} numbers given; floats or integers are taken"
        )
    return given


def _dense(values: Tensor, name: str) -> Tensor:
    """Refuse a tensor whose numbers do not lie in memory one by one."""
    kinds = {"sparse": values.layout != torch.strided, "quantized": values.is_quantized, "meta": values.is_meta}
    for kind, is_so in kinds.items():
        if is_so:
            raise InputError(f"{name}: a {kind} tensor given; a dense one of floats or integers is wanted")
    return values


def _plain(values: object) -> object:
    """Replace tensors in a list by arrays, which NumPy joins whatever their type."""
    if isinstance(values, list | tuple) and any(isinstance(one, Tensor) for one in values):
        return [one.detach().cpu().double().numpy() if isinstance(one, Tensor) else one for one in values]
    return values


_KNOWN = (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.bool_)
"""Types that torch has too; of all others only float64 keeps the value."""
