"""What is read or listed, by name."""

from collections.abc import Mapping
from dataclasses import dataclass

from aadml.data.layouts import LAYOUTS
from aadml.data.manifests import MANIFESTS


@dataclass(frozen=True)
class Dataset:
    """One line of `aadml list datasets`.

    Args:
        description: what it is and which command takes it.
    """

    description: str


DATASETS: Mapping[str, Dataset] = {
    "feature-file": Dataset("the feature file of `aadml extract`; taken by every command"),
    **{name: Dataset(f"{layout.description}; taken wherever a feature file is") for name, layout in LAYOUTS.items()},
    "sample": Dataset("rendered clips of ten everyday events; `aadml sample-data`"),
    **{name: Dataset(f"{source.description}; `aadml manifest {name}`") for name, source in MANIFESTS.items()},
}
"""Layouts of feature files, and data sets of which a manifest is made."""
