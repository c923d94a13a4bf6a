"""Evaluation of models on data of every kind."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Clips
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.evaluate import Options
from aadml.runs.loading import load_run, read_evaluation
from aadml.runs.manifest import read_manifest
from aadml.runs.protocol_scores import evaluate_under_each
from aadml.runs.store import open_run
from tests.protocols.conftest import clips


def test_clips_are_scored_whole():
    model = aadml.fit(clips("abc"), epochs=1, settings={"network.hidden": [8], "training.batch": 12})
    later = clips("abc")
    none = later.select(np.arange(0))
    found, as_test = (aadml.evaluate(model, data=data) for data in (later, aadml.Splits(none, none, later)))
    assert (found.split, found.map_mean) == ("all", as_test.map_mean)
    assert found.record().directions.keys() == {"audio-visual", "visual-audio"}
    with pytest.raises(InputError, match="split is 'test', but all of the Clips are scored; leave out split"):
        aadml.evaluate(model, data=later, split="test")


def test_evaluate_wants_one_thing_to_score_and_one_gallery(random_model, random_run, other_file):
    for given, problem in (
        ({}, "neither a model nor embeddings were"),
        ({"model": random_model, "embeddings": "e.h5"}, "both a model and embeddings were"),
    ):
        with pytest.raises(InputError, match=f"evaluate: {problem} passed; pass either a model"):
            aadml.evaluate(**given)
    with pytest.raises(InputError, match="allow_other_features applies only to a model on other data"):
        aadml.evaluate(random_run, allow_other_features=True)
    with pytest.raises(InputError, match="a Model needs data; pass data, or the path of its run"):
        aadml.evaluate(random_model)
    with pytest.raises(InputError, match="exclude_partner and disjoint cannot be combined"):
        aadml.evaluate(random_model, data=other_file(), exclude_partner=True, disjoint=True)
    whole = aadml.evaluate(random_model, data=other_file(), split="train")
    without = aadml.evaluate(random_model, data=other_file(), split="train", exclude_partner=True)
    halves = aadml.evaluate(random_model, data=other_file(), split="train", disjoint=True)
    assert len({one.map_mean for one in (whole, without, halves)}) == 3


def test_what_is_scored_otherwise_is_kept_under_a_name_of_its_own(random_model, random_run, tmp_path):
    aadml.evaluate(random_run)
    aadml.evaluate(random_run, disjoint=True, metrics="recall@3", queries=5)
    aadml.evaluate(random_run, split="valid", relevance="own")
    evaluate_under_each(random_run, ["legacy:partner"], split="valid")
    for folder in (tmp_path / "one", tmp_path / "other"):  # judgments of one name in two places
        folder.mkdir()
        ids = load_run(random_run).splits.valid.ids
        (folder / "judged.txt").write_text("".join(f"{name} 0 {name} 1\n" for name in ids))
        aadml.evaluate(random_run, split="valid", relevance=folder / "judged.txt")
    kept = sorted(path.name for path in (random_run / "evaluations").iterdir())
    expected = [
        r"inductive-test-disjoint-recall-3-queries-5-seed-0-[0-9a-f]{8}\.json", r"inductive-test\.json",
        *[r"inductive-valid-relevance-[A-Za-z0-9._-]+-[0-9a-f]{8}\.json"] * 2, r"inductive-valid-relevance-own\.json",
        r"legacy-partner-valid-[0-9a-f]{8}\.json",
    ]  # fmt: skip
    assert len(kept) == len(expected)
    assert all(re.fullmatch(pattern, name) for pattern, name in zip(expected, kept, strict=True)), kept
    record = json.loads((random_run / "evaluations" / "inductive-test.json").read_text())
    assert (record["label"], record["seed"], record["split"]) == ("cca", 0, "test")
    assert record["map_mean"] == random_model.evaluation["map_mean"]
    assert Options().changed() == []
    assert Options(gallery="disjoint", extra=("mrr",), queries=7).changed() == ["disjoint", "mrr", "queries-7-seed-0"]


def test_an_evaluation_by_another_similarity_of_an_earlier_version_is_read_verified_and_reported(random_run):
    aadml.evaluate(random_run)
    record = json.loads((random_run / "evaluations" / "inductive-test.json").read_text()) | {"similarity": "euclidean"}
    name = "evaluations/inductive-test-euclidean.json"
    with open_run(random_run) as store:
        store.commit({name: json.dumps(record).encode()})
    assert read_evaluation(random_run, name=name).similarity == "euclidean"
    assert aadml.verify(random_run) == []
    aadml.evaluate(random_run, disjoint=True)
    assert name in read_manifest(random_run).files
    assert aadml.report(random_run).is_file()


def test_judged_ids_without_clips_are_noted(random_model, random_run, other_file, tmp_path):
    ids = load_run(random_run).splits.test.ids
    (tmp_path / "qrels").write_text("".join(f"{name} 0 {name} 1\n" for name in (*ids, "other")))
    clips = Clips.of(None, ids=ids, audio=np.eye(len(ids)), visual=np.eye(len(ids)))
    sources = [{"model": random_run}, {"model": random_model, "data": other_file()}, {"embeddings": clips}]
    for source in sources:
        notes = []
        aadml.evaluate(**source, relevance=tmp_path / "qrels", on_note=notes.append)
        assert f"1 of {len(ids) + 1} judged ids are not ids of the clips (other)" in notes


def test_scores_of_other_classes_have_no_label_space(other_file):
    settings = {"network.hidden": [4], "training.batch": 30}
    model = aadml.fit(other_file(), loss="triplet", epochs=1, settings=settings)
    assert aadml.evaluate(model, data=other_file()).label_space
    foreign = other_file(class_names=("x", "y", "z"))
    assert aadml.evaluate(model, data=foreign).label_space == {}


def test_embeddings_in_memory_are_scored_as_they_are(random_model):
    vectors = torch.randn(20, 4, generator=torch.Generator().manual_seed(0))
    given = Clips.of(np.arange(20) % 2, audio=vectors.numpy(), visual=vectors.numpy()).embedded(
        {"audio": vectors, "visual": vectors}
    )
    found = aadml.evaluate(embeddings=given)
    assert (found.protocol, found.split) == ("unstated", "all")
    partner = aadml.evaluate(embeddings=given, relevance="own", split="test", protocol="mine")
    assert (partner.protocol, partner.split, partner.map_mean) == ("mine", "test", 1.0)
    assert found.map_mean < 1
    of_clips = aadml.evaluate(embeddings=Clips.of(np.arange(20) % 2, audio=vectors.numpy(), visual=vectors.numpy()))
    assert (of_clips.map_mean, of_clips.split) == (found.map_mean, "all")


@pytest.mark.parametrize(("labels", "warnings"), [([0] * 6, 2), ([0] * 5 + [1], 0)])
def test_a_gallery_in_which_every_clip_is_relevant_is_noted(labels, warnings):
    vectors, notes = np.random.default_rng(0).normal(size=(6, 3)), []
    aadml.evaluate(embeddings=Clips.of(labels, audio=vectors, visual=vectors[::-1]), on_note=notes.append)
    expected = "the chance level of MAP is 1.0000, because nearly all clips are relevant to each query"
    assert sum(expected in note for note in notes) == len(notes) == warnings


def test_a_file_of_embeddings_without_splits_is_scored_whole_and_this_is_said(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((12, 4)).astype("f4")
    np.savez(tmp_path / "e.npz", audio=vectors, visual=vectors, label=np.arange(12) % 3)
    said = []
    found = aadml.evaluate(embeddings=tmp_path / "e.npz", split="test", on_note=said.append)
    assert found.split == "all"
    assert said[:-1] == [f"{tmp_path / 'e.npz'} has no 'split', so all its 12 clips are scored"]
    assert said[-1].startswith("the SHA-256 of the embeddings is ")
    aadml.evaluate(embeddings=tmp_path / "e.npz", on_note=said.append)
    assert said[2:] == said[1:2]


def test_a_run_with_a_link_is_scored_and_not_written(random_run, tmp_path):
    victim = tmp_path / "mine"
    victim.write_text("mine")
    (random_run / "evaluations").mkdir()
    (random_run / "evaluations" / "inductive-valid.json").symlink_to(victim)
    notes = []
    assert aadml.evaluate(random_run, split="valid", on_note=notes.append).split == "valid"
    assert re.search(r"the results were not added to the run: .*inductive-valid.json is a symbolic link", notes[-1])
    assert victim.read_text() == "mine"


def test_copies_of_training_clips_are_noted_in_training_and_evaluation(other_file, tmp_path):
    content = read_features(other_file())
    test, train = content.rows("test")[:2], content.rows("train")[:2]
    features = {name: values.copy() for name, values in content.features.items()}
    for values in features.values():
        values[test] = values[train]
    path, notes = other_file(features=features), []
    ids = ", ".join(content.ids[row] for row in test)
    note = f"2 test clips have the same features as train or valid clips ({ids})"
    training = {"method": "cca", "settings": {"method.dimension": 2}}
    model = aadml.fit(path, runs=tmp_path / "runs", on_note=notes.append, **training)
    aadml.evaluate(model.folder, on_note=notes.append)
    aadml.evaluate(model, data=path, on_note=notes.append)
    aadml.evaluate(model, data=path, split="valid", on_note=notes.append)
    assert sum(note in line for line in notes) == 3
    memory = aadml.fit(replace(aadml.read(path), notes=()), **training)
    assert [note in line for line in memory.facts.data.notes] == [True]


def test_a_method_without_epochs_is_not_fitted_on_test_clips(random_run):
    with pytest.raises(InputError, match="on the scored clips, but cca chooses neither"):
        aadml.evaluate(random_run, protocol="legacy:test-selection")
