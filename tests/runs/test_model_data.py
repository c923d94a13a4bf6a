"""Data that a model meets after its training: what is not as it was is said."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import aadml
from aadml.data.splitting.splits import clips_of, without_classes
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.runs import model_data
from aadml.runs.model_data import nonempty_split, read_for
from tests.runs.conftest import CONTENT

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
        ({"class 1": "bell"}, ["the model was not trained on 1 of the 5 classes of the data (bell)"]),
        (
            {f"class {i}": f"new {i}" for i in range(3)},
            ["the model was not trained on 3 of the 5 classes of the data (new 0, new 1, new 2)"],
        ),
        (
            {f"class {i}": f"new {i}" for i in range(5)},
            ["the model was not trained on 5 of the 5 classes of the data (new 0, new 1, new 2, ...)"],
        ),
    ],
)
def test_classes_without_training_are_named(model, renamed, said, tmp_path):
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
        with pytest.raises(InputError, match="the audio features were computed by another"):
            aadml.evaluate(fitted, data=data)
        assert aadml.evaluate(fitted, data=data, allow_other_features=True).directions
    with pytest.raises(InputError, match="the audio features were computed by another"):
        aadml.embed(fitted, tmp_path / "b.h5", tmp_path / "e.h5")
    (tmp_path / "e.h5").write_text("mine")
    with pytest.raises(InputError, match=r"e\.h5"):
        aadml.embed(fitted, tmp_path / "a.h5", tmp_path / "e.h5")
    assert (tmp_path / "e.h5").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"embeddings": True, "data": True}, "data applies only to a model"),
        (
            {"embeddings": True, "allow_other_features": True},
            "allow_other_features applies only to a model on other data",
        ),
    ],
)
def test_what_an_evaluation_would_not_follow_is_refused(model, options, said):
    splits = aadml.Splits(*[clips_of(synthetic(**SHAPE))] * 3)
    known = {"data": splits, "embeddings": model.embed_clips(splits.test)}
    given = {key: known[key] if value is True and key in known else value for key, value in options.items()}
    with pytest.raises(InputError, match=said):
        aadml.evaluate(None if "embeddings" in options else model, **given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"features": {"audio": CONTENT.features["audio"]}},
            r"has no visual features, which the model needs \(found: audio\); pass data with these features",
        ),
        (
            {"features": {"audio": CONTENT.features["visual"], "visual": CONTENT.features["visual"]}},
            "audio has 8 dimensions, but the model was trained on 6; pass features of the training extractor",
        ),
    ],
)
def test_features_that_do_not_fit_a_model_are_refused(random_model, other_file, changes, message):
    with pytest.raises(InputError, match=message):
        read_for(random_model, other_file(**changes))


def test_classes_are_known_again_by_their_names(random_model, other_file):
    a, b, c = random_model.class_names
    for names in ((c, a, b), (c, a)):
        labels = np.minimum(CONTENT.labels, len(names) - 1)
        labels[0] = -1
        splits = read_for(random_model, other_file(labels=labels, class_names=names))
        for name in ("train", "valid", "test"):
            rows = CONTENT.rows(name)
            expected = [-1 if label < 0 else random_model.class_names.index(names[label]) for label in labels[rows]]
            assert splits[name].labels.tolist() == expected
            assert splits[name].class_names == random_model.class_names
    splits = read_for(random_model, other_file(class_names=(a, b, "unheard of")))
    assert splits.test.class_names == (a, b, "unheard of")
    assert splits.test.labels.tolist() == CONTENT.labels[CONTENT.rows("test")].tolist()


def test_of_clips_of_several_classes_each_is_known_again(random_model):
    _, b, c = random_model.class_names
    marked = np.random.default_rng(0).integers(0, 2, (51, 2)).astype(np.uint8)
    marked[:, 0] |= 1 - marked[:, 1]
    content = replace(CONTENT, labels=marked.argmax(1), class_names=(c, b), all_labels=marked)
    splits = model_data._divided(content, "there", random_model)
    assert splits.name == "there"
    for name in ("train", "valid", "test"):
        own = marked[CONTENT.rows(name)].astype(bool)
        assert np.array_equal(splits[name].all_labels.numpy()[:, 2], own[:, 0])
        assert np.array_equal(splits[name].all_labels.numpy()[:, 1], own[:, 1])
        assert not splits[name].all_labels[:, 0].any()


def test_a_split_without_clips_is_refused_with_what_there_is(random_model, other_file):
    splits = read_for(random_model, other_file(splits=tuple("train" if s == "valid" else s for s in CONTENT.splits)))
    assert len(nonempty_split(splits, "test")) == 12
    with pytest.raises(InputError, match=r"there are no valid clips \(39 train, 0 valid, 12 test\)"):
        nonempty_split(splits, "valid")


def test_captioned_sound_and_features_are_told_apart(random_model, monkeypatch):
    monkeypatch.setattr(model_data, "is_captioned", lambda path: True)
    with pytest.raises(
        InputError, match="is captioned sound; pass data that the model reads: features of audio, visual"
    ):
        read_for(random_model, "sound.csv")
    facts = replace(
        random_model.facts,
        method=replace(random_model.facts.method, arguments=OptionValues(cleaning="mei", captions=5)),
    )
    reads = SimpleNamespace(facts=facts, modalities=("audio", "text"))
    with pytest.raises(InputError, match="is not an existing folder or manifest; pass a folder or a manifest of capt"):
        read_for(reads, "features.h5")
    splits, notes, calls = SimpleNamespace(notes=("test: 1 of 6 clips have no usable sound",)), [], []
    monkeypatch.setattr(model_data, "read_captioned", lambda *given, **keys: calls.append((*given, keys)) or splits)
    assert read_for(reads, "sound.csv", on_note=notes.append) is splits
    assert calls == [("sound.csv", facts.method.arguments, {"complete": False})]
    assert notes == list(splits.notes)


def test_all_texts_of_data_in_memory_are_scored(tmp_path):
    """A path, its read splits, their test clips, and embeddings of these clips have the same directions."""
    content, rows = synthetic(**SHAPE), np.repeat(np.arange(105), 2)
    texts = Texts(np.random.default_rng(0).standard_normal((210, 4)).astype("f4"), rows)
    features = {"audio": content.features["audio"], "text": texts.first_of_each(105)[0]}
    write_features(tmp_path / "f.h5", replace(content, features=features, texts=texts))
    fitted = aadml.fit(tmp_path / "f.h5", method="cca", settings={"method.dimension": 2})
    splits = aadml.read(tmp_path / "f.h5")
    expected = aadml.evaluate(fitted, data=tmp_path / "f.h5").directions
    assert [len(direction.ids) for direction in expected] == [30, 60]
    for data in (splits, splits.test):
        found = aadml.evaluate(fitted, data=data).directions
        assert [direction.map for direction in found] == [direction.map for direction in expected]
    clips = replace(splits.test, features={m: splits.test.matrix(m)[:, :4] for m in splits.test.modalities})
    assert [len(direction.ids) for direction in aadml.evaluate(embeddings=clips).directions] == [30, 60]
