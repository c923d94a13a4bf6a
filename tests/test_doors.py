"""The doors of the Python face: an argument of another type is refused in one line, before anything is written."""

import inspect
import pickle

import numpy as np
import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index
from aadml.search.build_index import build

FUNCTIONS = [
    name
    for name in aadml.__all__
    if inspect.isfunction(getattr(aadml, name)) and inspect.signature(getattr(aadml, name)).parameters
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_of_another_type_is_refused_at_the_door(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = getattr(aadml, name)
    parameters = [*inspect.signature(function).parameters.values()]
    first, *others = parameters
    positional = first.kind is first.VAR_POSITIONAL
    required = {each.name: "x" for each in others if each.default is each.empty and each.kind is not each.VAR_KEYWORD}
    for value in (3.5, b"x", object(), np.zeros(3)) if first.name != "over" else ():
        with pytest.raises(InputError, match=rf"^{name}: {first.name} has type ") as caught:
            function(value, **required) if positional else function(**{first.name: value}, **required)
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: aadml.fit("f.h5", config=""), "fit: config is empty; pass a path or None"),
        (
            lambda: aadml.fit({"audio": 1}),
            "fit: data has type dict; pass text, a path, Splits, "
            "Clips (of arrays: aadml.Clips.of(labels, audio=..., visual=...)) or None",
        ),
        (lambda: aadml.fit("f.h5", modalities=3), "fit: modalities has type int; pass names, text or None"),
        (lambda: aadml.fit("f.h5", epochs=True), "fit: epochs has type bool; pass a whole number or None"),
        (
            lambda: aadml.evaluate("run", queries="5"),
            "evaluate: queries has type str; pass a whole number or None",
        ),
        (lambda: aadml.sample_data("d", seconds="1"), "sample_data: seconds has type str; pass a number"),
    ],
)
def test_what_is_possible_is_said(call, said):
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == said


def test_numbers_of_numpy_and_what_is_passed_by_pickle_are_taken(tmp_path):
    assert pickle.loads(pickle.dumps(aadml.sample_data)) is aadml.sample_data
    assert aadml.sample_data(tmp_path, clips=np.int64(1), seconds=np.float32(0.5)).is_file()


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("doors") / "features.h5"
    write_features(path, synthetic(classes=3, train=30, valid=9, test=15, dimensions=(12, 14)))
    return path


@pytest.fixture(scope="module")
def index(features):
    with Index.build(features, features.with_name("an.index")) as index:
        yield index


@pytest.fixture(scope="module")
def model(features):
    return aadml.fit(features, method="cca")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda index: Index(5), "Index: path has type int; pass text or a path"),
        (lambda index: Index.build(3, "x.index"), "Index.build: source has type int; pass text or a path"),
        (
            lambda index: build("f.h5", "x", workers="2"),
            "build: workers has type str; pass a whole number or None",
        ),
        (lambda index: index.search(clip=3), "Index.search: clip has type int; pass text, a path or None"),
        (
            lambda index: index.like(1.5, "audio", to="audio"),
            "Index.like: clip has type float; pass a whole number or text",
        ),
        (lambda index: index.item(None), "Index.item: clip has type NoneType; pass a whole number or text"),
        (lambda index: index.export(""), "Index.export: output is empty; pass a path"),
        (lambda index: index.export(3), "Index.export: output has type int; pass text or a path"),
    ],
)
def test_an_index_refuses_it_too(call, said, index, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        call(index)
    assert str(caught.value) == said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda model: model.save(""), "Model.save: folder is empty; pass a path"),
        (lambda model: model.save(None), "Model.save: folder has type NoneType; pass text or a path"),
        (
            lambda model: model.top_k(np.eye(10), np.eye(10), k="3"),
            "Model.top_k: k has type str; pass a whole number",
        ),
    ],
)
def test_a_model_refuses_it_too(call, said, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        call(model)
    assert str(caught.value) == said
    assert not list(tmp_path.iterdir())
