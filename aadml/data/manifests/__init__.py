"""MANIFESTS: data sets of media that are listed as manifests for `aadml extract`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry

if TYPE_CHECKING:
    from aadml.data.manifests.listing import Listing

MANIFESTS: Registry[Callable[..., "Listing"]] = Registry(
    "data set",
    {
        "ave": "aadml.data.manifests.ave:ave",
        "vegas": "aadml.data.manifests.vegas:vegas",
        "folder": "aadml.data.manifests.folder:folder",
        "table": "aadml.data.manifests.table:table",
    },
)
"""name -> `(folder, *, options) -> Listing`; the options are those of `aadml manifest`."""
