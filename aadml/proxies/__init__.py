"""PROXIES: as whom a clip enters a loss, by name."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from feature_extraction.ground.tables import Table

if TYPE_CHECKING:
    from torch import nn

PROXIES: Table["Callable[..., nn.Module]"] = Table(
    "proxy",
    {
        "identity": "aadml.proxies.identity:Identity",
        "anchor-aware": "aadml.proxies.anchor_aware:AnchorAware",
    },
    group="aadml.proxies",
)
"""name -> `(dimension, modalities, *, options) -> nn.Module`."""
