"""Data that a model meets after its training: what is not as it was is said."""

from dataclasses import replace

import pytest

import aadml
from aadml.data.splitting.splits import clips_of, without_classes
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError

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


def test_data_in_memory_are_laid_out_as_those_of_a_file(model, tmp_path):
    """Of fewer classes, and of a modality more than the model has: the same scores to the byte."""
    content = without_classes(synthetic(**SHAPE), [0, 2])
    content = replace(content, features={**content.features, "flow": content.features["audio"][:, :3]})
    write_features(tmp_path / "fewer.h5", content)
    read = aadml.read(tmp_path / "fewer.h5")
    by_place, in_memory = (aadml.evaluate(model, data=data).to_json() for data in (tmp_path / "fewer.h5", read))
    assert by_place == in_memory


def test_features_of_another_extractor_are_refused_in_memory_too(tmp_path):
    def written(name, extractor):
        content = synthetic(**SHAPE)
        made = {m: {"extractor": extractor, "parameters": {}} for m in content.features}
        write_features(tmp_path / name, replace(content, provenance=made))
        return tmp_path / name

    fitted = aadml.fit(written("a.h5", "one"), method="cca", settings={"method.dimension": 4})
    for data in (written("b.h5", "another"), aadml.read(tmp_path / "b.h5")):
        with pytest.raises(InputError, match="its audio features were made by another"):
            aadml.evaluate(fitted, data=data)
        assert aadml.evaluate(fitted, data=data, allow_other_features=True).directions


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"once": "audio", "data": True}, "once is for embeddings"),
        ({"embeddings": True, "data": True}, "data is for a model; embeddings are scored as they are"),
        ({"embeddings": True, "allow_other_features": True}, "allow_other_features is for a model on other data"),
        ({"query_seed": 3, "data": True}, "query_seed is 3, but no queries are drawn"),
    ],
)
def test_what_an_evaluation_would_not_follow_is_refused(model, options, said):
    splits = aadml.Splits(*[clips_of(synthetic(**SHAPE))] * 3)
    known = {"data": splits, "embeddings": model.embed_clips(splits.test)}
    given = {key: known[key] if value is True and key in known else value for key, value in options.items()}
    with pytest.raises(InputError, match=said):
        aadml.evaluate(None if "embeddings" in options else model, **given)
