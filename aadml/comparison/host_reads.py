"""Values of tensors on a GPU that are read once per tensor, because the host waits for the GPU in each read."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

T = TypeVar("T")

UNKEPT = ("cpu",)
"""Types of devices from which a read costs no wait, so that nothing is kept."""
_READ: Any = WeakTensorKeyDictionary()


def read_once(codes: Tensor, name: str, read: Callable[[], T]) -> T:
    """Return a value that depends only on `codes`; compute the value again only for another or a changed tensor.

    The comparisons of a batch between two modalities have the same tensor of codes. A change through `.data` is not
    noticed.

    Args:
        codes: tensor that determines the value.
        name: name of the value.
        read: function that computes the value.
    """
    if codes.device.type in UNKEPT or codes.is_inference() or torch.is_inference_mode_enabled():
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
    if codes.device.type in UNKEPT:
        least, most = map(int, codes.aminmax())
    else:
        least, most = read_once(codes, "range", lambda: torch.stack(codes.aminmax()).tolist())
    return least, most
