"""What `fit` takes as data and says of it, and which process goes on with a training."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Clips, Splits
from aadml.comparison.processes import launch
from aadml.configuration.from_arguments import assemble
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs import data as run_data
from aadml.runs import fit
from aadml.runs import prepare as prepare_runs
from aadml.runs.manifest import CONFIG, EVALUATION, read_manifest
from aadml.runs.prepare import prepare
from aadml.runs.scoring import TEST, Scoring
from aadml.runs.train import train_into


def test_a_file_that_decides_the_config_is_read_once(monkeypatch, tmp_path):
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8)))
    opened = []
    monkeypatch.setattr(run_data, "open_data", lambda path: opened.append(path) or open_data(path))
    model = aadml.fit(tmp_path / "f.h5", loss="triplet", epochs=1, settings={"network.hidden": [4]})
    assert opened == [tmp_path / "f.h5"]
    assert model.facts.method.name == "aadml"


def test_networks_that_do_not_exist_are_refused_before_data_are_read(monkeypatch):
    def refuse(config):
        raise InputError("there is no such network")

    for module in (fit, prepare_runs):
        monkeypatch.setattr(module, "check_towers", refuse)
    for module in (run_data, prepare_runs):
        monkeypatch.setattr(module, "load_splits", lambda *_: pytest.fail("data were read"))
    for call in (
        lambda: aadml.fit("synthetic:ave", method="random"),
        lambda: prepare(assemble(method="random", data="synthetic:ave")),
    ):
        with pytest.raises(InputError, match="there is no such network"):
            call()


def test_of_several_processes_none_makes_the_sample_clips(monkeypatch, tmp_path):
    monkeypatch.setattr(launch, "started", lambda: True)
    monkeypatch.setattr("aadml.runs.fit.with_sample_data", lambda *_: pytest.fail("clips were made"))
    with pytest.raises(InputError, match="does not exist"):  # what is named is looked for, however many they are
        aadml.fit(tmp_path / "absent.h5", epochs=1)
    monkeypatch.setattr("aadml.runs.fit.with_sample_data", lambda config, _: config)
    with pytest.raises(InputError, match=r"named.h5 does not exist"):
        aadml.fit(epochs=1, settings={"data": "named.h5"})
    with pytest.raises(InputError, match="sample clips cannot be rendered by several processes; pass data"):
        aadml.fit(epochs=1)


def test_the_sample_clips_are_trained_on_where_no_data_are_given_and_only_there(monkeypatch, tmp_path):
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8)))
    made = []

    def sample(config, say):
        made.append(config)
        return config.on(str(tmp_path / "f.h5"))

    monkeypatch.setattr(fit, "with_sample_data", sample)
    assert aadml.fit(method="random").facts.data.name == "f.h5"
    assert len(made) == 1
    splits = aadml.read(tmp_path / "f.h5")
    for data in (tmp_path / "f.h5", splits, splits.train):
        aadml.fit(data, method="random")
    assert len(made) == 1


def test_data_among_the_settings_are_read_like_data(monkeypatch, tmp_path):
    for seed in range(2):
        clips = synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8), seed=seed)
        write_features(tmp_path / f"{seed}.h5", clips)
    monkeypatch.setattr(fit, "with_sample_data", lambda *_: pytest.fail("clips were made"))
    place = str(tmp_path / "1.h5")
    settings = {"training.epochs": 1, "network.hidden": [4]}
    expected = aadml.fit(place, settings=settings).facts
    for data in (None, tmp_path / "0.h5"):  # a setting overrides an argument
        facts = aadml.fit(data, settings=settings | {"data": place}).facts
        assert (facts.data, facts.training) == (expected.data, expected.training)


@pytest.mark.parametrize(("labels", "how"), [(np.arange(40) % 4, "stratified"), (None, "at random")])
def test_it_is_said_how_clips_in_memory_were_set_aside_for_validation(labels, how):
    random = np.random.default_rng(0)
    features = {m: random.standard_normal((40, 5)).astype("f4") for m in ("audio", "visual")}
    model = aadml.fit(Clips.of(labels, **features), method="random")
    assert f"4 clips were set aside for validation ({how}, seed 0)" in model.card()
    assert model.evaluation is None  # all other clips are trained on


def test_a_closed_form_is_kept_from_validation_clips_that_are_scored_or_of_other_classes(tmp_path):
    write_features(tmp_path / "f.h5", synthetic(classes=6, train=60, valid=18, test=18, dimensions=(6, 8)))

    def fitted(scoring=TEST, **changes):
        config = assemble(method="cca", data=str(tmp_path / "f.h5"), settings={"method.dimension": 2} | changes)
        model = train_into(config, tmp_path / f"run {scoring.split} {len(changes)}", scoring)
        splits = prepare(config).splits
        train, valid = (model.scaling.clips(part).matrix("audio").double() for part in (splits.train, splits.valid))
        return model.method.state()["mean.audio"].double(), train, valid

    for by, alone in ((fitted(), False), (fitted(Scoring(split="valid")), True), (fitted(unseen_classes=0.3), True)):
        mean, train, valid = by
        expected = [train.mean(0), torch.cat([train, valid]).mean(0)]
        assert not torch.allclose(*expected, rtol=0, atol=1e-3)
        torch.testing.assert_close(mean, expected[0 if alone else 1], rtol=0, atol=1e-5)


def test_a_process_that_is_not_the_first_follows_a_training_that_is_not_over(monkeypatch, tmp_path):
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8)))
    run = aadml.fit(tmp_path / "f.h5", method="random", runs=tmp_path / "runs").folder
    manifest, followed = read_manifest(run), []
    monkeypatch.setattr(fit.group, "is_first", lambda: False)
    monkeypatch.setattr(fit, "follow", lambda prepared, place: followed.append(place))
    assert aadml.resume(run).folder == run
    assert followed == []
    trained = {name: one for name, one in manifest.files.items() if name != EVALUATION}
    monkeypatch.setattr(fit, "read_manifest", lambda _: replace(manifest, files=trained))
    assert aadml.resume(run).folder == run  # stopped between training and scoring
    assert followed == []
    monkeypatch.setattr(fit, "read_manifest", lambda _: replace(manifest, files={CONFIG: manifest.files[CONFIG]}))
    aadml.resume(run)
    assert followed == [run]


def test_splits_in_memory_have_the_same_numbers_of_classes():
    random = np.random.default_rng(0)

    def clips(*labels):
        features = {m: random.standard_normal((len(labels), 5)).astype("f4") for m in ("audio", "visual")}
        return Clips.of(labels, **features)

    train, valid, test = clips("a", "b", "c", "d"), clips("b", "d"), clips("c", "cat", "d")
    config = assemble(method="random", data=None)
    splits = run_data.configured_in_memory(Splits(train, valid, test), config)
    assert splits.train is train
    assert (splits.valid.labels.tolist(), splits.valid.class_names) == ([1, 3], train.class_names)
    assert (splits.test.labels.tolist(), splits.test.class_names) == ([2, 4, 3], (*train.class_names, "cat"))


@pytest.mark.parametrize("key", ["unseen_classes", "train_per_class"])
@pytest.mark.parametrize("kind", ["splits", "clips"])
def test_keys_that_divide_data_anew_are_refused_of_data_in_memory(key, kind):
    splits = aadml.read("synthetic:ave")
    data = splits if kind == "splits" else splits.train
    value = {"unseen_classes": 0.3, "train_per_class": 4}[key]
    with pytest.raises(InputError, match=f"{key} is {value}, but the data in memory are already divided"):
        aadml.fit(data, method="random", settings={key: value})


def test_a_share_of_validation_clips_that_are_not_drawn_is_said_to_change_nothing(tmp_path):
    parts = {"own": synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8))}
    splits = tuple("train" if one == "valid" else one for one in parts["own"].splits)
    parts["drawn"] = replace(parts["own"], splits=splits)
    for name, content in parts.items():
        write_features(tmp_path / f"{name}.h5", content)
    said = "validation=0.4 changes nothing: the data have a validation split"
    for name, expected in (("own", True), ("drawn", False)):
        read = aadml.read(tmp_path / f"{name}.h5")
        for data, idle in ((tmp_path / f"{name}.h5", expected), (read, True), (read.train, False)):
            for share, heard in ((0.4, list[str]()), (0.1, list[str]())):
                aadml.fit(data, method="random", settings={"validation": share}, on_note=heard.append, runs=None)
                assert (said in heard) == (idle and share == 0.4), (name, data, share)


def test_a_run_of_data_in_memory_goes_on_with_the_modalities_that_it_began_with(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    features = {m: random.standard_normal((40, 5)) for m in ("audio", "visual", "flow")}
    clips = Clips.of(np.arange(40) % 4, **features)
    splits = aadml.Splits(clips.select(torch.arange(20)), *2 * [clips.select(torch.arange(20, 40))])
    options = {"settings": {"network.hidden": [4], "modalities": ["audio", "flow"]}, "epochs": 3, "loss": "triplet"}
    whole = aadml.fit(splits, runs=tmp_path / "whole", **options)

    class StoppedError(Exception):
        pass

    def stop(record):
        raise StoppedError

    with pytest.raises(StoppedError):
        aadml.fit(splits, runs=tmp_path / "cut", on_epoch=stop, **options)
    (run,) = (tmp_path / "cut").iterdir()
    resumed = aadml.resume(run, data=splits)
    assert resumed.modalities == ("audio", "flow")
    assert (run / "model.safetensors").read_bytes() == (whole.folder / "model.safetensors").read_bytes()


def test_a_run_of_relative_paths_in_its_config_is_used_from_any_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    content = synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8))
    write_features(tmp_path / "f.h5", content)
    (tmp_path / "judged.txt").write_text("".join(f"{name} 0 {name} 1\n" for name in content.ids))
    (tmp_path / "c.yaml").write_text("method: {name: cca, dimension: 2}\ndata: f.h5\nrelevance: judged.txt\n")
    model = aadml.fit(config="c.yaml", runs=tmp_path / "runs")
    of_data = aadml.fit("f.h5", config="c.yaml", runs=tmp_path / "runs")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for run in (model, of_data):
        assert aadml.evaluate(run.folder).map_mean == pytest.approx(run.evaluation["map_mean"])
