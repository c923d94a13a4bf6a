"""A small feature file that trainings of this folder share."""

import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features


@pytest.fixture
def features(tmp_path):
    path = tmp_path / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))
    return str(path)
