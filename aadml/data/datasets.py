"""DATASETS: layouts of features, and data sets of media."""

from typing import Any

from aadml.data.layouts import LAYOUTS
from aadml.data.manifests import MANIFESTS
from aadml.feature_extraction.ground.registry import Registry

DATASETS: Registry[Any] = Registry(
    "data set",
    {
        "feature-file": "aadml.data.reading:FEATURE_FILE",
        **LAYOUTS.places,
        "sample": "aadml.data.sample_clips:sample_data",
        **MANIFESTS.places,
    },
)
"""Layouts of feature files, and data sets with media: the sample clips and the data sets of `aadml manifest`."""
