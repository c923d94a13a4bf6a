"""PROXIES: as whom a clip enters a loss, by name."""

from collections.abc import Callable

from torch import nn

from aadml.proxies.anchor_aware import AnchorAware
from aadml.proxies.identity import Identity

PROXIES: dict[str, Callable[..., nn.Module]] = {
    "identity": Identity,
    "anchor-aware": AnchorAware,
}
