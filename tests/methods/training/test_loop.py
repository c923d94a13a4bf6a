"""The one loop: what it learns from, what it keeps, and that an interruption changes nothing."""

import copy
import hashlib
import math
from dataclasses import replace
from itertools import chain

import pytest
import torch

from aadml.feature_extraction.ground.errors import DamagedFileError, InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods.training.learner import Stage
from aadml.methods.training.session import Callbacks, Checkpoint, Session
from aadml.methods.training.settings import Training
from tests.methods.trainings import KilledError, Linear, Recorder, Scripted, Two, Watched, clips, run


def test_every_epoch_sees_every_clip_once_in_a_new_order():
    learner, _ = run(Training(epochs=2, batch=8))
    first, second = list(chain(*learner.seen[:4])), list(chain(*learner.seen[4:]))
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second


def test_each_epoch_is_given_one_row_of_each_clip_and_its_batches_are_of_these():
    pairs = clips(30)
    pairs = replace(pairs, ids=tuple(f"clip {i // 3}" for i in range(30)))
    pairs = replace(pairs, drawn_by=pairs.ids)
    stages = [Stage("one", 3), Stage("two", 2)]
    learner = Watched(stages=stages)
    run(learner=learner, train_clips=pairs)
    assert len(learner.given) == 5
    for epoch, (given, taken) in enumerate(zip(learner.given, learner.batches, strict=True)):
        expected = []
        for clip in range(10):  # by the definition: a hash of seed, epoch and clip chooses among its rows
            drawn = hashlib.blake2b(f"0 {epoch} clip {clip}".encode(), digest_size=8).digest()
            expected.append(pairs["visual"][3 * clip + int.from_bytes(drawn, "little") % 3])
        assert torch.equal(given, torch.stack(expected))
        assert torch.equal(taken, given)


def test_a_learner_that_could_not_embed_goes_on_training():
    learner, features = Linear().train(), clips()["audio"]
    with pytest.raises(KeyError):
        learner.embed_all(features, "smell")
    assert learner.training
    assert torch.is_grad_enabled()
    assert not learner.embed_all(features, "audio").requires_grad


def test_a_last_batch_of_one_clip_joins_the_one_before():
    learner, _ = run(Training(epochs=1, batch=29))
    assert [len(batch) for batch in learner.seen] == [30]


def test_drop_last_leaves_the_smaller_batch_out():
    learner, _ = run(Training(epochs=1, batch=8, drop_last=True))
    assert [len(batch) for batch in learner.seen] == [8, 8, 8]
    for batch, sizes in ((10, [10] * 3), (100, [30]), (29, [29])):
        learner, _ = run(Training(epochs=1, batch=batch, drop_last=True))
        assert [len(one) for one in learner.seen] == sizes


def test_same_seed_same_bytes_and_another_seed_other_bytes():
    states = [run(seed=seed)[0].state_dict() for seed in (0, 0, 1)]
    assert all(torch.equal(states[0][k], states[1][k]) for k in states[0])
    assert not all(torch.equal(states[0][k], states[2][k]) for k in states[0])


def test_every_epoch_of_every_stage_and_seed_has_an_order_of_its_own():
    stages = [Stage("first", 2), Stage("second", 2)]
    orders = []
    for seed in (0, 1):
        learner, _ = run(Training(batch=30), learner=Linear(stages=stages), seed=seed)
        orders += [tuple(batch) for batch in learner.seen]
    assert len(orders) == len(set(orders)) == 8


def test_training_leaves_the_process_wide_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    run(learner=None)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(3), expected)


def test_a_training_by_warmup_and_cosine_continues_to_the_same_bytes():
    settings = Training(epochs=6, batch=8, schedule="cosine", warmup=1.5)
    whole, recorded = run(settings)
    session = Recorder(die_after=3)
    with pytest.raises(KilledError):
        run(settings, session)
    continued, _ = run(settings, Recorder(state=session.state, best=session.best()))
    assert all(torch.equal(value, continued.state_dict()[key]) for key, value in whole.state_dict().items())
    rates = [record["learning_rate"] for record in recorded.history]
    assert 0 < rates[0] < rates[1] < rates[2] > rates[3] > rates[5] > 0


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "adamax", "rmsprop", "sgd"])
@pytest.mark.parametrize("killed_after", [1, 3, 5])
def test_a_killed_training_continues_to_the_same_bytes(optimizer, killed_after):
    settings = Training(epochs=6, batch=8, optimizer=optimizer, momentum=0.5, schedule="step", schedule_every=2)
    whole, _ = run(settings)
    session = Recorder(die_after=killed_after)
    with pytest.raises(KilledError):
        run(settings, session)
    again = Recorder(state=session.state, best=session.best())
    continued, _ = run(settings, again)
    for key, value in whole.state_dict().items():
        assert torch.equal(value, continued.state_dict()[key]), key


def test_a_killed_training_of_several_players_continues_whatever_their_names():
    class Named(Two):
        def players(self):
            return {f"the.{name}": player for name, player in super().players().items()}

    whole, _ = run(learner=Named())
    session = Recorder(die_after=3)
    with pytest.raises(KilledError):
        run(session=session, learner=Named())
    continued, _ = run(session=Recorder(state=session.state, best=session.best()), learner=Named())
    assert all(torch.equal(value, continued.state_dict()[key]) for key, value in whole.state_dict().items())


def test_a_killed_training_continues_across_stages():
    stages = [Stage("first", 3), Stage("second", 3, keep_optimizer=True), Stage("third", 2, start_from_best=False)]
    whole, _ = run(learner=Linear(stages=stages))
    for killed_after in range(1, 8):
        session = Recorder(die_after=killed_after)
        with pytest.raises(KilledError):
            run(session=session, learner=Linear(stages=stages))
        continued, _ = run(session=Recorder(state=session.state, best=session.best()), learner=Linear(stages=stages))
        for key, value in whole.state_dict().items():
            assert torch.equal(value, continued.state_dict()[key]), (killed_after, key)


def test_gradients_are_clipped_to_the_norm():
    settings = Training(epochs=1, batch=30, optimizer="sgd", learning_rate=1.0, clip_norm=0.01)
    before = Linear().state_dict()
    learner, _ = run(settings, learner=Linear(scale=100.0))
    moved = math.sqrt(sum(float((v - before[k]).square().sum()) for k, v in learner.state_dict().items()))
    assert moved == pytest.approx(0.01, rel=1e-3)


def test_a_loss_that_is_nan_from_the_start_is_an_error_that_says_what_to_do():
    with pytest.raises(InputError, match="learning_rate"):
        run(learner=Linear(scale=math.nan))


def test_a_loss_that_becomes_nan_later_keeps_the_best_epoch_and_warns():
    class Breaking(Linear):
        def _loss(self, batch):
            parts = super()._loss(batch)
            return {"loss": parts["loss"] * (math.nan if batch.epoch.number == 2 else 1)}

    learner, session = run(learner=Breaking())
    assert len(session.history) == 2
    assert any("nan" in warning for warning in session.warnings)
    assert all(torch.isfinite(value).all() for value in learner.state_dict().values())


class BrokenGradient(Linear):
    """A learner with a finite loss, whose gradient is NaN in the last step of an epoch."""

    epoch = 2

    def _loss(self, batch):
        parts = super()._loss(batch)
        broken = batch.epoch.number == self.epoch and len(batch.index) == 6
        nothing = sum((parameter * 0).sum().sqrt() for parameter in self.parameters())
        return parts | {"loss": parts["loss"] + nothing} if broken else parts


def test_a_gradient_that_becomes_nan_keeps_the_best_epoch_and_warns():
    learner, session = run(learner=BrokenGradient())
    assert len(session.history) == 2
    assert any("weights became NaN or infinite in epoch 3" in warning for warning in session.warnings)
    assert all(torch.isfinite(value).all() for value in learner.state_dict().values())


def test_a_gradient_that_is_nan_in_the_first_epoch_is_an_error_that_says_what_to_do():
    learner = BrokenGradient()
    learner.epoch = 0
    with pytest.raises(InputError, match="weights became NaN or infinite in the first epoch; lower"):
        run(learner=learner)


def test_of_several_players_each_has_its_figures_and_the_loss_is_their_sum():
    _, session = run(Training(epochs=2, batch=8), learner=Two())
    for record in session.history:
        assert record["loss"] == pytest.approx(record["audio loss"] + record["visual loss"])
        assert record["audio gradient_norm"] > 0
        assert record["visual gradient_norm"] > 0
        assert record["steps"] == 4
    _, session = run(Training(epochs=1, batch=30), learner=Two())
    assert session.history[0]["loss_of_first_batch"] == session.history[0]["loss"]


def test_a_figure_is_the_mean_over_batches_and_that_of_the_first_batch_stands_beside_it():
    class Counting(Linear):
        def _loss(self, batch):
            return super()._loss(batch) | {"loss": 0 * super()._loss(batch)["loss"] + len(self.seen) // 2}

    _, session = run(Training(epochs=1, batch=8), learner=Counting())
    assert (session.history[0]["loss"], session.history[0]["loss_of_first_batch"]) == (2.5, 1.0)


def test_only_the_players_of_a_stage_move():
    stages = [Stage("audio only", 2, players=("audio",))]
    before = Linear().state_dict()
    learner, _ = run(Training(epochs=2, batch=8, select="last"), learner=Two(stages=stages))
    after = learner.state_dict()
    assert not torch.equal(before["layers.audio.1.weight"], after["layers.audio.1.weight"])
    assert torch.equal(before["layers.visual.1.weight"], after["layers.visual.1.weight"])


def test_a_stage_that_is_scored_is_told_of_with_its_best_weights_in_place():
    told = []
    callbacks = Callbacks(on_stage=lambda name: told.append((name, copy.deepcopy(learner.state_dict()))))
    session, learner = (
        Session(callbacks),
        Scripted([0.1, 0.9, 0.2, 0.3], [Stage("one", 3, scored=True), Stage("two", 1)]),
    )
    keep = session.keep_best
    kept = []
    session.keep_best = lambda checkpoint: (keep(checkpoint), kept.append(session.best()))
    run(Training(batch=8), session, learner)
    ((name, weights),) = told
    assert name == "one"
    assert kept[1].facts["epoch"] == 2
    assert all(torch.equal(value, kept[1].tensors[key]) for key, value in weights.items())


def test_a_warning_is_given_on_once_whichever_epoch_it_is_of():
    heard = []
    session = Session(Callbacks(on_warning=heard.append))
    for message in ("epoch 1: too hot", "epoch 2: too hot", "epoch 2: too cold: by far", "too hot"):
        session.warn(message)
    assert heard == session.warnings == ["epoch 1: too hot", "epoch 2: too cold: by far", "too hot"]


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_what_a_loss_does_not_touch_stays_where_it_is(optimizer):
    class Once(Linear):
        def _loss(self, batch):
            features = dict(batch.features)
            if batch.epoch.number > 0:
                del features["visual"]
            return super()._loss(replace(batch, features=features))

    def visual(epochs):
        settings = Training(epochs=epochs, batch=8, optimizer=optimizer, momentum=0.9, weight_decay=0.1, select="last")
        return run(settings, learner=Once())[0].state_dict()["layers.visual.1.weight"]

    assert not torch.equal(visual(1), Linear().state_dict()["layers.visual.1.weight"])
    assert torch.equal(visual(1), visual(3))


@pytest.mark.parametrize("wrong", [{"epochs": 0}, {"batch": 0}, {"schedule": "sine"}, {"select": "test"}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match="training"):
        checked_options(Training, OptionValues(**wrong), "training")


def test_every_epoch_logs_the_gradient_norm_of_its_first_batch():
    _, session = run(Training(epochs=2, batch=8))
    assert all(record["gradient_norm"] > 0 for record in session.history)


def test_the_gradient_norm_of_the_log_is_from_before_clipping():
    plain, clipped = (run(Training(epochs=1, batch=8, clip_norm=norm))[1].history[0] for norm in (0, 1e-3))
    assert clipped["gradient_norm"] == plain["gradient_norm"] > 1e-3


def test_a_vanished_gradient_is_told_once_it_is_seen():
    _, session = run(Training(epochs=2, batch=8), learner=Linear(scale=0.0))
    assert any("gradient is zero" in warning for warning in session.warnings)


@pytest.mark.parametrize("base", [Linear, Two])
def test_a_metric_loss_without_active_terms_warns(base):
    class Saturated(base):
        def _loss(self, batch):
            return super()._loss(batch) | {"metric_loss": torch.tensor(1.2), "active": torch.tensor(0.0)}

    _, session = run(Training(epochs=12, batch=8), learner=Saturated())
    assert sum("was active" in warning for warning in session.warnings) == 1


def test_embeddings_that_are_one_point_are_told_by_their_modality():
    class Pointed(Linear):
        def embed(self, features, modality):
            noise = 1e-5 * torch.randn(len(features), 3)  # differs in each epoch
            return 1 + noise if modality == "visual" else super().embed(features, modality)

    _, session = run(Training(epochs=3, batch=8), learner=Pointed())
    (told,) = (warning for warning in session.warnings if "collapsed" in warning)
    assert "the visual embeddings collapsed " in told


def test_a_stored_state_of_another_learner_is_refused_in_one_line():
    _, session = run(session=Recorder())
    wider = {key: torch.zeros(7, 5) if value.ndim == 2 else value for key, value in session.state.tensors.items()}
    check_refused(Recorder(state=Checkpoint(wider, session.state.facts)))


def test_stored_best_weights_of_another_learner_are_refused_in_one_line():
    session = Recorder()
    session.best = lambda: Checkpoint({"unknown": torch.zeros(1)}, {"epoch": 1})
    check_refused(session)


def check_refused(session):
    with pytest.raises(DamagedFileError, match=r"do not fit its config .*; restore the folder of the run") as refused:
        run(session=session)
    assert "\n" not in str(refused.value)
