"""Values of tensors that are read on the host once per tensor, because each read stops a GPU."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

T = TypeVar("T")

_READ: Any = WeakTensorKeyDictionary()


def read_once(codes: Tensor, name: str, read: Callable[[], T]) -> T:
    """Return a value that depends only on `codes`; compute the value again only for another or a changed tensor.

    The comparisons of a batch have the same tensor of codes, in all directions.

    Args:
        codes: tensor that determines the value.
        name: name of the value.
        read: function that computes the value.
    """
    if codes.is_inference():  # without a count of its changes
        return read()
    version, values = _READ.get(codes, (None, {}))
    if version != codes._version:
        values = {}
        _READ[codes] = codes._version, values
    if name not in values:
        values[name] = read()
    value: T = values[name]
    return value


def code_range(codes: Tensor) -> tuple[int, int]:
    """Return the least and the greatest of codes (n,); (0, -1) without codes."""
    if not len(codes):
        return 0, -1
    least, most = read_once(codes, "range", lambda: torch.stack(codes.aminmax()).tolist())
    return least, most
