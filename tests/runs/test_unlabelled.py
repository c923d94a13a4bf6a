"""Clips without labels, and with several, through every door: their pairs train, and their partners are relevant."""

import html
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS

SMALL = {
    "training.criterion": "map",
    "network.hidden": [16],
    "training.batch": 20,
    "training.learning_rate": 0.01,
    "training.epochs": 2,
}
OF_PAIRS = {
    "cca": {"method.dimension": 3},
    "kcca": {"method.dimension": 3},
    "dcca": {"method.outputs": 4, "method.dimension": 4, "training.batch": 30},
    "clip": {"method.hidden": [16], "method.dimension": 8},
    "bic-net": {"method.hidden": [8], "method.dimension": 16, "method.tokens": 2, "method.depth": 1},
    "dcil": {"method.hidden": [16], "method.dimension": 8},
    "pairs": {"network.hidden": [16]},
    "random": {},
}
OF_CLASSES = sorted(
    name
    for name, build in METHODS.items()
    if name not in (*OF_PAIRS, "zero-shot") and not build.__module__.startswith("aadml.methods.audio_text")
)


def labelled():
    return synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2)


@pytest.fixture
def unlabelled(tmp_path):
    content = labelled()
    none = np.full(len(content.ids), UNLABELLED)
    write_features(tmp_path / "u.h5", replace(content, labels=none, class_names=()))
    return tmp_path / "u.h5"


@pytest.fixture
def several(tmp_path):
    content = labelled()
    marked = np.eye(3, dtype=np.uint8)[content.labels]
    marked[::4, 0] = 1
    write_features(tmp_path / "s.h5", replace(content, all_labels=marked))
    return tmp_path / "s.h5"


@pytest.mark.parametrize("name", sorted(OF_PAIRS))
def test_a_method_of_pairs_trains_and_is_scored_without_labels(unlabelled, name):
    quick = {key: value for key, value in SMALL.items() if key not in ("network.hidden", "training.criterion")}
    model = aadml.fit(unlabelled, method=name, settings={**quick, **OF_PAIRS[name]})
    assert model.evaluation["relevance"] == "own"
    for direction in model.evaluation["directions"].values():
        assert direction["queries"] == direction["gallery"] == 30
        assert direction["chance"] == pytest.approx(np.mean(1 / np.arange(1, 31)))
        assert direction["recall_at"] == direction["hit_rate_at"]
        assert direction["by_class"] == {}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_method_of_classes_refuses_in_one_line_and_says_what_to_take(unlabelled, name):
    with pytest.raises(InputError, match=r"one class per clip.*choose the method pairs, clip, cca") as caught:
        aadml.fit(unlabelled, method=name, epochs=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("loss", ["triplet", "contrastive", "nt-xent", "supcon", "n-pair", "ranking", "hinge", "dsl"])
def test_losses_of_pairs_train_without_a_further_word(unlabelled, loss):
    notes = []
    model = aadml.fit(unlabelled, loss=loss, settings=SMALL, on_note=notes.append)
    assert model.facts.method.name == "pairs"
    assert any("config 'pairs' is used" in note for note in notes)
    assert model.evaluation["relevance"] == "own"


@pytest.mark.slow
def test_a_run_without_labels_is_scored_audited_and_reported(unlabelled, tmp_path):
    model = aadml.fit(unlabelled, settings=SMALL, runs=tmp_path / "runs")
    assert "A relevant result is the query's own partner only." in model.card()
    assert "classes: none" in model.card()
    again = aadml.evaluate(model.folder, metrics=["recall@3"]).record()
    assert again.relevance == "own"
    stored = json.loads((model.folder / "evaluation.json").read_text())
    assert again.map_mean == stored["map_mean"]
    with pytest.raises(InputError, match="relevance 'label' needs class labels"):
        aadml.evaluate(model.folder, relevance="label")
    page = aadml.report(model.folder).read_text()
    assert "A hit is the query's own partner only" in html.unescape(page)
    other = aadml.evaluate(aadml.load(model.folder), data=unlabelled, split="valid")
    assert other.relevance == "own"


@pytest.mark.slow
def test_the_audit_catches_a_partner_leak_without_labels(unlabelled, tmp_path):
    model = aadml.fit(unlabelled, method="cca", settings={"method.dimension": 3}, runs=tmp_path / "runs")
    clean = {one.check: one.verdict.value for one in aadml.audit(model.folder)}
    assert (clean["partner blindness"], clean["label blindness"]) == ("pass", "not checkable")
    assert "fail" not in clean.values()
    leaking = {one.check: one.verdict.value for one in aadml.audit(model.folder, protocol="legacy:partner")}
    assert leaking["partner blindness"] == "fail"


def test_labelled_clips_can_be_scored_by_their_own_partners(tmp_path):
    write_features(tmp_path / "f.h5", labelled())
    by_label = aadml.fit(tmp_path / "f.h5", method="cca", settings={"method.dimension": 3})
    own = aadml.fit(tmp_path / "f.h5", method="cca", settings={"method.dimension": 3}, relevance="own")
    assert "relevance" not in by_label.evaluation
    assert own.evaluation["relevance"] == "own"
    assert own.evaluation["chance"] < by_label.evaluation["chance"]
    for key, value in by_label.method.state().items():
        assert torch.equal(value, own.method.state()[key])


def test_clips_of_several_labels_train_and_what_shares_a_label_is_relevant(several, tmp_path):
    model = aadml.fit(several, settings=SMALL, runs=tmp_path / "runs")
    assert model.evaluation["relevance"] == "labels"
    content = open_data(several)
    rows = content.rows("test")
    marked = content.all_labels[rows].astype(float)
    shared = (marked @ marked.T > 0).mean(axis=1)
    direction = aadml.evaluate(model.folder)["audio-visual"]
    assert direction.chance.mean() == pytest.approx(shared.mean(), abs=0.1)
    graded = aadml.evaluate(model.folder, relevance="labels-graded")
    assert graded.relevance == "labels-graded"
    assert graded.map_mean == pytest.approx(aadml.evaluate(model.folder).map_mean)
    with pytest.raises(InputError, match=r"`aadml convert IN OUT --first-label`"):
        aadml.fit(several, method="aadml", epochs=1)


def test_clips_in_memory_need_no_labels(unlabelled):
    splits = aadml.read(unlabelled)
    clips = aadml.Clips.of(None, audio=splits.train["audio"], visual=splits.train["visual"])
    model = aadml.fit(clips, settings=SMALL)
    assert model.evaluation is None
    assert aadml.evaluate(model, data=splits).relevance == "own"


def test_a_judgment_file_says_what_is_relevant(unlabelled, tmp_path):
    ids = aadml.read(unlabelled).test.ids
    lines = ["query,item,grade", f"{ids[0]},{ids[1]},1", f"{ids[2]},{ids[2]},3", f"{ids[3]},{ids[4]},0"]
    (tmp_path / "j.csv").write_text("\n".join(lines))
    model = aadml.fit(unlabelled, method="random", relevance=tmp_path / "j.csv")
    direction = model.evaluation["directions"]["audio-visual"]
    assert (direction["queries"], direction["queries_without_relevant"]) == (2, 28)
    qrels = "\n".join(line.replace(",", " 0 ", 1).replace(",", " ") for line in lines[1:])
    (tmp_path / "j.qrels").write_text(qrels)
    again = aadml.fit(unlabelled, method="random", relevance=tmp_path / "j.qrels")
    assert again.evaluation == model.evaluation | {"seconds": again.evaluation["seconds"]}
    (tmp_path / "bad.csv").write_text("query,item,grade\na,b")
    with pytest.raises(InputError, match="line 2 is not a judgment"):
        aadml.fit(unlabelled, method="random", relevance=tmp_path / "bad.csv")
