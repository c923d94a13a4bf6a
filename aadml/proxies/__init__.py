"""PROXIES: as whom a clip enters a loss, by name."""

from typing import Any, Protocol

from torch import nn

from aadml.proxies.anchor_aware import AnchorAware
from aadml.proxies.identity import Identity


class ProxyClass(Protocol):
    """The class of a proxy: `(dimension, modalities, *, options) -> module`.

    Attributes:
        prefix: what it adds to the names of losses ("aa-"); none where every clip stands for itself.
    """

    prefix: str

    def __call__(self, *args: Any, **options: Any) -> nn.Module:
        """Build the proxy."""


PROXIES: dict[str, ProxyClass] = {
    "identity": Identity,
    "anchor-aware": AnchorAware,
}
