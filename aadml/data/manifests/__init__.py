"""MANIFESTS: registry of media data sets that can be listed as manifests for `aadml extract`."""

from typing import TYPE_CHECKING

from aadml.feature_extraction.ground.registry import Registry

if TYPE_CHECKING:
    from aadml.data.manifests.listing import ListingFunction
    from aadml.data.manifests.published import PublishedTables

MANIFESTS: Registry["PublishedTables | ListingFunction"] = Registry(
    "data set",
    {
        "ave": "aadml.data.manifests.ave:ave",
        "vegas": "aadml.data.manifests.vegas:vegas",
        "vggsound": "aadml.data.manifests.published:VGGSOUND",
        "audioset": "aadml.data.manifests.published:AUDIOSET",
        "audiocaps": "aadml.data.manifests.published:AUDIOCAPS",
        "clotho": "aadml.data.manifests.published:CLOTHO",
        "kinetics-sounds": "aadml.data.manifests.published:KINETICS_SOUNDS",
        "music": "aadml.data.manifests.published:MUSIC",
        "folder": "aadml.data.manifests.folder:folder",
        "table": "aadml.data.manifests.table:table",
    },
    of="aadml.data.manifests.listing:ListingFunction",
)
"""name -> tables of a data set, or `(folder, *, options) -> Listing`; the options are those of `aadml manifest`."""
