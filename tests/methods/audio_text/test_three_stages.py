from dataclasses import replace

import pytest
import torch

from aadml.data.captions.curriculum import partition
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, keywords, schema
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training
from tests.sections import typed

pytest.importorskip("transformers")

TRAINING = Training(epochs=3, batch=6, learning_rate=3e-3)
STAGES = {"shares": (1.0, 1.0, 1.0), "ancillary_epochs": 1}


class Watching(Session):
    """Keep the weights after every epoch."""

    def __init__(self):
        super().__init__()
        self.weights = []

    def save(self, checkpoint):
        self.weights.append({k: v.clone() for k, v in checkpoint.tensors.items() if k.startswith("learner.")})


class Stopping(Session):
    """Stop a training after an epoch, as a kill would, and hand its state to the next."""

    def __init__(self, after, state=None):
        super().__init__()
        self.after, self.state = after, state

    def save(self, checkpoint):
        self.state = checkpoint
        self.state = type(checkpoint)({k: v.clone() for k, v in checkpoint.tensors.items()}, dict(checkpoint.facts))
        if len(self.history) == self.after:
            raise KeyboardInterrupt

    def resume(self):
        return self.state


def made(name, context, training, **options):
    """Build a method of flat options, checked as those of a config are."""
    own = {key: value for key, value in options.items() if key in schema(METHODS[name])}
    checked = checked_options(METHODS[name], OptionValues(**own), "method")
    return METHODS[name](context, training, **keywords(METHODS[name], OptionValues(**typed(**options) | vars(checked))))


def fit(tones, context, options, session):
    torch.manual_seed(context.seed)
    method = made("3cmlf", context, TRAINING, **options)
    method.fit(tones.train, tones.valid, session)
    return method


def moved(before, after, side, part=""):
    keys = [k for k in before if k.startswith(f"learner.towers.{side}.{part}") and before[k].is_floating_point()]
    assert keys
    return any(not torch.equal(before[k], after[k]) for k in keys)


def test_each_stage_trains_its_side_and_leaves_the_other_alone(tones, context, small):
    session = Watching()
    fit(tones, context, small | STAGES, session)
    assert [record["stage"] for record in session.history] == ["easy", "median", "hard"]
    easy, median, hard = session.weights
    assert not moved(easy, median, "audio")
    assert moved(easy, median, "text")
    assert moved(median, hard, "audio")
    assert moved(median, hard, "text")
    torch.manual_seed(context.seed)
    begun = made("3cmlf", context, TRAINING, **small | STAGES).state()
    begun = {f"learner.{k}": v for k, v in begun.items() if "words" not in k}
    easy = {k: v for k, v in easy.items() if k in begun}
    assert not moved(begun, easy, "text"), "the ancillary model is another: training begins with its own weights"
    assert moved(begun, easy, "audio")


def test_batches_are_partitions_that_keep_clips_and_captions_apart(tones, context, small):
    method = fit(tones, context, small | STAGES, Session())
    plan = method.learner.curriculum
    for batches in (plan.easy, plan.hard):
        assert batches.shape == (10, 6)
        assert len(batches.unique()) == 60
    labels, texts = tones.train.labels, tones.train["text"].texts
    for rows in plan.hard:
        assert len(set(labels[rows].tolist())) == 6
        assert len({texts[i] for i in rows.tolist()}) == 6


def test_without_mining_all_batches_are_shuffled_and_there_is_no_ancillary_model(tones, context, small):
    session = Session()
    method = fit(tones, context, small | STAGES | {"mining": False}, session)
    assert [record["stage"] for record in session.history] == ["easy", "median", "hard"]
    assert not len(method.learner.curriculum.hard)


def test_a_run_may_end_with_an_earlier_stage(tones, context, small):
    session = Session()
    fit(tones, context, small | STAGES | {"until": "median", "ancillary_epochs": 0}, session)
    assert [record["stage"] for record in session.history] == ["easy", "median"]


@pytest.mark.filterwarnings("ignore:.*left out")
def test_a_pair_whose_sound_breaks_costs_nothing_in_any_stage(tones, context, small, tmp_path):
    broken = tmp_path / "broken.wav"
    broken.write_bytes(bytes(range(256)) * 8)
    sound = tones.train["audio"]
    paths = (str(broken), *sound.paths[1:])
    with_broken = replace(tones.train, features={**tones.train.features, "audio": replace(sound, paths=paths)})
    without = with_broken.select((with_broken.labels != 0).nonzero()[:, 0])
    method = made("3cmlf", context, TRAINING, **small | STAGES | {"mining": False})
    learner, captions = method.learner, tones.train["text"]
    learner.learn_words(captions)
    for stage in ("easy", "median", "hard"):
        losses = []
        for train, rows in ((with_broken, torch.arange(8)), (without, torch.arange(6))):
            laid, epoch = learner.prepared(train), Epoch(stage, 0, 1)
            learner.eval()
            learner.before_epoch(laid, epoch)
            learner.train()
            features = {side: laid[side].batch(rows) for side in laid.modalities}
            batch = Batch(features, train.labels[rows], rows, torch.Generator().manual_seed(0), epoch)
            losses.append(learner.players()["all"].loss(batch)["loss"])
        torch.testing.assert_close(*losses)


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2])
def test_a_stopped_training_goes_on_to_the_same_weights(tones, context, small, after):
    options = small | STAGES
    whole = fit(tones, context, options, Session()).state()
    stopped = Stopping(after)
    with pytest.raises(KeyboardInterrupt):
        fit(tones, context, options, stopped)
    resumed = Stopping(99, stopped.state)
    resumed._best = stopped._best
    again = fit(tones, context, options, resumed).state()
    for key, value in whole.items():
        assert torch.equal(value, again[key]), key


@pytest.mark.slow
def test_a_trained_state_is_loaded_with_its_batches(tones, context, small):
    method = fit(tones, context, small | STAGES, Session())
    fresh = made("3cmlf", context, replace(TRAINING, epochs=1), **small | STAGES)
    fresh.load(method.state())
    assert torch.equal(fresh.embed(tones.test["audio"], "audio"), method.embed(tones.test["audio"], "audio"))


@pytest.mark.slow
def test_batches_are_made_by_the_plain_method_trained_before(tones, context, small):
    method = made("3cmlf", context, TRAINING, **small | STAGES | {"ancillary_batch": 12, "ancillary_epochs": 2})
    prior = method.prior()
    assert (prior.method, prior.training.epochs, prior.training.batch) == ("audio-text", 2, 12)
    torch.manual_seed(context.seed)
    plain = made("audio-text", context, replace(TRAINING, epochs=2, batch=12), **small)
    plain.fit(tones.train, tones.valid)
    audio, text = (plain.embed(tones.train[side], side) for side in ("audio", "text"))
    pairs = torch.nn.functional.normalize(audio + text, dim=1)
    method.fit(tones.train, tones.valid)
    codes = [tones.train.labels, torch.tensor([tones.train["text"].texts.index(t) for t in tones.train["text"].texts])]
    expected = partition(pairs, TRAINING.batch, hard=True, codes=codes, seed=context.seed)
    assert torch.equal(method.learner.curriculum.hard, expected)


@pytest.mark.slow
def test_a_trained_ancillary_model_is_taken_as_it_is_and_serves_one_training(tones, context, small):
    torch.manual_seed(context.seed)
    plain = made("audio-text", context, replace(TRAINING, epochs=1), **small)
    plain.fit(tones.train, tones.valid)
    states = []
    for prior in (None, plain):
        torch.manual_seed(context.seed)
        method = made("3cmlf", context, TRAINING, **small | STAGES)
        if prior:
            method.take_prior(prior)
        method.fit(tones.train, tones.valid)
        states.append(method.state())
        assert method.learner.curriculum.described is None
    assert all(torch.equal(value, states[1][key]) for key, value in states[0].items())


@pytest.mark.parametrize("options", [{"mining": False}, {"ancillary_epochs": 0}])
def test_no_other_model_is_needed_where_no_batches_are_made_or_from_the_network_as_it_begins(context, small, options):
    assert made("3cmlf", context, TRAINING, **small | STAGES | options).prior() is None
    with pytest.raises(InputError, match="needs no other model"):
        METHODS["cca"](Context({"audio": 2, "visual": 2}, 2), TRAINING).take_prior(None)
