"""Data sets of which one has the media: each is listed as a manifest for `aadml extract`."""

from collections.abc import Callable
from dataclasses import dataclass

from aadml.data.manifests.ave import ave
from aadml.data.manifests.class_folders import class_folders
from aadml.data.manifests.listing import Listing
from aadml.data.manifests.vegas import vegas


@dataclass(frozen=True)
class ManifestSource:
    """One kind of data set.

    Args:
        description: one line for people.
        list: makes the listing of a folder; its keyword-only arguments are the options of `aadml manifest`.
    """

    description: str
    list: Callable[..., Listing]


MANIFESTS: dict[str, ManifestSource] = {
    "ave": ManifestSource("AVE: Annotations.txt, order files and videos; 15 classes (default) or all 28", ave),
    "vegas": ManifestSource("VEGAS: one folder of videos a class, folds as text files of ids", vegas),
    "class-folders": ManifestSource("any media in one folder a class, or split/class; divided by lot", class_folders),
}
"""Data sets by name."""
