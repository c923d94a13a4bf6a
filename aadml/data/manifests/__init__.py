"""MANIFESTS: data sets of which one has the media; each is listed as a manifest for `aadml extract`."""

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
        "class-folders": "aadml.data.manifests.class_folders:class_folders",
        "folder": "aadml.data.manifests.class_folders:folder",
        "table": "aadml.data.manifests.table:table",
    },
)
"""name -> `(folder, *, options) -> Listing`; the options are those of `aadml manifest`."""
