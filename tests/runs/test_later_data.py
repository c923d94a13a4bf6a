"""Data that a model meets after its training: what is not as it was is said."""

from dataclasses import replace

import pytest

import aadml
from aadml.data.synthetic import synthetic
from feature_extraction.feature_file import write_features

SHAPE = {"classes": 5, "dimensions": (6, 8), "train": 60, "valid": 15, "test": 30}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    file = tmp_path_factory.mktemp("later") / "known.h5"
    write_features(file, synthetic(**SHAPE))
    return aadml.fit(file, method="cca", settings={"method.dimension": 4})


@pytest.mark.parametrize(
    ("renamed", "said"),
    [
        ({}, []),
        ({"class 1": "bell"}, ["1 of its 5 classes (bell) are none that the model was trained on"]),
        (
            {f"class {i}": f"new {i}" for i in range(5)},
            ["5 of its 5 classes (new 0, new 1, new 2, ...) are none that the model was trained on"],
        ),
    ],
)
def test_classes_that_the_model_never_saw_are_named(model, renamed, said, tmp_path):
    content = synthetic(**SHAPE)
    names = tuple(renamed.get(name, name) for name in content.class_names)
    write_features(tmp_path / "other.h5", replace(content, class_names=names))
    notes = []
    found = aadml.evaluate(model, data=tmp_path / "other.h5", on_note=notes.append)
    assert notes == [f"{tmp_path / 'other.h5'}: {one}" for one in said]
    assert found.directions
