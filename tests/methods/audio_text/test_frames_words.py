from dataclasses import replace

import pytest
import torch

from aadml.comparison.frame_word import relevance
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, keywords, schema
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.audio_text.negative_sampling import STRATEGIES
from aadml.methods.training.learner import Batch, Epoch, Validation
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training
from aadml.objective.left_out import rebuilding
from aadml.retrieval.evaluation import evaluate
from tests.sections import typed

TRAINING = Training(epochs=1, batch=12, learning_rate=1e-3, drop_last=True)
SMALL = {"channels": 8, "text_dimension": 24, "dropout": 0.0}


def made(name, context, training, **options):
    """Build a method of flat options, checked as those of a config are."""
    own = {key: value for key, value in options.items() if key in schema(METHODS[name])}
    checked = checked_options(METHODS[name], OptionValues(**own), "method")
    return METHODS[name](context, training, **keywords(METHODS[name], OptionValues(**typed(**options) | vars(checked))))


def fit(tones, context, session=None, training=TRAINING, **options):
    torch.manual_seed(context.seed)
    method = made("xie", context, training, **SMALL | options)
    method.fit(tones.train, tones.valid, session or Session())
    return method


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_trains_and_is_scored_by_relevance(tones, context, strategy):
    session = Session()
    method = fit(tones, context, session, strategy=strategy)
    record = session.history[0]
    assert {"own relevance", "relevance spread", "valid loss", "valid score"} <= record.keys()
    assert record["loss"] > 0
    found = evaluate(method.embed_clips(tones.test))
    assert found.similarity == "frame-word"
    assert (found["text-audio"].gallery, found["audio-text"].gallery) == (10, 20)


@pytest.mark.slow
def test_it_learns_on_tones(tones, context):
    training = replace(TRAINING, epochs=10, learning_rate=3e-3)
    found = evaluate(fit(tones, context, training=training, score_rate="pooled").embed_clips(tones.test))
    assert found["text-audio"].map > 1.3 * float(found["text-audio"].chance.mean())


@pytest.mark.parametrize("rate", ["native", "pooled"])
def test_scores_are_the_relevance_of_frames_and_words(tones, context, rate):
    method = made("xie", context, TRAINING, **SMALL | {"score_rate": rate})
    learner = method.learner
    learner.learn_words(tones.train["text"])
    laid = learner.prepared(tones.test)
    learner.eval()
    with torch.no_grad():
        frames, lengths = learner._sequences(laid["audio"].batch(torch.arange(0, 20, 2)), "audio")
        words, word_lengths = learner._sequences(laid["text"].batch(torch.arange(20)), "text")
        expected = relevance(frames, lengths, words, word_lengths)
    from aadml.retrieval.scores import score_source

    audio, text = method.embed(tones.test["audio"], "audio")[::2], method.embed(tones.test["text"], "text")
    forth = score_source(audio, text, "frame-word").block(0, 10)
    back = score_source(text, audio, "frame-word").block(0, 20)
    torch.testing.assert_close(torch.from_numpy(forth), expected)
    torch.testing.assert_close(torch.from_numpy(back), expected.T)


def test_a_sound_is_held_once_and_scored_as_if_it_stood_beside_each_of_its_captions(tones, context):
    method = fit(tones, context)
    shared = method.embed_clips(tones.test)
    assert (len(shared), len(shared.vectors["audio"]), len(shared.vectors["text"])) == (20, 10, 20)
    assert torch.equal(shared.matrix("audio"), method.embed(tones.test["audio"], "audio"))
    repeated = replace(shared, vectors={m: shared.matrix(m) for m in ("audio", "text")}, rows={})
    one, other = evaluate(shared), evaluate(repeated)
    assert one.record(queries=True).to_json() == other.record(queries=True).to_json()


def test_captions_are_anchors_of_sounds_as_sounds_are_of_captions(tones, context):
    """The loss of a batch as loops: each side against the other side's others, in the score of the very two."""
    torch.manual_seed(0)
    loss = {"name": "ranking", "margin": 0.0, "reduction": "mean", "combine": "sum"}
    learner = made("xie", context, TRAINING, **SMALL, strategy="full-mini-batch", loss=loss).learner
    learner.learn_words(tones.train["text"])
    learner.eval()
    rows = torch.arange(0, 20, 4)
    laid = learner.prepared(tones.train)
    batch = Batch(
        {m: laid[m].batch(rows) for m in ("audio", "text")}, tones.train.labels[rows], rows, torch.Generator(),
        Epoch("train", 0, 1),
    )  # fmt: skip
    with torch.no_grad():
        frames, lengths = learner._sequences(batch.features["audio"], "audio")
        words, word_lengths = learner._sequences(batch.features["text"], "text")
        scores = relevance(frames, lengths, words, word_lengths).tolist()
        found = learner.players()["audio"].loss(batch)["loss"]
    sounds, captions = (
        sum(max(0.0, table[i][j] - table[i][i]) for i in range(5) for j in range(5) if j != i) / 4 / 5
        for table in (scores, list(zip(*scores, strict=True)))
    )
    assert abs(sounds - captions) > 1e-4, "a batch that cannot tell the two sides apart shows nothing"
    assert float(found) == pytest.approx(sounds + captions, rel=1e-4)


def test_a_loaded_state_embeds_alike_and_equal_seeds_give_equal_weights(tones, context):
    one, other = fit(tones, context), fit(tones, context)
    assert all(torch.equal(value, other.state()[key]) for key, value in one.state().items())
    fresh = made("xie", context, TRAINING, **SMALL)
    fresh.load(one.state())
    for modality in ("audio", "text"):
        assert torch.equal(fresh.embed(tones.test[modality], modality), one.embed(tones.test[modality], modality))


def test_an_item_is_embedded_as_if_it_were_alone(tones, context):
    method = fit(tones, context)
    together = method.embed(tones.test["audio"], "audio")
    alone = method.embed(tones.test["audio"].select(torch.tensor([4])), "audio")
    torch.testing.assert_close(alone[0], together[4, : alone.shape[1]])
    assert not together[4, alone.shape[1] :].any()


@pytest.mark.parametrize("mode", [True, False])
def test_embedding_leaves_the_networks_in_the_mode_they_were_in(tones, context, mode):
    learner = made("xie", context, TRAINING, **SMALL).learner.train(mode)
    learner.embed_all(tones.test["audio"], "audio")
    assert all(module.training is mode for module in learner.modules())


@pytest.mark.slow
def test_a_collapse_is_reported_while_training(tones, context):
    torch.manual_seed(context.seed)
    method = made("xie", context, TRAINING, **SMALL)
    session = Session()
    with torch.no_grad():
        for parameter in method.learner.audio.recurrent.parameters():
            parameter.zero_()
            parameter.requires_grad_(False)
    method.fit(tones.train, tones.valid, session)
    assert sum("the frames have collapsed" in warning for warning in session.warnings) == 1
    healthy = Session()
    fit(tones, context, healthy)
    assert not healthy.warnings


def test_validation_draws_are_the_same_each_time(tones, context):
    method = fit(tones, context, strategy="random")
    valid = Validation(method.learner, method.learner.prepared(tones.valid))
    assert method.learner.validate(valid) == method.learner.validate(valid)


def test_the_epoch_may_be_chosen_by_map(tones, context):
    session = Session()
    fit(tones, context, session, choose="map")
    record = session.history[0]
    expected = (record["valid map audio-text"] + record["valid map text-audio"]) / 2
    assert record["valid score"] == pytest.approx(expected)


@pytest.mark.parametrize("options", [{"strategy": "hard"}, {"score_rate": "half"}, {"choose": "luck"}])
def test_unknown_choices_are_refused(context, options):
    with pytest.raises(InputError, match=f"method.{next(iter(options))} is .* one of"):
        made("xie", context, TRAINING, **SMALL | options)


@pytest.mark.parametrize("direction", ["both-both", "audio-audio", "both-text"])
def test_only_sounds_and_captions_are_compared_with_each_other(context, direction):
    with pytest.raises(InputError, match=f"directions are {direction}, .* choose from audio-text, text-audio"):
        made("xie", context, TRAINING, **SMALL | {"directions": [direction]})
    with rebuilding():
        made("xie", context, TRAINING, **SMALL | {"directions": [direction]})
