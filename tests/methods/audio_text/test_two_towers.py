from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.data.sources.texts import Captions
from aadml.data.sources.waveforms import Waveforms
from aadml.feature_extraction.ground.checksummed_json import FileSum, seal
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues, keywords, schema
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.session import Checkpoint, Session
from aadml.methods.training.settings import Training
from aadml.model.packing import pack_tensors
from aadml.retrieval.evaluation import evaluate
from tests.sections import typed

pytest.importorskip("transformers")

TRAINING = Training(epochs=2, batch=12, learning_rate=3e-3, clip_norm=2.0, drop_last=True)


def made(name, context, training, **options):
    """Build a method of flat options, checked as those of a config are."""
    own = {key: value for key, value in options.items() if key in schema(METHODS[name])}
    checked = checked_options(METHODS[name], OptionValues(**own), "method")
    return METHODS[name](context, training, **keywords(METHODS[name], OptionValues(**typed(**options) | vars(checked))))


def fitted(tones, context, options, training=TRAINING, name="audio-text", session=None):
    torch.manual_seed(context.seed)
    method = made(name, context, training, **options)
    method.fit(tones.train, tones.valid, session or Session())
    return method


@pytest.mark.slow
def test_it_learns_which_caption_goes_with_which_sound(tones, context, small):
    session = Session()
    training = replace(TRAINING, epochs=12, batch=20)
    method = fitted(tones, context, small, training, session=session)
    found = evaluate(method.embed_clips(tones.test))
    assert found["text-audio"].map > 1.5 * float(found["text-audio"].chance.mean())
    assert session.history[-1]["loss"] < session.history[0]["loss"]
    assert {"valid recall_sum", "valid recall_sum audio-text", "valid map text-audio"} <= session.history[0].keys()


def test_sound_is_ranked_once_a_clip(tones, context, small):
    embeddings = fitted(tones, context, small).embed_clips(tones.test)
    assert embeddings.once == ("audio",)
    found = evaluate(embeddings)
    assert (found["text-audio"].gallery, len(found["text-audio"].ids)) == (10, 20)
    assert (found["audio-text"].gallery, len(found["audio-text"].ids)) == (20, 10)


def test_single_captions_leave_no_vectors_in_memory(tones, context, small):
    learner = made("audio-text", context, TRAINING, **small).learner
    learner.check_clips(tones.train)
    learner.begun(tones.train, tones.valid)
    for number in range(5):
        learner.embed_all(Captions((f"tone {number}",)), "text")
    assert len(learner._cache) <= 1


def test_the_sounds_of_a_source_are_embedded_once(tones, context, small, monkeypatch):
    method, passes = fitted(tones, context, small), []
    monkeypatch.setattr(type(method.learner), "_described", _counted(type(method.learner)._described, passes))
    first, again = (method.learner.embed_all(tones.test["audio"], "audio") for _ in range(2))
    assert (torch.equal(first, again), passes) == (True, ["audio"])


def _counted(described, passes):
    def counted(learner, features, modality):
        passes.append(modality)
        return described(learner, features, modality)

    return counted


@pytest.mark.parametrize("metric", ["map", "hit-rate@1", "recall@5"])
def test_a_chosen_criterion_is_what_an_evaluation_of_the_validation_clips_says(tones, context, small, metric):
    session = Session()
    training = replace(TRAINING, epochs=1, criterion=metric)
    method = fitted(tones, context, small, training, session=session)
    found = evaluate(method.embed_clips(tones.valid), extra=(metric,)).record()
    expected = [found.figure(metric, direction) for direction in ("audio-text", "text-audio")]
    assert session.history[0][f"valid {metric}"] == pytest.approx(sum(expected) / 2)


def test_the_map_of_training_clips_with_frozen_networks_ranks_each_sound_once(tones, context, small):
    session = Session()
    training = replace(TRAINING, epochs=1, train_map=1)
    method = fitted(tones, context, small | {"freeze": "both"}, training, session=session)
    found = evaluate(method.embed_clips(tones.train))
    assert session.history[0]["train map text-audio"] == pytest.approx(found["text-audio"].map)
    assert session.history[0]["train map audio-text"] == pytest.approx(found["audio-text"].map)


def with_broken(clips, files, folder):
    """Put garbage in the place of some of the sounds of clips."""
    broken = folder / "broken.wav"
    broken.write_bytes(bytes(range(256)) * 8)
    sound = clips["audio"]
    paths = tuple(str(broken) if number in files else path for number, path in enumerate(sound.paths))
    return replace(clips, features={**clips.features, "audio": replace(sound, paths=paths, failures={}, known={})})


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("name", ["audio-text", "xie"])
@pytest.mark.parametrize("freeze", ["none", "both"])
def test_a_batch_of_nothing_but_broken_sound_is_passed_over(tones, context, small, tmp_path, name, freeze):
    if name == "xie":
        small = {"channels": 4, "text_dimension": 16}
    options = small | ({"freeze": freeze} if name == "audio-text" else {})
    torch.manual_seed(context.seed)
    method, session = made(name, context, replace(TRAINING, epochs=1, batch=2), **options), Session()
    method.fit(with_broken(tones.train, range(15), tmp_path), tones.valid, session)
    assert all(np.isfinite(value) for value in session.history[0].values() if isinstance(value, float))
    assert len(method.embed_clips(with_broken(tones.test, range(9), tmp_path))) == 2
    for part in (tones.valid, tones.test):
        with pytest.raises(InputError, match="no sound can be decoded"):
            method.embed_clips(with_broken(part, range(10), tmp_path))


def test_equal_seeds_give_equal_weights_and_a_loaded_state_embeds_alike(tones, context, small):
    one, other = (fitted(tones, context, small) for _ in range(2))
    assert all(torch.equal(value, other.state()[key]) for key, value in one.state().items())
    fresh = made("audio-text", Context(context.dimensions, 30, seed=9), TRAINING, **small)
    fresh.load(one.state())
    for modality in ("audio", "text"):
        expected = one.embed(tones.test[modality], modality)
        assert torch.equal(fresh.embed(tones.test[modality], modality), expected)


def test_an_item_is_embedded_as_if_it_were_alone(tones, context, small):
    method = fitted(tones, context, small)
    for modality in ("audio", "text"):
        source = tones.test[modality]
        together = method.embed(source, modality)
        order = torch.randperm(len(source), generator=torch.Generator().manual_seed(0))
        torch.testing.assert_close(method.embed(source.select(order), modality), together[order], rtol=1e-4, atol=1e-5)
        alone = torch.cat([method.embed(source.select(torch.tensor([i])), modality) for i in (0, 7, 13)])
        torch.testing.assert_close(alone, together[[0, 7, 13]], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("modality", ["audio", "text"])
def test_of_a_head_the_hidden_layer_alone_is_rectified(context, small, modality):
    torch.manual_seed(0)
    head = made("audio-text", context, TRAINING, **small).learner.tower(modality).head
    first, second = (module for module in head if isinstance(module, torch.nn.Linear))
    vectors = torch.randn(9, first.in_features)
    expected = second(first(vectors).clamp_min(0))
    assert (expected < 0).any()
    torch.testing.assert_close(head.eval()(vectors), expected)


@pytest.mark.parametrize("freeze", ["audio", "text", "both"])
def test_a_frozen_network_stands_still_while_heads_learn(tones, context, small, freeze):
    torch.manual_seed(context.seed)
    before = made("audio-text", context, TRAINING, **small | {"freeze": freeze}).state()
    after = fitted(tones, context, small | {"freeze": freeze}).state()
    for key, value in after.items():
        side = key.split(".")[1] if key.startswith("towers") else ""
        if ".network." in key and freeze in (side, "both") and not key.endswith(".words"):
            assert torch.equal(value, before[key]), key
    assert any(not torch.equal(after[k], before[k]) for k in after if ".head." in k)


def test_keeping_the_vectors_of_a_frozen_network_changes_nothing(tones, context, small):
    kept = fitted(tones, context, small | {"freeze": "both"})
    torch.manual_seed(context.seed)
    plain = made("audio-text", context, TRAINING, **small | {"freeze": "both"})
    plain.learner.settled = lambda clips: clips
    plain.fit(tones.train, tones.valid, Session())
    for key, value in kept.state().items():
        torch.testing.assert_close(value, plain.state()[key], rtol=1e-3, atol=1e-5, msg=key)


def test_frozen_statistics_move_only_in_the_literal_mode(tones, context, small):
    key = "towers.audio.network.network.bn0.running_mean"
    still = fitted(tones, context, small | {"freeze": "both"}).state()[key]
    moved = fitted(tones, context, small | {"freeze": "both", "frozen_mode": "train"}).state()[key]
    assert torch.equal(still, torch.zeros(64))
    assert not torch.equal(moved, still)


@pytest.mark.parametrize("loss", [{"name": "triplet", "score": "cosine", "margin": 0.2}, {"name": "triplet-weighted"}])
@pytest.mark.parametrize("text", ["bert", "word2vec"])
def test_every_objective_trains_with_both_kinds_of_text(tones, context, small, loss, text):
    method = fitted(tones, context, small | {"loss": loss, "text": text}, replace(TRAINING, epochs=1))
    assert torch.isfinite(method.embed(tones.test["text"], "text")).all()


def test_a_sound_that_breaks_costs_its_clip_while_training(tones, context, small, tmp_path):
    (tmp_path / "broken.wav").write_bytes(b"no sound at all" * 20)
    sounds = tones.train["audio"]
    broken = Waveforms((str(tmp_path / "broken.wav"), *sounds.paths[1:]), sounds.items)
    train = replace(tones.train, features=dict(tones.train.features) | {"audio": broken})
    torch.manual_seed(context.seed)
    for options in (small, small | {"freeze": "both"}):
        method = made("audio-text", context, TRAINING, **options)
        broken.failures.clear()
        with pytest.warns(UserWarning, match=r"broken\.wav: the file was left out \(not-a-media-file"):
            method.fit(train, tones.valid, Session())
        assert torch.isfinite(method.embed(tones.test["audio"], "audio")).all()
    with pytest.raises(InputError, match=r"the sound of .*broken\.wav.* cannot be decoded"):
        method.embed(broken, "audio")


def test_frozen_towers_train_without_validation_clips(tones, context, small):
    session, none = Session(), tones.valid.select(torch.arange(0))
    made("audio-text", context, TRAINING, **small | {"freeze": "both"}).fit(tones.train, none, session)
    assert session.history


def test_a_sound_that_breaks_costs_its_clips_alone_where_clips_are_scored(tones, context, small, tmp_path):
    (tmp_path / "broken.wav").write_bytes(b"no sound at all" * 20)
    sounds = tones.valid["audio"]
    broken = Waveforms((str(tmp_path / "broken.wav"), *sounds.paths[1:]), sounds.items)
    valid = replace(tones.valid, features=dict(tones.valid.features) | {"audio": broken})
    lost = (sounds.items == 0).sum()
    assert 0 < lost < len(valid)
    method = made("audio-text", context, TRAINING, **small)
    with pytest.warns(UserWarning, match=r"broken\.wav: the file was left out \(not-a-media-file"):
        method.fit(tones.train, valid, Session())
    found = method.embed_clips(valid)
    kept = (sounds.items != 0).nonzero()[:, 0]
    whole = method.embed_clips(tones.valid)
    assert len(found) == len(valid) - lost
    assert found.ids == tuple(valid.ids[i] for i in kept.tolist())
    assert torch.equal(found.labels, valid.labels[kept])
    torch.testing.assert_close(found.vectors["audio"], whole.vectors["audio"][kept])


def test_word_vectors_are_read_from_a_file_and_kept_with_the_weights(tones, context, small, tmp_path):
    words = ["a", "tone", "low", "high", "middle", "very", "the", "number", "is"]
    draws = np.random.default_rng(1).standard_normal((len(words), 64))
    lines = [f"{word} {' '.join(f'{x:.5f}' for x in row)}" for word, row in zip(words, draws, strict=True)]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n")
    options = small | {"text": "word2vec", "text_weights": str(tmp_path / "vectors.txt"), "text_dimension": 64}
    method = fitted(tones, context, options)
    source = Captions(("a low tone", "nothing known here"))
    again = made("audio-text", context, TRAINING, **options)
    again.load(method.state())
    assert torch.equal(again.embed(source, "text"), method.embed(source, "text"))
    expected = torch.tensor(draws[[0, 2, 1]].astype(np.float32)).mean(0)
    tower = method.learner.tower("text")
    batch = tower.network.tokens(source).batch(torch.tensor([0]))
    torch.testing.assert_close(tower.network(batch)[0], expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"audio": "cnn12"}, "one of cnn10, cnn14, resnet38"),
        ({"text": "gpt"}, "one of bert, word2vec"),
        ({"freeze": "all"}, "one of none, audio, text, both"),
        ({"recall": "sum"}, "one of text-audio, both"),
        ({"audio_weights": "absent.pth"}, "Zenodo record 3987831"),
        ({"text_weights": "absent"}, "hf download"),
    ],
)
def test_what_cannot_be_built_is_said(context, small, options, message):
    with pytest.raises(InputError, match=message):
        made("audio-text", context, TRAINING, **small | options)


def test_data_without_captions_are_refused(tones, context, small):
    silent = replace(tones.train, features={"audio": tones.train["audio"]})
    with pytest.raises(InputError, match="the data have no text"):
        made("audio-text", context, TRAINING, **small).fit(silent, silent, Session())


@pytest.mark.parametrize("name", ["audio-text", "3cmlf", "xie"])
@pytest.mark.parametrize("side", ["audio", "text"])
def test_features_instead_of_sound_or_captions_are_refused_before_training(tones, context, small, name, side):
    features = dict(tones.train.features) | {side: torch.randn(len(tones.train), 8)}
    vectors = replace(tones.train, features=features)
    method = made(name, context, TRAINING, **(small if name != "xie" else {}))
    message = r"contain features, but this method trains on sound and captions; .* \(--config pairs\)$"
    with pytest.raises(InputError, match=message):
        method.check_clips(vectors)
    for train, valid in ((vectors, tones.valid), (tones.train, vectors)):
        with pytest.raises(InputError, match=message):
            method.fit(train, valid, Session())


def written(method, folder, **arguments):
    """Write the weights of a method as those of a run, with the arguments of the method."""
    weights = pack_tensors(Checkpoint({f"method.{k}": v for k, v in method.state().items()}))
    (folder / "model.safetensors").write_bytes(weights)
    facts = {"method": {"arguments": arguments}}
    (folder / "model.json").write_bytes(seal({"weights": vars(FileSum.of(weights)), "facts": facts}))


@pytest.mark.parametrize("source", ["untrained", "vectors.txt"])
def test_training_on_other_captions_may_begin_with_weights_beside_word_vectors(tones, context, small, tmp_path, source):
    rows = np.eye(16, dtype=int)
    lines = [f"{word} {' '.join(map(str, rows[n]))}" for n, word in enumerate(("tone", "very", "low", "number", "is"))]
    (tmp_path / "vectors.txt").write_text("\n".join(["5 16", *lines]) + "\n")
    is_file = source != "untrained"
    options = small | {"text": "word2vec", "text_weights": str(tmp_path / source) if is_file else source}
    first = fitted(replace(tones, train=tones.train[::2]), context, options)
    written(first, tmp_path, text_weights=options["text_weights"])
    still = replace(TRAINING, epochs=1, learning_rate=1e-12)
    again = fitted(tones, context, options | {"start": str(tmp_path)}, still)
    known = Captions(("very low tone",))
    torch.testing.assert_close(again.embed(known, "text"), first.embed(known, "text"), rtol=1e-4, atol=1e-5)
    first_words, words = (
        bytes(method.learner.network_of("text").words.tolist()).decode().split("\n") for method in (first, again)
    )
    assert "number" not in first_words
    assert ("number" in words) is is_file  # words of a file are those of the new captions


def test_training_does_not_begin_with_a_run_of_other_word_vectors(tones, context, small, tmp_path):
    sources = {"untrained": "untrained"}
    for name, numbers in {"a": np.eye(5, 16), "b": 2 * np.eye(5, 16), "short": np.eye(5, 8)}.items():
        words = zip(("tone", "very", "low", "number", "is"), numbers.tolist(), strict=True)
        (tmp_path / name).write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in words))
        sources[name] = str(tmp_path / name)
    options = small | {"text": "word2vec"}
    for before, after in (("untrained", "a"), ("a", "untrained"), ("a", "b")):
        written(
            fitted(tones, context, options | {"text_weights": sources[before]}), tmp_path, text_weights=sources[before]
        )
        with pytest.raises(
            InputError, match=r"has other word vectors than method\.text_weights; pass a run of the same"
        ):
            fitted(tones, context, options | {"text_weights": sources[after], "start": str(tmp_path)})
    with pytest.raises(InputError, match=r"'towers\.text\.network\.vectors' in .* has another size"):
        fitted(
            tones, context, options | {"text_weights": sources["short"], "text_dimension": 8, "start": str(tmp_path)}
        )


def test_training_may_begin_with_the_weights_of_a_run(tones, context, small, tmp_path):
    first = fitted(tones, context, small)
    written(first, tmp_path)
    still = replace(TRAINING, epochs=1, learning_rate=1e-12)
    again = fitted(tones, Context(context.dimensions, 30, seed=8), small | {"start": str(tmp_path)}, still)
    expected = first.embed(tones.test["text"], "text")
    torch.testing.assert_close(again.embed(tones.test["text"], "text"), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match="is missing or has another size"):
        fitted(tones, context, small | {"start": str(tmp_path), "dimension": 8})
    with pytest.raises(InputError, match="pass the folder of a trained run or model"):
        fitted(tones, context, small | {"start": str(tmp_path / "absent")})
