"""A caption drawn for each clip and epoch: a stopped training ends in the same bytes, from features and from media."""

import csv
import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from trainings import contents, differences

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.data.conversion import convert
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks
from aadml.runs import protocol_scores
from aadml.runs.fit import resume_run
from aadml.runs.loading import load_run
from aadml.runs.prepare import prepare
from aadml.runs.train import train_into
from tests.feature_extraction.hub import tiny

SMALL = {"texts": "drawn", "network.hidden": [8], "training.batch": 12, "training.criterion": "auto"}


class StoppedError(Exception):
    """Ends a training after its second epoch; what is in memory is lost."""


def stop(record):
    if record["epoch"] == 2:
        raise StoppedError


def stopped_and_whole(config, place):
    """Train once to the end, and once stopped in the second epoch, before its state is saved, and resumed."""
    whole, folder = place / "whole", place / "stopped"
    with pytest.raises(StoppedError):
        train_into(config, folder, callbacks=Callbacks(on_epoch=stop))
    train_into(config, whole)
    resume_run(folder)
    return whole, folder


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Sixty clips with one to four texts each."""
    folder, random = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    audio = random.normal(size=(60, 6)).astype(np.float32)
    rows = np.repeat(np.arange(60), random.integers(1, 5, 60))
    text = audio[rows] @ random.normal(size=(6, 5)) + random.normal(size=(len(rows), 5))
    split = np.asarray(["train"] * 40 + ["valid"] * 10 + ["test"] * 10)
    np.savez(folder / "f.npz", audio=audio, text=text, text_row=rows, split=split)
    convert(folder / "f.npz", folder / "f.h5")
    return folder / "f.h5"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param(
            {
                "neighbors.positives": "own",
                "neighbors.k": 3,
                "neighbors.space": "input",
                "neighbors.candidates": "bank",
            },
            marks=pytest.mark.slow,
        ),
    ],
    ids=["pairs", "neighbors"],
)
def test_a_stopped_training_on_drawn_texts_ends_in_the_same_bytes(features, tmp_path, settings):
    config = assemble(data=str(features), config="pairs", settings=SMALL | settings, **{"training.epochs": 3})
    whole, folder = stopped_and_whole(config, tmp_path)
    assert differences(contents(whole), contents(folder)) == []


def test_drawn_texts_train_otherwise_than_first_ones_and_than_those_of_another_seed(features):
    found = {}
    for name, more in {"drawn": {}, "first": {"texts": "first"}, "other": {"seed": 1}}.items():
        model = aadml.fit(features, config="pairs", settings=SMALL | more, epochs=2)
        found[name] = model.embed(text=np.eye(5, dtype=np.float32)).tobytes()
    assert len(set(found.values())) == 3


def test_a_session_says_what_is_drawn_and_scores_every_text(features, tmp_path):
    from aadml.cli import cli

    runner, settings = CliRunner(), [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    trained = runner.invoke(cli, ["train", "--data", str(features), "--config", "pairs", "--epochs", "1",
                                  "--runs", str(tmp_path), *settings])  # fmt: skip
    assert trained.exit_code == 0, trained.stderr
    assert "texts of 40 training clips: each epoch trains on one text per clip, drawn by the seed" in trained.stderr
    found = json.loads(runner.invoke(cli, ["evaluate", trained.stdout.splitlines()[-1], "--json"]).stdout)
    assert found["directions"]["audio-text"]["queries"] == 10
    assert found["directions"]["audio-text"]["gallery"] == found["directions"]["text-audio"]["queries"] > 10


@pytest.mark.parametrize("texts", ["drawn", "all"])
def test_training_clips_are_scored_once_for_all_their_texts(features, tmp_path, texts):
    model = aadml.fit(features, config="pairs", settings=SMALL | {"texts": texts}, epochs=1, runs=tmp_path)
    of_run, of_data = (aadml.evaluate(model.folder, data=data, split="train") for data in (None, features))
    for found, expected in zip(of_run.directions, of_data.directions, strict=True):
        assert (len(found.ids), found.gallery, len(found.units)) == (len(expected.ids), expected.gallery, 40)
        assert found.map == pytest.approx(expected.map)
    audited = next(f for f in aadml.audit(model.folder, split="train") if f.check == "embeddings")
    assert audited.evidence.startswith(f"MAP by cosine {aadml.evaluate(model.folder, split='train').map_mean:.5f};")


def test_training_is_repeated_on_all_texts_if_the_training_clips_are_scored(features, tmp_path, monkeypatch):
    model = aadml.fit(features, config="pairs", settings=SMALL | {"texts": "all"}, epochs=1, runs=tmp_path)
    run, trained = load_run(model.folder), []
    monkeypatch.setattr(protocol_scores, "prepare", lambda c, splits: trained.append(splits) or prepare(c, splits))
    aadml.evaluate(model.folder, split="train", protocol="legacy:test-selection")
    (splits,) = trained
    assert len(splits.train.whole) == len(splits.train) == len(run.splits.train)
    assert len(splits.valid.whole) == 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "cca"},
            r"texts is 'drawn' \(the texts change in each epoch\), but cca does not train in epochs; "
            "set texts to first or all",
        ),
        ({"method": "clip", "settings": {"texts": "drwan"}}, 'texts is "drwan"; pass one of first, drawn, all'),
        (
            {"config": "pairs", "settings": {"neighbors.positives": "own", "neighbors.space": "dcca"}},
            "but pairs determines neighbors by a teacher",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_a_line(features, options, message):
    settings = {"texts": "drawn"} | options.get("settings", {})
    with pytest.raises(InputError, match=message) as caught:
        aadml.fit(features, **options | {"settings": settings})
    assert "\n" not in str(caught.value)


@pytest.fixture
def captioned(manifest, tmp_path, monkeypatch):
    """The tones without classes, every third of them with a third caption, and one with none."""
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    with manifest.open(newline="") as file:
        _, *rows = list(csv.reader(file))
    place = manifest.parent / "several.csv"
    with place.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["id", "media", "split", "caption_1", "caption_2", "caption_3"])
        for number, (name, media, _, split, *captions) in enumerate(rows):
            captions = ["", ""] if number == 4 else captions
            table.writerow([name, media, split, *captions, f"Low {number}" if number % 3 == 0 else ""])
    return place


@pytest.mark.slow
@pytest.mark.parametrize("trained", [["text"], []], ids=["text trained", "frozen"])
def test_networks_on_a_manifest_read_all_captions_and_a_stopped_training_ends_in_the_same_bytes(
    captioned, tmp_path, trained
):
    pytest.importorskip("transformers")
    clap = tiny.written("clap", tmp_path / "written")
    towers = {"towers.audio": f"hf:{clap}", "towers.text": f"hf:{clap}", "towers.train": trained, "towers.blocks": 1}
    config = assemble(data=str(captioned), method="pairs", settings=SMALL | towers, **{"training.epochs": 3})
    whole, folder = stopped_and_whole(config, tmp_path)
    assert differences(contents(whole), contents(folder)) == []
    found = aadml.evaluate(whole).to_json()["directions"]
    assert (found["text-audio"]["queries"], found["text-audio"]["gallery"]) == (14, 6)  # 6 clips of 2, 2 of them 3
    assert (found["audio-text"]["queries"], found["audio-text"]["gallery"]) == (6, 14)
    aadml.embed(whole, captioned, tmp_path / "e.h5")
    again = aadml.evaluate(embeddings=tmp_path / "e.h5", split="test").to_json()["directions"]
    for name, figures in found.items():
        assert again[name]["map"] == pytest.approx(figures["map"])
        assert (again[name]["queries"], again[name]["gallery"]) == (figures["queries"], figures["gallery"])


@pytest.mark.slow
def test_captioned_sound_is_drawn_too(captioned, tmp_path):
    pytest.importorskip("transformers")
    settings = {"texts": "drawn", "method.audio_width": 2, "method.text_layers": 1, "method.text_dimension": 16,
                "method.hidden": 16, "method.dimension": 16, "training.batch": 12}  # fmt: skip
    rows = [line for line in captioned.read_text().splitlines(keepends=True) if not line.startswith("t4,")]
    captioned.write_text("".join(rows))
    config = assemble(data=str(captioned), config="audio_text", settings=settings, **{"training.epochs": 3})
    whole, folder = stopped_and_whole(config, tmp_path)
    assert differences(contents(whole), contents(folder)) == []
    assert aadml.load(whole).facts.clips == 17


def test_captions_of_sound_in_memory_are_drawn_as_those_of_its_place(manifest):
    settings = {"method.channels": 8, "method.text_dimension": 16, "training.batch": 12, "texts": "drawn"}
    one, other = (
        aadml.fit(data, method="xie", epochs=1, settings=settings).method.state()
        for data in (manifest, aadml.read(manifest, cleaning="xie"))
    )
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"unlabelled": "drop"}, "unlabelled is drop, but captioned sound has no classes"),
        ({"modalities": ["audio"]}, "modalities: .audio. does not name two modalities; choose at least two"),
    ],
)
def test_what_captioned_sound_cannot_follow_is_refused(manifest, settings, refusal):
    options = {"method.channels": 8, "method.text_dimension": 16} | settings
    for data, said in ((aadml.read(manifest, cleaning="xie"), refusal), (manifest, refusal.partition(" ")[0])):
        with pytest.raises(InputError, match=said):
            aadml.fit(data, method="xie", epochs=1, settings=options)
