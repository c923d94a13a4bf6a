"""Fixtures of trainings that take milliseconds, for the conftest of each room that uses them."""

import pytest

from aadml.configuration.files import open_config
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features


@pytest.fixture
def features(tmp_path):
    """A small feature file of four classes that are easy to tell apart, without a validation split."""
    path = tmp_path / "features.h5"
    write_features(path, synthetic(classes=4, train=60, valid=0, test=24, dimensions=(6, 8), difficulty=0.2))
    return path


@pytest.fixture
def base(features):
    """Config values of a training that takes milliseconds."""
    return open_config("aadml").values | {
        "data": str(features),
        "network": {"hidden": [8]},
        "training": {"epochs": 3, "batch": 20, "learning_rate": 0.01},
    }
