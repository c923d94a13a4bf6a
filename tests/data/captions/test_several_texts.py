"""Several texts a clip: rows to train on, and rows to ask and rank; against loops, and as a user's session."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Clips
from aadml.data.captions.several_texts import every_text, of_epoch, pair_a_text
from aadml.data.reading import open_data
from aadml.feature_extraction.feature_file.content import Texts

ROWS = (0, 0, 1, 3, 3, 3)


def clips():
    values = np.random.default_rng(0).normal(size=(len(ROWS), 2)).astype(np.float32)
    texts = Texts(values, np.asarray(ROWS))
    first, there = texts.first_of_each(4)
    made = Clips.of(
        None, ids=list("abcd"), audio=np.arange(8.0).reshape(4, 2), text=first, present={"text": there.tolist()}
    )
    return Clips(made.features, made.labels, made.ids, (), present=made.present, texts=texts)


def test_a_pair_a_text_has_each_text_with_its_clip():
    laid, given = pair_a_text(clips()), clips()
    assert laid.ids == ("a", "a", "b", "d", "d", "d", "c")
    assert torch.equal(laid["audio"], given["audio"][[0, 0, 1, 3, 3, 3, 2]])
    assert torch.equal(laid["text"][:6], torch.from_numpy(given.texts.values))
    assert laid.present["text"].tolist() == [True] * 6 + [False]
    assert laid.texts is None


def test_every_text_asks_and_is_ranked_and_everything_else_once():
    laid, given = every_text(clips()), clips()
    assert laid.ids == ("a", "b", "c", "d", "a", "d", "d")
    assert laid.rows("audio").tolist() == [0, 1, 2, 3]
    assert laid.rows("text").tolist() == [0, 1, 3, 4, 5, 6]
    own = {(laid.ids[row], tuple(laid["text"][row].tolist())) for row in laid.rows("text").tolist()}
    assert own == {("abcd"[row], tuple(value.tolist())) for row, value in zip(ROWS, given.texts.values, strict=True)}


def test_a_modality_that_a_clip_lacks_is_lacking_in_each_of_its_rows():
    given = clips()
    present = {**given.present, "audio": torch.tensor([True, False, True, False])}
    laid = every_text(replace(given, present=present))
    assert laid.rows("audio").tolist() == [0, 2]
    assert laid.rows("text").tolist() == [0, 1, 3, 4, 5, 6]


def test_clips_with_one_text_each_stay_as_they_are():
    one = Clips.of(["x", "y"], audio=np.ones((2, 2)), text=np.ones((2, 3)))
    assert every_text(one) is one
    assert pair_a_text(one) is one


@pytest.fixture(scope="module")
def captioned(tmp_path_factory):
    """A feature file of 90 clips, made of an npz, with one to three texts a clip that tell clips apart."""
    folder, random = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    audio = random.normal(size=(90, 6)).astype(np.float32)
    rows = np.repeat(np.arange(90), random.integers(1, 4, 90))
    text = audio[rows] @ random.normal(size=(6, 5)) + 0.3 * random.normal(size=(len(rows), 5))
    split = np.asarray(["train"] * 50 + ["valid"] * 15 + ["test"] * 25)
    np.savez(folder / "f.npz", audio=audio, text=text, text_row=rows, split=split)
    aadml_features = folder / "f.h5"
    from aadml.data.conversion import convert

    convert(folder / "f.npz", aadml_features)
    return aadml_features


def recall_by_loops(model, content, k):
    """Recall of own captions and own sound among the test clips, from the definition: mean over queries."""
    test = content.select(content.rows("test"))
    sound = model.embed(audio=test.features["audio"])
    words = model.embed(text=test.texts.values)
    score = np.asarray(model.similarity(sound, words))
    of_sound, of_words = [], []
    for clip in range(len(test.ids)):
        best = np.argsort(-score[clip])[:k]
        own = np.flatnonzero(test.texts.rows == clip)
        of_sound.append(len(set(best) & set(own)) / len(own))
    for place, clip in enumerate(test.texts.rows):
        of_words.append(clip in np.argsort(-score[:, place])[:k])
    return {"audio-text": np.mean(of_sound), "text-audio": np.mean(of_words)}


@pytest.mark.parametrize(("texts", "rows"), [("first", 50), ("drawn", 50), ("all", None)])
def test_a_training_takes_the_first_text_or_all_and_is_scored_on_all(captioned, tmp_path, texts, rows):
    notes, content = [], open_data(captioned)
    settings = {"texts": texts, "network.hidden": [8], "training.batch": 40}
    model = aadml.fit(captioned, config="pairs", settings=settings, epochs=3, runs=tmp_path, on_note=notes.append)
    train = content.select(content.rows("train"))
    assert any(f"{len(train.texts.rows)} texts of 50 training clips" in note for note in notes)
    assert model.facts.clips == (rows or len(train.texts.rows))
    (run,) = tmp_path.iterdir()
    found, expected = aadml.evaluate(run, metrics=["recall@5"]), recall_by_loops(model, content, 5)
    test = content.select(content.rows("test"))
    for name, value in expected.items():
        own = found.to_json()["directions"][name]
        assert own["recall_at"]["5"] == pytest.approx(value)
        assert own["queries"] == (25 if name == "audio-text" else len(test.texts.rows))


def test_the_page_of_a_run_has_directions_of_galleries_of_two_sizes(captioned, tmp_path):
    aadml.fit(captioned, method="cca", settings={"method.dimension": 4}, runs=tmp_path / "runs")
    (run,) = (tmp_path / "runs").iterdir()
    aadml.report(run, output=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "text to audio" in page
    assert "precision@50" in page  # of the captions; there are 25 sounds


def test_embedding_a_file_keeps_all_texts_and_scores_as_the_model_does(captioned, tmp_path):
    model = aadml.fit(captioned, method="cca", settings={"method.dimension": 4})
    aadml.embed(model, captioned, tmp_path / "e.h5")
    here = aadml.evaluate(model, data=captioned, metrics=["recall@5"])
    there = aadml.evaluate(embeddings=tmp_path / "e.h5", metrics=["recall@5"])
    for name, found in here.to_json()["directions"].items():
        other = there.to_json()["directions"][name]
        assert (other["queries"], other["gallery"]) == (found["queries"], found["gallery"])
        assert other["recall_at"] == pytest.approx(found["recall_at"])
        assert other["map"] == pytest.approx(found["map"])


def test_inspect_and_a_new_division_keep_all_texts(captioned, tmp_path):
    from aadml.data.conversion import convert
    from aadml.data.inspection.inspection import inspect

    content = open_data(captioned)
    assert any(
        f"clips have several texts, {len(content.texts.rows)} in all" in one for one in inspect(captioned).warnings
    )
    again = convert(captioned, tmp_path / "again.h5", split="random:0.6/0.2/0.2")
    assert np.array_equal(again.texts.values, content.texts.values)
    assert again.splits != content.splits


def of_each_clip(train):
    """The text each clip is given, by its name, written as numbers."""
    return dict(zip(train.ids, map(tuple, train["text"].tolist()), strict=True))


def drawn_clips():
    paired = pair_a_text(clips())
    return replace(paired, drawn_by=paired.ids)


def test_an_epoch_draws_one_text_of_each_clip_by_seed_epoch_and_clip_alone():
    paired, given = drawn_clips(), clips()
    own = {name: set() for name in given.ids}
    for row, value in zip(ROWS, given.texts.values, strict=True):
        own[given.ids[row]].add(tuple(value.tolist()))
    seen = {name: Counter() for name in given.ids}
    for epoch in range(600):
        train = of_epoch(paired, seed=5, epoch=epoch)
        assert train.ids == ("a", "b", "d", "c")
        assert torch.equal(train["audio"], given["audio"][[0, 1, 3, 2]])
        for name, value in of_each_clip(train).items():
            seen[name][value] += 1
    for name, values in own.items():
        wanted = values or {(0.0, 0.0)}
        assert set(seen[name]) == wanted
        assert all(abs(count - 600 / len(wanted)) < 90 for count in seen[name].values())  # five deviations at least


def test_what_is_drawn_for_a_clip_does_not_depend_on_the_others():
    paired = drawn_clips()
    fewer = paired.select(torch.tensor([3, 4, 5, 0, 1]))  # clips d and a, their texts in order
    for seed, epoch in itertools.product(range(4), range(20)):
        whole = of_each_clip(of_epoch(paired, seed=seed, epoch=epoch))
        assert of_each_clip(of_epoch(fewer, seed=seed, epoch=epoch)) == {name: whole[name] for name in ("d", "a")}


def test_seeds_draw_differently():
    draws = {tuple(of_epoch(drawn_clips(), seed=s, epoch=0)["text"][:, 0].tolist()) for s in range(20)}
    assert len(draws) > 2


@pytest.mark.parametrize("texts", ["drawn", "all"])
def test_texts_that_are_not_there_are_said_to_change_nothing(texts):
    notes = []
    settings = {"texts": texts, "method.dimension": 2}
    aadml.fit("synthetic:ave", method="random", settings=settings, on_note=notes.append)
    said = f"texts={texts} changes nothing: no training clip has several texts"
    assert notes.count(said) == 1
