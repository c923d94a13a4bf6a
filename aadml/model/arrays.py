"""Arrays as people have them, as the tensors that methods take, and back again."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from feature_extraction.ground.errors import InputError

Array = NDArray[Any] | Tensor
ArrayLike = NDArray[Any] | Tensor | Sequence[Any]
"""Numbers: a NumPy array or a tensor of any float or integer type, or nested lists; one row (d,) or many (n, d)."""

Media = str | Path | Sequence[str | Path]
"""One path, or several."""


def to_rows(values: ArrayLike, name: str) -> tuple[Tensor, Callable[[Tensor], Array]]:
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
    try:
        given = values if isinstance(values, Tensor) else torch.from_numpy(np.array(values, dtype=_kind(values)))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: not an array of numbers ({error})") from error
    if given.is_complex() or given.dtype == torch.bool:
        raise InputError(
            f"{name}: {str(given.dtype).removeprefix('torch.')} numbers given; floats or integers are taken"
        )
    single = given.ndim == 1
    rows = (given[None] if single else given).detach().cpu().float()
    if rows.ndim != 2 or not rows.shape[1]:
        raise InputError(f"{name}: of shape {tuple(given.shape)}; wanted one row (d,) or many (n, d)")
    wrong = ~torch.isfinite(rows).all(1)
    if bool(wrong.any()):
        raise InputError(f"{name}: row {int(wrong.nonzero()[0])} holds NaN or infinity")

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


def _kind(values: object) -> Any:
    """Choose the type that NumPy reads `values` with: its own where torch knows it, else float64."""
    kind = np.asarray(values).dtype
    if kind.kind not in "fiubc":
        raise TypeError(f"of type {kind}")
    known = (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.bool_)
    return kind.newbyteorder("=") if kind.newbyteorder("=") in known or kind.kind == "c" else np.float64
