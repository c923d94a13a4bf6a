"""Which epoch a training keeps, when it stops, and how its learning rate falls."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.training.learner import Stage, Validation
from aadml.methods.training.settings import Training
from aadml.retrieval.evaluation import evaluate
from tests.methods.trainings import KilledError, Linear, Recorder, Scripted, clips, run
from tests.sections import typed


def test_the_epoch_of_the_best_validation_map_is_kept():
    learner, session = run(Training(epochs=8, batch=8, learning_rate=0.05))
    best = max(session.history, key=lambda record: record["valid map_mean"])
    assert session.best().facts["epoch"] == best["epoch"]
    scores = learner.validate(Validation(learner, clips(12, seed=1)))
    assert scores["map_mean"] == pytest.approx(best["valid map_mean"], abs=1e-6)


def test_the_validation_clips_are_embedded_once_an_epoch():
    embedded = []

    class Counting(Linear):
        def embed(self, features, modality):
            embedded.append(modality)
            return super().embed(features, modality)

    run(Training(epochs=3, batch=8, train_map=0, criterion="recall@2"), learner=Counting())
    assert embedded == ["audio", "visual"] * 3


@pytest.mark.parametrize("criterion", ["recall@2", "hit-rate@1", "map-at-r", "map"])
def test_another_criterion_chooses_the_epoch(criterion):
    settings = Training(epochs=8, batch=8, learning_rate=0.05, criterion=criterion)
    learner, session = run(settings)
    scores = [record[f"valid {criterion}"] for record in session.history]
    assert session.best().facts["epoch"] == 1 + scores.index(max(scores))
    found = evaluate(learner.embed_clips(clips(12, seed=1)), extra=[criterion]).record()
    assert found.figure(criterion) == pytest.approx(max(scores), abs=1e-6)
    _, plain = run(replace(settings, criterion="auto"))
    assert [one["loss"] for one in plain.history] == [one["loss"] for one in session.history]


def test_the_criterion_is_what_plateaus_and_patience_look_at():
    _, session = run(Training(epochs=9, batch=8, learning_rate=0.0, criterion="recall@2", patience=2))
    assert len(session.history) == 3


@pytest.mark.parametrize(
    ("criterion", "message"),
    [("recal@2", "did you mean 'recall'"), ("recall", "needs a cutoff"), ("mean-rank", "better when smaller")],
)
def test_a_wrong_criterion_is_refused(criterion, message):
    with pytest.raises(InputError, match=message):
        Training(criterion=criterion).check()


def test_a_criterion_beyond_the_validation_clips_or_beside_the_stages_of_a_method_is_refused():
    with pytest.raises(InputError, match="metric recall@13: the gallery has 12 items"):
        run(Training(epochs=1, batch=8, criterion="recall@13"))
    learner = Linear()
    learner.takes_criterion = False
    with pytest.raises(InputError, match=r"have different scores; set training\.criterion to auto"):
        run(Training(epochs=1, batch=8, criterion="recall@2"), learner=learner)


def test_the_last_epoch_is_kept_where_the_config_says_so_or_nothing_can_choose():
    _, session = run(Training(epochs=4, batch=8, select="last"))
    assert session.best().facts["epoch"] == 4
    _, session = run(Training(epochs=3, batch=8), valid=clips(0))
    assert session.best().facts["epoch"] == 3


def test_patience_stops_and_a_resumed_training_does_not_go_on_after_it():
    settings = Training(epochs=50, batch=8, learning_rate=0.0, patience=3)
    session = Recorder()
    run(settings, session)
    assert len(session.history) == 4
    again = Recorder(state=session.state, best=session.best())
    learner, _ = run(settings, again)
    assert again.history == []
    assert learner.finished == 1
    assert not learner.training


def test_a_patience_of_one_stops_at_the_first_epoch_that_is_no_better():
    _, session = run(Training(epochs=9, batch=8, patience=1), learner=Scripted([0.1, 0.2, 0.3, 0.3, 0.9]))
    assert [record["epoch"] for record in session.history] == [1, 2, 3, 4]


def test_each_stage_has_a_patience_of_its_own_and_beats_an_earlier_one_only_where_that_still_counts():
    scores = [0.5, 0.4, 0.4, 0.3, 0.4, 0.4, 0.2, 0.1]
    for kept, epochs, best in ((False, 7, 5), (True, 5, 1)):
        stages = [Stage("first", 8), Stage("second", 8, keep_best=kept)]
        _, session = run(Training(batch=8, patience=2), learner=Scripted(scores, stages))
        assert [record["stage"] for record in session.history] == ["first"] * 3 + ["second"] * (epochs - 3)
        assert session.best().facts["epoch"] == best


def test_a_stage_whose_score_cannot_rise_counts_for_neither_patience_nor_plateaus():
    settings = Training(
        batch=8, patience=2, learning_rate=1.0, schedule="plateau", schedule_every=1, schedule_factor=0.5
    )
    learner = Scripted([0.5] * 9, [Stage("generator", 4, validated=False), Stage("joint", 5)])
    _, session = run(settings, learner=learner)
    assert [record["stage"] for record in session.history] == ["generator"] * 4 + ["joint"] * 3
    assert [record["learning_rate"] for record in session.history] == pytest.approx([1] * 6 + [0.5])


def test_the_generator_of_daml_trains_in_such_a_stage():
    context = Context({"audio": 4, "visual": 4}, 2)
    network = NetworkOptions(hidden=(4,))
    learner = METHODS["aadml"](context, Training(), **typed(loss="daml"), network=network).learner
    assert {stage.name: stage.validated for stage in learner.stages(16)} == {
        "metric": True, "generator": False, "joint": True,
    }  # fmt: skip


def test_schedules_lower_the_learning_rate():
    _, session = run(Training(epochs=5, batch=8, learning_rate=1.0, schedule="step", schedule_every=2))
    assert [record["learning_rate"] for record in session.history] == pytest.approx([1, 1, 0.1, 0.1, 0.01])
    _, session = run(
        Training(epochs=4, batch=8, learning_rate=1.0, schedule="step", schedule_every=1, schedule_floor=0.05)
    )
    assert [record["learning_rate"] for record in session.history] == pytest.approx([1, 0.1, 0.05, 0.05])


@pytest.mark.parametrize("killed_after", [None, 3, 7])
def test_a_plateau_lowers_the_learning_rate_as_torch_does(killed_after):
    scores = [0.1, 0.2, 0.2, 0.201, 0.19, 0.3, 0.304, 0.3, 0.29, 0.31, 0.31, 0.31, 0.31, 0.31]
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    torchs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="max", factor=0.1, patience=2, threshold=0.005, threshold_mode="abs", min_lr=1e-3
    )
    expected = []
    for score in scores:
        expected.append(optimizer.param_groups[0]["lr"])
        torchs.step(score)
    settings = Training(
        epochs=len(scores), batch=8, learning_rate=1.0, schedule="plateau", schedule_every=3, schedule_threshold=0.005,
        schedule_floor=1e-3,
    )  # fmt: skip
    session = Recorder(die_after=killed_after)
    if killed_after is not None:
        with pytest.raises(KilledError):
            run(settings, session, Scripted(scores))
        session = Recorder(state=session.state, best=session.best())
        expected, scores = expected[killed_after:], scores[killed_after:]
    run(settings, session, Scripted(scores))
    assert [record["learning_rate"] for record in session.history] == pytest.approx(expected)
    assert len(set(expected)) > 1


@pytest.mark.parametrize("threshold", [0.0, 0.25])
def test_a_score_that_is_above_the_best_by_the_threshold_alone_has_not_risen(threshold):
    scores = [0.5, 0.5 + threshold, 0.5 + threshold, 0.5]
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    torchs = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="max", factor=0.1, patience=1, threshold=threshold, threshold_mode="abs"
    )
    expected = []
    for score in scores:
        expected.append(optimizer.param_groups[0]["lr"])
        torchs.step(score)
    settings = Training(
        epochs=4, batch=8, learning_rate=1.0, schedule="plateau", schedule_every=2, schedule_threshold=threshold
    )
    _, session = run(settings, learner=Scripted(scores))
    assert [record["learning_rate"] for record in session.history] == pytest.approx(expected)
    assert expected[-1] == 0.1


def test_patience_counts_the_epochs_since_the_best_score():
    settings = Training(epochs=50, batch=8, patience=3)
    _, session = run(settings, learner=Scripted([0.5, *[0.1] * 50]))
    assert len(session.history) == 4


def test_a_plateau_counts_the_epochs_since_the_score_rose():
    settings = Training(
        epochs=12, batch=8, learning_rate=1.0, schedule="plateau", schedule_every=3,
        schedule_factor=0.5,
    )  # fmt: skip
    _, session = run(settings, learner=Scripted([0.5, *[0.1] * 50]))
    rates = [record["learning_rate"] for record in session.history]
    after = [number for number, two in enumerate(pairwise(rates), 1) if two[0] != two[1]]
    assert after == [4, 7, 10]
