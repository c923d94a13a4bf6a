"""DATASETS: what is read wherever a feature file is asked for, and of what a manifest of media is made."""

from typing import Any

from aadml.data.layouts import LAYOUTS
from aadml.data.manifests import MANIFESTS
from aadml.feature_extraction.ground.registry import Registry

DATASETS: Registry[Any] = Registry(
    "data set",
    {
        "feature-file": "aadml.data.reading:FEATURE_FILE",
        **LAYOUTS.places,
        "sample": "aadml.data.sample_clips:write_sample_clips",
        **MANIFESTS.places,
    },
)
"""Layouts of feature files, and data sets with media: the sample clips and those of `aadml manifest`."""
