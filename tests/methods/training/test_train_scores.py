"""MAP of the training clips: what it is, when it is logged, and that it changes nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Splits
from aadml.comparison.relevance import Judgments
from aadml.methods.training import train_scores
from aadml.methods.training.loop import train
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training
from aadml.reports.figures import training_curves
from aadml.retrieval.evaluation import evaluate, mean_average_precision
from aadml.retrieval.scores import score_source
from tests.methods.trainings import Linear, clips
from tests.retrieval.test_galleries import average_precision


def trained(epochs=5, **settings):
    learner, session = Linear(), Session()
    options = Training(epochs=epochs, batch=8, learning_rate=0.01, **settings)
    train(learner, clips(), clips(12, seed=1), options, session, seed=0)
    return learner, session


def test_few_training_clips_all_ask():
    given = Linear().eval().embed_clips(clips())
    found, whole = train_scores.train_scores(given), evaluate(given)
    assert found["map_mean"] == pytest.approx(whole.map_mean, abs=1e-12)
    assert found["map visual-audio"] == pytest.approx(whole["visual-audio"].map, abs=1e-12)
    assert "queries" not in found


@pytest.mark.parametrize(("name", "limit"), [("QUERIES", 7), ("PAIRS", 7 * 30 + 29)])
def test_of_many_a_fixed_sample_asks_and_all_are_ranked(monkeypatch, name, limit):
    monkeypatch.setattr(train_scores, name, limit)
    given = Linear().eval().embed_clips(clips(30))
    found = train_scores.train_scores(given)
    asking = np.sort(np.random.default_rng(0).choice(30, 7, replace=False))
    scores = score_source(given.vectors["audio"], given.vectors["visual"]).block(0, 30)
    labels = given.labels.numpy()
    each = [average_precision((labels == labels[i])[np.argsort(-scores[i], kind="stable")]) for i in asking]
    assert found["map audio-visual"] == pytest.approx(np.mean(each), abs=1e-12)
    assert found["queries"] == 7
    assert train_scores.train_scores(given) == found


def test_a_direction_without_relevant_items_is_left_out():
    given = Linear().eval().embed_clips(clips(30))
    lacking = {m: torch.arange(30) < 20 if m == "audio" else torch.arange(30) >= 10 for m in given.vectors}
    judged = replace(given, present=lacking, relevance=Judgments({given.ids[0]: {given.ids[29]: 1.0}}))
    found = train_scores.train_scores(judged)
    assert found.keys() == {"map_mean", "map audio-visual"}
    assert found["map_mean"] == found["map audio-visual"] == mean_average_precision(judged, ("audio", "visual"))
    assert train_scores.train_scores(replace(judged, relevance=Judgments({"other": {given.ids[29]: 1.0}}))) == {}


@pytest.mark.parametrize(("every", "epochs"), [(0, []), (1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (10, [5])])
def test_it_is_logged_in_its_turn_and_in_the_last_epoch(every, epochs):
    _, session = trained(train_map=every)
    assert [record["epoch"] for record in session.history if "train map_mean" in record] == epochs


def test_it_is_logged_in_the_last_epoch_that_patience_leaves():
    class Observed(Session):
        last = ()

        def log(self, record, weights=None):
            super().log(record)
            self.last = (*self.last, weights.last)

    session = Observed()
    settings = Training(epochs=50, batch=8, learning_rate=0.0, patience=3)
    train(Linear(), clips(), clips(12, seed=1), settings, session, seed=0)
    assert len(session.history) == 4
    assert ["train map_mean" in record for record in session.history] == [False] * 3 + [True]
    assert session.last == (False, False, False, True)


def test_it_changes_nothing_else():
    (one, plain), (other, scored) = trained(train_map=0), trained(train_map=1)
    assert all(torch.equal(value, other.state_dict()[key]) for key, value in one.state_dict().items())

    def rest(session):
        shown = (record.items() for record in session.history)
        return [{k: v for k, v in one if not k.startswith("train ") and k != "seconds"} for one in shown]

    assert rest(plain) == rest(scored)


def test_without_validation_clips_it_is_logged_too():
    session = Session()
    none = clips().select(torch.arange(0))
    train(Linear(), clips(), none, Training(epochs=1, batch=8), session, seed=0)
    assert session.history[0]["train map_mean"] > 0


def test_the_figure_of_a_run_shows_it_and_how_many_asked():
    records = [{"epoch": i, "loss": 1 / i, "valid map_mean": 0.5, "train map_mean": 0.6} for i in (1, 2)]
    assert "training clips, mean" in "".join(training_curves(records, 2).values())
    asked = [one | {"train queries": 2000} for one in records]
    assert "training clips, mean (2,000 queries)" in "".join(training_curves(asked, 2).values())
    plain = [{key: value for key, value in one.items() if key != "train map_mean"} for one in records]
    assert "training clips" not in "".join(training_curves(plain, 2).values())


def test_the_kept_epoch_has_its_own_in_the_evaluation(tmp_path):
    settings = {"network.hidden": [8], "training.batch": 30, "training.train_map": 1}
    data = Splits(clips(), clips(12, seed=1), clips(12, seed=2))
    model = aadml.fit(data, loss="triplet", epochs=4, settings=settings, runs=tmp_path)
    stored = json.loads((model.folder / "evaluation.json").read_text())
    log = [json.loads(line) for line in (model.folder / "metrics.jsonl").read_text().splitlines()]
    assert stored["train_map"] == pytest.approx(log[stored["selected_epoch"] - 1]["train map_mean"], abs=1e-6)
