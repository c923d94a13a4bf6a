"""The data that a config names: captioned sound, and the config that labels ask for."""

import csv
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import aadml
from aadml.comparison.clips import Clips, Splits
from aadml.configuration.config import Common
from aadml.configuration.from_arguments import assemble
from aadml.configuration.presets import preset_path
from aadml.data.splitting.splits import clips_of, to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.runs import data
from aadml.runs.prepare import untrained_model
from tests.captioned_clips import write_captioned


def test_captioned_sound_is_refused_by_what_learns_from_features(monkeypatch):
    monkeypatch.setattr(data, "is_captioned", lambda path: True)
    with pytest.raises(InputError, match="is captioned sound, but cca trains on features"):
        data.load_splits(assemble(method="cca", data="synthetic:ave"))
    monkeypatch.setattr(data, "captioned_splits", lambda path, **options: (path, options))
    assert aadml.read("there.csv") == ("there.csv", {"cleaning": "mei", "captions": 5})


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (b"filename,caption\na.wav,rain\n", "the columns filename, caption are not those of a caption table"),
        ("file_name,caption\na.wav,rain\n".encode("utf-16"), "is UTF-16 text"),
    ],
)
def test_a_method_of_captioned_sound_refuses_other_tables_with_the_reason(table, says, tmp_path):
    (tmp_path / "train.csv").write_bytes(table)
    (tmp_path / "a.wav").touch()
    with pytest.raises(InputError, match=rf"train\.csv:? {says}"):
        data.load_splits(assemble(method="audio-text", data=str(tmp_path)))
    with pytest.raises(InputError, match="relevance is own, but captioned sound has no classes"):
        data.load_splits(assemble(method="audio-text", data=str(tmp_path), settings={"relevance": "own"}))


def content(**changes):
    return replace(synthetic(classes=3, train=30, valid=6, test=9, dimensions=(4, 5)), **changes)


IN_TEST_ONLY = np.where(np.asarray(content().splits) == "test", 2, np.arange(45) % 2)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_class_may_be_only_in_test_if_no_class_is_trained_on(method):
    unlabelled = replace(content(), labels=np.full(45, UNLABELLED), class_names=())
    incomplete = replace(content(), labels=IN_TEST_ONLY)
    build = partial(untrained_model, assemble(method=method), device=torch.device("cpu"))
    if method in ("cca", "kcca", "dcca", "clip", "bic-net", "dcil", "pairs", "random", "audio-text", "3cmlf", "xie"):
        build(to_splits(unlabelled))
        build(to_splits(incomplete))
    elif method != "zero-shot":  # needs features of a shared space
        with pytest.raises(InputError, match="needs one class per clip"):
            build(to_splits(unlabelled))
        with pytest.raises(InputError, match=r"trains on classes, but classes are incomplete .*; add clips"):
            build(to_splits(incomplete))


@pytest.mark.parametrize("labels", [IN_TEST_ONLY, np.zeros(45, np.int64)])
def test_incomplete_classes_are_refused_as_a_path_and_in_memory(labels, tmp_path):
    write_features(tmp_path / "f.h5", content(labels=labels))
    settings = {"training.epochs": 1}
    for source in (tmp_path / "f.h5", aadml.read(tmp_path / "f.h5")):
        with pytest.raises(InputError, match=r"dscmr trains on classes, but .*; add clips, choose a method"):
            aadml.fit(source, method="dscmr", settings=settings)
    assert aadml.fit(source, method="random", settings=settings)


def test_labels_decide_where_a_training_starts(tmp_path):
    def asked(given, config=None, method=None):
        said = []
        return data.TrainingSource(given).starting_config(config, method, said.append), said

    def written(**changes):
        write_features(tmp_path / "f.h5", content(**changes))
        return tmp_path / "f.h5"

    some = content().labels.copy()
    some[content().rows("train")[0]] = -1
    late = content().labels.copy()
    late[content().rows("test")[0]] = -1
    for given in (written(), written(labels=late), aadml.read(written()), "synthetic:ave", None):
        assert asked(given) == (None, [])
    chosen, said = asked(written(labels=some))
    assert chosen == preset_path("few_labels")
    assert said[0].startswith(
        "some clips have no label, so config 'few_labels' is used; choose another config with --config"
    )
    for without in ({"class_names": ()}, {}):
        file = written(labels=np.full(45, -1), **without)
        for given in (file, aadml.read(file), aadml.read(file).train):
            chosen, said = asked(given)
            assert chosen == preset_path("pairs")
            assert said[0].startswith("the clips do not have exactly one class each, so config 'pairs' is used")
    assert asked(file, config="mine.yaml") == ("mine.yaml", [])
    assert asked(file, method="cca") == (None, [])
    random = np.random.default_rng(0).standard_normal((6, 3)).astype("f4")
    assert asked(Clips.of(np.arange(6) % 2, audio=random, visual=random)) == (None, [])


def test_labels_of_test_clips_alone_choose_the_same_config_for_a_file_and_in_memory(tmp_path):
    def chosen(given):
        return data.TrainingSource(given).starting_config(None, None, lambda text: None)

    rows = content().rows("test")
    marks = np.eye(3, dtype=np.uint8)[content().labels]
    marks[rows[0]] = 1
    write_features(tmp_path / "f.h5", content(labels=marks.argmax(1), all_labels=marks))
    splits = aadml.read(tmp_path / "f.h5")
    single = replace(splits, train=replace(splits.train, all_labels=None))
    assert [chosen(given) for given in (tmp_path / "f.h5", splits, single)] == [preset_path("pairs")] * 3
    late = np.full(45, -1)
    late[rows] = content().labels[rows]
    write_features(tmp_path / "g.h5", content(labels=late))
    clips = clips_of(content(labels=late))
    parts = (clips.select(torch.from_numpy(content().rows(split))) for split in ("train", "valid", "test"))
    assert [chosen(given) for given in (tmp_path / "g.h5", Splits(*parts))] == [preset_path("pairs")] * 2


def test_splits_without_validation_clips_are_trained_like_a_file_without(tmp_path):
    parts = tuple("train" if split == "valid" else split for split in content().splits)
    write_features(tmp_path / "f.h5", content(splits=parts))
    clips, own = clips_of(content()), content(splits=parts)
    train, test = (clips.select(torch.from_numpy(own.rows(split))) for split in ("train", "test"))
    splits, notes = Splits(train=train, test=test), []
    assert (len(splits.valid), len(Splits(train).test)) == (0, 0)
    assert Splits(train).having("test", test).omits_valid
    assert replace(splits.in_memory(), name="clips").omits_valid
    assert not splits.having("valid", test).omits_valid
    assert not Splits(train, splits.valid).omits_valid
    options = {"method": "cca", "settings": {"method.dimension": 2}}
    model = aadml.fit(splits, on_note=notes.append, **options)
    assert "3 clips were set aside for validation (stratified, seed 0)" in notes
    assert model.evaluation["map_mean"] == aadml.fit(tmp_path / "f.h5", **options).evaluation["map_mean"]


def test_modalities_are_kept_by_name_and_it_is_said_which_were_left_out(tmp_path):
    two = content()
    write_features(tmp_path / "f.h5", replace(two, features={**two.features, "flow": two.features["audio"]}))
    splits = aadml.read(tmp_path / "f.h5")
    assert data.with_modalities(splits, None) is splits
    every = data.with_modalities(splits, ["flow", "visual", "audio"])
    assert every.notes == splits.notes
    some = data.with_modalities(splits, ["visual", "flow"])
    assert [set(part.modalities) for part in (some.train, some.valid, some.test)] == [{"visual", "flow"}] * 3
    assert some.notes == (*splits.notes, "the key modalities leaves out these modalities of the data: audio")
    with pytest.raises(InputError, match=r"modalities: .*f\.h5 has no text; choose from audio, visual, flow"):
        data.with_modalities(splits, ["audio", "text"])
    with pytest.raises(
        InputError, match=r"modalities: \[visual, visual\] does not name two modalities; choose at least two"
    ):
        data.with_modalities(splits, ["visual", "visual"])


def test_paths_of_weights_become_absolute_and_other_names_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("weights.pth", "words.txt", "untrained"):
        Path(name).touch()
    for name in ("begun", "h", "deep/clap"):
        Path(name).mkdir(parents=True)
    options = {"audio_weights": "weights.pth", "text_weights": "words.txt", "start": "begun", "audio": "hf:h#mean"}
    config = data.with_absolute_paths(assemble(method="audio-text", settings=as_settings("method", options)))
    assert config.options.audio_weights == str(tmp_path / "weights.pth")
    assert config.options.text_weights == str(tmp_path / "words.txt")
    assert config.options.start == str(tmp_path / "begun")
    assert config.options.audio == f"hf:{tmp_path / 'h'}#mean"
    assert data.with_absolute_paths(config) == config
    options = {"audio_weights": "untrained", "text_weights": "absent.txt", "start": "", "text": "hf:org/model"}
    config = assemble(method="audio-text", settings=as_settings("method", options))
    assert data.with_absolute_paths(config).options == config.options
    config = assemble(settings=as_settings("towers", {"audio": "hf:deep/clap@deep/clap", "visual": "hf:org/model"}))
    towers = data.with_absolute_paths(config).towers
    assert (towers.audio, towers.visual) == (f"hf:{tmp_path / 'deep/clap'}@deep/clap", "hf:org/model")


def test_paths_of_another_machine_are_those_of_other_folders():
    options = {"audio_weights": "/a/w.pth", "text_weights": "/a/x.pth", "start": "/a/run", "audio": "hf:/a/h@1#mean"}
    stored = assemble(
        method="audio-text", settings=as_settings("method", options | {"text": "hf:a/model"}), data="f.h5"
    )
    options = {"audio_weights": "./w.pth", "text_weights": "/b/y.pth", "start": "/b/c/run", "audio": "hf:h@1#mean"}
    config = assemble(
        method="audio-text", settings=as_settings("method", options | {"text": "hf:b/model"}), data="g.h5"
    )
    config = data.with_folders_of(stored, config)
    assert config.data == "f.h5"
    assert [getattr(config.options, key) for key in ("audio_weights", "start", "audio")] == [
        "/a/w.pth",
        "/b/c/run",
        "hf:/a/h@1#mean",
    ]
    assert (config.options.text_weights, config.options.text) == ("/b/y.pth", "hf:b/model")
    stored, config = (
        assemble(settings=as_settings("towers", {"audio": audio, "visual": "hf:org/model"}))
        for audio in ("hf:/a/clap", "hf:/b/clap")
    )
    assert data.with_folders_of(stored, config) == stored
    for name in ("hf:org/clap", "hf:/b/clip"):  # a name of the hub, and another folder
        other = assemble(settings=as_settings("towers", {"audio": name, "visual": "hf:org/model"}))
        assert data.with_folders_of(stored, other) == other


def as_settings(section, options):
    return {f"{section}.{key}": value for key, value in options.items()}


def test_a_rule_of_relevance_is_set_in_every_part_and_said(tmp_path):
    write_features(tmp_path / "f.h5", content())
    splits = aadml.read(tmp_path / "f.h5")
    plain = data.with_relevance(splits, None)
    assert plain.notes == splits.notes
    own = data.with_relevance(splits, "own")
    assert {part.relevant.name for part in (own.train, own.valid, own.test)} == {"own"}
    assert own.notes[-1].endswith("own partner only")
    assert data.with_relevance(own, None).notes[-1] == own.notes[-1]
    with pytest.raises(InputError, match="'onw' is neither a file of judgments nor a rule; did you mean 'own'"):
        data.with_relevance(splits, "onw")


def test_names_of_data_stay_and_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert data.data_location("synthetic:ave") == "synthetic:ave"
    assert data.data_location("f.h5") == str(tmp_path / "f.h5")


@pytest.mark.parametrize(
    ("captioned", "options", "says"),
    [
        (False, {"seed": -1}, "^read: seed is -1; pass a number from 0 to"),
        (False, {"validation": 5.0}, "^read: validation is 5.0; pass a number above 0 to below 1$"),
        (False, {"validation": float("nan")}, "^read: validation is NaN; pass a number above 0 to below 1$"),
        (False, {"cleaning": "xie"}, "synthetic:ave is not captioned sound; leave out cleaning and captions"),
        (False, {"captions": 4}, "synthetic:ave is not captioned sound; leave out cleaning and captions"),
        (
            True,
            {"layout": "flat"},
            "is captioned sound, so layout 'flat' does not apply; leave out layout and views",
        ),
        (True, {"views": ["a=b"]}, "is captioned sound, so .* does not apply; leave out layout and views"),
    ],
)
def test_options_of_other_data_are_refused(monkeypatch, captioned, options, says):
    monkeypatch.setattr(data, "is_captioned", lambda path: captioned)
    with pytest.raises(InputError, match=says):
        aadml.read("synthetic:ave", **options)


@pytest.mark.parametrize(
    ("groups", "notes"), [(9, ["the test clips form only 9 groups by speaker: intervals over"]), (10, [])]
)
def test_a_note_names_few_groups_of_test_clips(groups, notes):
    columns = {"speaker": tuple(f"s{n % groups}" for n in range(150))}
    clips = replace(synthetic(classes=3, train=30, valid=20, test=100, dimensions=(4, 5)), columns=columns)
    found = data._clustered(to_splits(clips), clips, "speaker")
    assert [note.partition(" so few")[0] for note in found.notes[1:]] == notes
    assert found.clusters == dict(zip(clips.ids, columns["speaker"], strict=True))


@pytest.mark.parametrize(
    ("drawn", "unlabelled", "sizes"),
    [(False, "drop", (6, 6, 9)), (False, "keep", (30, 6, 9)), (True, "drop", (6, 3, 9)), (True, "keep", (18, 3, 9))],
)
def test_few_clips_a_class_keep_their_validation_split_and_unlabelled_clips(tmp_path, drawn, unlabelled, sizes):
    labels = content().labels.copy()
    labels[0] = -1
    splits = tuple("train" if drawn and one == "valid" else one for one in content().splits)
    write_features(tmp_path / "f.h5", content(labels=labels, splits=splits))
    settings = {"train_per_class": 2, "unlabelled": unlabelled, "validation": 0.5}
    found = data.load_splits(assemble(method="random", data=str(tmp_path / "f.h5"), settings=settings))
    assert tuple(len(part) for part in (found.train, found.valid, found.test)) == sizes


@pytest.mark.parametrize(
    ("name", "says"),
    [("", "because a data set in memory has no columns"), ("sound", "because sound has no columns")],
)
def test_data_without_columns_have_no_clusters(monkeypatch, name, says):
    monkeypatch.setattr(data, "is_captioned", lambda path: True)
    with pytest.raises(InputError, match=f"{says} of these clips; pass a feature file"):
        data.with_clusters(replace(to_splits(content()), name=name), "speaker")


def test_the_columns_of_a_manifest_of_media_are_clusters(tmp_path):
    lines = [f"c{n},c{n}.mp4,a dog,{'xy'[n % 2]},{('train', 'valid', 'test')[n % 3]},s{n % 12}" for n in range(36)]
    path = tmp_path / "clips.csv"
    path.write_text("\n".join(["id,media,caption,label,split,speaker", *lines]))
    settings = {"towers.audio": "hf:a", "towers.visual": "hf:b", "cluster": "speaker"}
    config = assemble(method="clip", data=str(path), settings=settings)
    clusters = {f"c{n}": f"s{n % 12}" for n in range(36)}
    assert data.load_splits(config).clusters == clusters
    splits = data.load_splits(config)
    assert data.with_clusters(splits, "speaker").clusters == clusters
    captioned = replace(splits.test, ids=tuple(f"{name}#1" for name in splits.test.ids))
    with pytest.raises(InputError, match=r"because .*clips.csv has no columns of these clips; pass a feature file"):
        data.with_clusters(splits.having("test", captioned), "speaker")


def test_clips_in_memory_are_set_aside_by_class():
    random = np.random.default_rng(0).standard_normal((40, 3)).astype("f4")
    clips = Clips.of(np.arange(40) % 2, audio=random, visual=random)
    splits = data._with_validation(Splits(clips), Common(validation=0.25, seed=3))
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [30, 10, 0]
    assert np.bincount(splits.valid.labels).tolist() == [5, 5]
    assert splits.notes == ("10 clips were set aside for validation (stratified, seed 3)",)


def test_captioned_clips_in_memory_are_set_aside_with_all_their_captions(tmp_path):
    manifest = write_captioned(tmp_path / "clips")
    train = aadml.read(manifest).train
    config = assemble(method="xie", texts="drawn", validation=0.25)
    splits = data.TrainingSource(Splits(train)).splits(config)
    names = [{name.partition("#")[0] for name in part.ids} for part in (splits.train, splits.valid)]
    assert [len(part) for part in names] == [9, 3]
    assert names[0].isdisjoint(names[1])
    assert [len(splits.train), len(splits.valid)] == [27, 9]
    assert splits.notes == (
        "3 clips were set aside for validation (at random, seed 0)",
        "27 texts of 9 training clips: each epoch trains on one text per clip, drawn by the seed",
    )


@pytest.mark.parametrize("files", [6, 1])
def test_segments_of_a_sound_file_in_memory_are_set_aside_together(tmp_path, files):
    manifest = write_captioned(tmp_path / "clips")
    with manifest.open(newline="") as file:
        header, *rows = csv.reader(file)
    for number, row in enumerate(rows):
        row[1] = f"{number % files}.wav" if row[2] == "train" else row[1]
        row += [f"{number % 12 / 30:.3f}", f"{(number % 12 + 1) / 30:.3f}"]
    with manifest.open("w", newline="") as file:
        csv.writer(file).writerows([[*header, "start", "end"], *rows])
    train = aadml.read(manifest).train
    splits = data.TrainingSource(Splits(train)).splits(assemble(method="xie", validation=0.3))
    used = [{part["audio"].paths[i] for i in part["audio"].items} for part in (splits.train, splits.valid)]
    assert len(used[0] & used[1]) == (files == 1)
    divided = "at random, 1 files in both train and valid, seed 0" if files == 1 else "at random, seed 0"
    assert splits.notes == (f"4 clips were set aside for validation ({divided})",)


def test_clips_in_memory_with_equal_ids_are_set_aside_together():
    random = np.random.default_rng(0).standard_normal((200, 3)).astype("f4")
    clips = Clips.of(np.arange(200) // 50, ids=[f"clip {n // 5}" for n in range(200)], audio=random, visual=random)
    splits = data._with_validation(Splits(clips), Common())
    assert set(splits.train.ids) | set(splits.valid.ids) == set(clips.ids)
    assert not set(splits.train.ids) & set(splits.valid.ids)


def test_clips_in_memory_with_equal_sounds_are_set_aside_together():
    random = np.random.default_rng(0).standard_normal((200, 3)).astype("f4")
    sound = torch.from_numpy(random[np.arange(200) // 5])
    clips = Clips.of(np.arange(200) // 50, audio=sound, visual=random)
    splits = data._with_validation(Splits(clips), Common())
    train, valid = (set(map(tuple, part.matrix("audio").tolist())) for part in (splits.train, splits.valid))
    assert len(train | valid) == 40
    assert not train & valid


@pytest.mark.parametrize("ids", [1, 2])
def test_few_ids_in_memory_are_divided_so_that_validation_has_its_share(ids):
    random = np.random.default_rng(0).standard_normal((60, 3)).astype("f4")
    names = [f"clip {n * ids // 20}" for n in range(60)]
    splits = data._with_validation(
        Splits(Clips.of(np.arange(60) // 20, ids=names, audio=random, visual=random)), Common()
    )
    assert np.bincount(splits.valid.labels).tolist() == [2, 2, 2]
    assert re.search(r"\(stratified, \d ids in both train and valid, seed 0\)", splits.notes[0])
