"""Embeddings of media and of captioned sound as a file: a row a pair, splits one after the other."""

from dataclasses import replace
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.embeddings import Embeddings
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs import embed
from tests.edited_hdf5 import edited


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model, of which only the facts and the similarity are used."""
    place = tmp_path_factory.mktemp("embedded") / "own.h5"
    write_features(place, synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 8)))
    return aadml.fit(place, method="random")


@pytest.fixture(scope="module")
def classifier():
    """Data of three classes, and a model with one dimension per class."""
    content = synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 8), difficulty=0.1)
    return content, aadml.fit(to_splits(content), loss="triplet", epochs=1, settings={"network.hidden": [4]})


@pytest.mark.parametrize("names", [("c", "a", "b"), ("c", "a", "other"), ("c", "a")])
def test_label_space_is_scored_by_the_classes_of_the_model(classifier, tmp_path, names):
    content, model = classifier
    own = dict(zip("abc", content.class_names, strict=True))
    labels = np.minimum(content.labels, len(names) - 1)
    changed = replace(content, labels=labels, class_names=tuple(own.get(name, name) for name in names))
    write_features(tmp_path / "f.h5", changed)
    embed.embed_file(model, tmp_path / "f.h5", tmp_path / "e.h5")
    expected = aadml.evaluate(model, data=tmp_path / "f.h5")
    label_space = {modality: pytest.approx(values) for modality, values in expected.label_space.items()}
    assert aadml.evaluate(embeddings=tmp_path / "e.h5").label_space == label_space
    assert set(label_space) == (set() if "other" in names else {"audio", "visual"})
    if label_space:
        clips = aadml.read(tmp_path / "f.h5").test
        assert aadml.evaluate(embeddings=model.embed_clips(clips)).label_space == label_space


def captioned(count, first, width, classes):
    """Pairs of sound and caption as captioned sets give them: two captions a clip, a class a clip, words packed."""
    random = torch.Generator().manual_seed(first)
    labels = torch.arange(count) // 2
    vectors = {"audio": torch.randn(count, 3, generator=random), "text": torch.randn(count, width, generator=random)}
    ids = tuple(f"clip {first + int(label)}" for label in labels)
    return Embeddings(vectors, labels, ids, class_names=tuple(f"clip {first + i}" for i in range(classes)))


class Parts(dict):
    """Stand-in of `Splits`: parts by name and by attribute."""

    __getattr__ = dict.__getitem__


def test_captioned_sound_is_written_a_row_a_pair_with_clips_numbered_through(made, tmp_path, monkeypatch):
    parts = Parts(train=captioned(6, 0, 4, 3), valid=captioned(0, 3, 9, 0), test=captioned(4, 3, 5, 2))
    model = SimpleNamespace(
        facts=made.facts, modalities=("audio", "text"), embed_clips=lambda part: part, method=made.method
    )
    monkeypatch.setattr(embed, "read_for", lambda model, path, **_: parts)
    clips, similarity = embed._embed_media(model, "sound.csv", tmp_path / "e.h5")
    assert (clips, similarity) == (5, made.method.similarity)
    with h5py.File(tmp_path / "e.h5") as file:
        assert file["label"][...].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
        assert [one.decode() for one in file["split"]] == ["train"] * 6 + ["test"] * 4
        assert [one.decode() for one in file["class_names"]] == [f"clip {i}" for i in range(5)]
        assert file["text"].shape == (10, 5)
        assert np.array_equal(file["text"][:6, :4], parts["train"].vectors["text"].numpy())
        assert not file["text"][:6, 4].any()
        assert np.array_equal(file["text"][6:], parts["test"].vectors["text"].numpy())
        assert {"audio_present", "modalities"}.isdisjoint(file)


def test_clips_of_one_name_in_two_splits_are_named_by_split_and_captions_are_no_clips(made, tmp_path, monkeypatch):
    parts = {"train": captioned(6, 0, 3, 3), "valid": captioned(4, 3, 3, 2), "test": captioned(4, 2, 3, 2)}
    for name, part in parts.items():
        parts[name] = replace(part, ids=tuple(f"{clip}#{row % 2 + 1}" for row, clip in enumerate(part.ids)))
    model = SimpleNamespace(
        facts=made.facts, modalities=("audio", "text"), embed_clips=lambda part: part, method=made.method
    )
    monkeypatch.setattr(embed, "read_for", lambda model, path, **_: Parts(parts))
    assert embed._embed_media(model, "sound.csv", tmp_path / "e.h5")[0] == 7
    with h5py.File(tmp_path / "e.h5") as file:
        names = ["clip 0", "clip 1", "train/clip 2", "valid/clip 3", "clip 4", "test/clip 2", "test/clip 3"]
        assert [name.decode() for name in file["class_names"]] == names
        assert [name.decode() for name in file["id"]] == [f"{name}#{number}" for name in names for number in (1, 2)]
    assert aadml.evaluate(embeddings=tmp_path / "e.h5").split == "test"
    embed._embed_media(model, "sound.csv", tmp_path / "e.h5")  # the same clips may replace the file
    with monkeypatch.context() as earlier_version:
        earlier_version.setattr(embed, "_named_apart", dict)
        embed._embed_media(model, "sound.csv", tmp_path / "unnamed.h5")
    embed._embed_media(model, "sound.csv", tmp_path / "unnamed.h5")


def test_rows_that_lack_a_modality_are_written_as_zeros_and_marked(made, tmp_path, monkeypatch):
    there = torch.tensor([True, False, True, True])
    labels, ids = torch.tensor([0, 1, 0, 1]), tuple("abcd")
    some = Embeddings({"audio": torch.ones(4, 2), "thermal": torch.ones(4, 2)}, labels, ids, present={"thermal": there})
    every = replace(some, present={}, ids=tuple("efgh"))
    parts = {"train": some, "valid": (), "test": every}
    splits = SimpleNamespace(train=SimpleNamespace(class_names=("x", "y")))
    splits = type("Given", (), {"__getitem__": lambda self, name: parts[name], "train": splits.train})()
    model = SimpleNamespace(
        facts=SimpleNamespace(towers=object(), to_json=dict), modalities=("audio", "thermal"),
        embed_clips=lambda part: part, method=made.method,
    )  # fmt: skip
    monkeypatch.setattr(embed, "read_for", lambda model, path, **_: splits)
    assert embed._embed_media(model, "videos.csv", tmp_path / "e.h5")[0] == 8
    with h5py.File(tmp_path / "e.h5") as file:
        marks = [*there.tolist(), True, True, True, True]
        assert file["thermal_present"][...].tolist() == marks
        assert file["thermal"][:, 0].tolist() == [float(mark) for mark in marks]
        assert file["label"][...].tolist() == [0, 1, 0, 1] * 2
        assert [one.decode() for one in file["class_names"]] == ["x", "y"]
        assert sorted(one.decode() for one in file["modalities"]) == ["audio", "thermal"]


def test_sound_with_several_captions_is_ranked_once_a_clip_from_the_file_too(made, tmp_path, monkeypatch):
    pairs = captioned(12, 0, 3, 6)
    heard = pairs.vectors["audio"][::2].repeat_interleave(2, 0)
    pairs = replace(pairs, vectors={"audio": heard, "text": pairs.vectors["text"]}, once=("audio",))
    model = SimpleNamespace(
        facts=made.facts, modalities=("audio", "text"), embed_clips=lambda part: part, method=made.method
    )
    monkeypatch.setattr(
        embed, "read_for", lambda model, path, **_: Parts(train=captioned(0, 0, 3, 0), valid=(), test=pairs)
    )
    embed._embed_media(model, "sound.csv", tmp_path / "e.h5")
    wanted = aadml.evaluate(embeddings=replace(pairs, similarity=made.method.similarity))
    found = aadml.evaluate(embeddings=tmp_path / "e.h5")
    assert [len(one.ids) for one in found.directions] == [6, 12]
    assert [one.map for one in found.directions] == [one.map for one in wanted.directions]
    with edited(tmp_path / "e.h5") as file:
        file.attrs["once"] = ["text"]
    with pytest.raises(InputError, match=r"e\.h5: once: text: a row of clip '.+' differs from another row"):
        aadml.evaluate(embeddings=tmp_path / "e.h5")


def test_an_embedding_that_is_not_finite_is_refused_and_nothing_is_written(tmp_path):
    made = synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 8))
    write_features(tmp_path / "own.h5", made)
    model = aadml.fit(tmp_path / "own.h5", method="cca", settings={"method.dimension": 2})
    weights = next(iter(model.method.weights.values()))
    weights[0, 0], weights[1, 0] = torch.inf, torch.nan
    with pytest.raises(InputError, match=rf"the audio embedding of {made.ids[0]} contains NaN or infinity; correct"):
        embed.embed_file(model, tmp_path / "own.h5", tmp_path / "e.h5")
    assert [place.name for place in tmp_path.iterdir()] == ["own.h5"]
    with pytest.raises(InputError, match="the audio embedding of row 0 contains NaN"):
        model.embed(audio=made.features["audio"])
    with pytest.raises(InputError, match="the audio vectors contain NaN or infinity, first at row 0"):
        model.embed_clips(aadml.read(tmp_path / "own.h5").test)


def test_embeddings_of_clips_of_several_classes_are_scored_by_all_classes(tmp_path):
    content = synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 8))
    marks = np.eye(3, dtype=np.uint8)[content.labels]
    marks[::4] = 1
    write_features(tmp_path / "f.h5", replace(content, labels=marks.argmax(1), all_labels=marks))
    model = aadml.fit(tmp_path / "f.h5", method="cca", settings={"method.dimension": 2})
    embed.embed_file(model, tmp_path / "f.h5", tmp_path / "e.h5")
    notes = []
    found = aadml.evaluate(embeddings=tmp_path / "e.h5", on_note=notes.append)
    assert found.record().relevance == "labels"
    assert found.map_mean == pytest.approx(model.evaluation["map_mean"])
    assert not any("ignored" in note for note in notes)
    with edited(tmp_path / "e.h5") as file:
        del file["labels"]
        file["labels"] = np.zeros((51, 4), np.uint8)
    assert aadml.evaluate(embeddings=tmp_path / "e.h5", on_note=notes.append).record().relevance == "label"
    assert any("ignored (labels)" in note for note in notes)


def test_embeddings_of_other_clips_and_the_features_themselves_are_kept(made, tmp_path):
    content = synthetic(classes=3, train=30, valid=9, test=12, dimensions=(6, 8))
    write_features(tmp_path / "f.h5", content)
    write_features(tmp_path / "g.h5", replace(content, ids=tuple(f"other {name}" for name in content.ids)))
    embed.embed_file(made, tmp_path / "f.h5", tmp_path / "e.h5")
    embed.embed_file(made, tmp_path / "f.h5", tmp_path / "e.h5")
    before = (tmp_path / "e.h5").read_bytes()
    with pytest.raises(InputError, match=r"e\.h5 shares none of its 51 clips with .*g\.h5, so this file"):
        embed.embed_file(made, tmp_path / "g.h5", tmp_path / "e.h5")
    with pytest.raises(InputError, match=r"e\.h5 is the input; pass another output"):
        embed.embed_file(made, tmp_path / "e.h5", tmp_path / "e.h5")
    assert (tmp_path / "e.h5").read_bytes() == before
