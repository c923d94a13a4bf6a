"""The hash of the data covers all that training sees: features, sound, captions, labels, ids, splits."""

import csv
import inspect
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import aadml
from aadml.comparison.relevance import Judgments
from aadml.configuration.from_arguments import assemble
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.json_values import parse_as, to_bytes
from aadml.runs import environment
from aadml.runs.data import TrainingSource, load_splits
from aadml.runs.environment import Data, Environment, check_same_data, data_hash
from tests.sound_files import tone, write_wav


@pytest.fixture(scope="module")
def splits():
    return to_splits(synthetic(classes=3, train=12, valid=6, test=6, dimensions=(3, 4)))


def changed_test(splits, **changes):
    return replace(splits, test=replace(splits.test, **changes))


def test_it_changes_with_everything_that_training_or_scoring_sees(splits):
    test = splits.test
    louder = {m: v.clone() for m, v in test.features.items()}
    louder["visual"][3, 2] += 1e-6
    marks = torch.nn.functional.one_hot(test.labels, 3).bool()
    changed = [
        changed_test(splits, labels=torch.roll(test.labels, 1)),
        changed_test(splits, ids=(*test.ids[:-1], "another")),
        changed_test(splits, class_names=("a", "b", "c")),
        changed_test(splits, features=louder),
        changed_test(splits, features={"audio": test["visual"], "visual": test["audio"]}),
        replace(splits, valid=splits.test, test=splits.valid),
        changed_test(splits, all_labels=marks),
        changed_test(splits, all_labels=torch.ones_like(marks)),
    ]
    hashes = [data_hash(one) for one in (splits, *changed)]
    assert len(set(hashes)) == len(hashes)
    assert data_hash(replace(splits, name="another file", notes=("a note",))) == hashes[0]


def test_an_environment_of_an_earlier_version_is_of_one_process():
    data = Data("f.h5", "0" * 64, (), drawn=True)
    content = asdict(Environment("c", {}, "cpu", "x86", 1, data, {"train": 3}, processes=4))
    assert parse_as(Environment, to_bytes(content), Path("e.json")).processes == 4
    del content["processes"], content["networks"], content["data"]["drawn"], content["data"]["judgments"]
    earlier = parse_as(Environment, to_bytes(content), Path("e.json"))
    assert (earlier.processes, earlier.networks) == (1, {})
    assert (earlier.data.drawn, earlier.data.judgments) == (None, None)


def test_judgments_that_changed_are_refused_unless_an_earlier_version_wrote_the_run(splits, monkeypatch):
    def judged(item):
        rule = Judgments({splits.test.ids[0]: {item: 1.0}})
        return changed_test(splits, relevance=rule)

    first, second = (judged(splits.test.ids[n]) for n in (0, 1))
    assert data_hash(first) == data_hash(splits)
    begun = environment.environment(first, "0" * 64, torch.device("cpu"), {})
    monkeypatch.setattr(environment, "read_environment", lambda manifest: begun)
    run = SimpleNamespace(folder="run"), assemble(method="cca")
    assert check_same_data(*run, first, "0" * 64, "") is begun
    for other in (second, splits):
        wanted = r"data in memory: the judgments have changed since run was begun; start again"
        with pytest.raises(InputError, match=wanted):
            check_same_data(*run, replace(other, name=""), "0" * 64, "start again")
    assert check_same_data(*run, second, "0" * 64, "", judged=False) is begun
    with pytest.raises(InputError, match="the data have changed since run was begun, or another version"):
        check_same_data(*run, first, "1" * 64, "")
    begun = replace(begun, data=replace(begun.data, judgments=None))
    assert check_same_data(*run, second, "0" * 64, "") is begun


def test_a_draw_of_validation_clips_in_memory_is_recorded(splits):
    config = assemble(method="cca")
    for data, drawn in ((splits, False), (splits.train, True)):
        content = TrainingSource(data).splits(config)
        assert environment.environment(content, "0" * 64, torch.device("cpu"), {}).data.drawn is drawn


def test_initial_weights_are_the_files_of_a_folder_but_hidden_ones_pages_and_the_folder_untrained(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for folder in ("untrained", "words"):
        (tmp_path / folder).mkdir()
        for name in ("vectors.txt", ".DS_Store", "README.md"):
            (tmp_path / folder / name).touch()
    weights = [
        environment.initial_weights(assemble(method="xie", settings={"method.text_weights": folder}))
        for folder in ("untrained", "words")
    ]
    assert [list(sums) for sums in weights] == [[], ["text_weights/vectors.txt"]]


def test_features_that_cannot_be_read_as_bytes_have_no_hash():
    with pytest.raises(InputError, match="visual: object has no method `content`, which the hash of the data needs"):
        list(environment._content(object(), "visual"))


def write_set(folder, captions=("low", "high"), frequency=200):
    folder.mkdir()
    with (folder / "manifest.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "media", "label", "split", "caption"])
        for number, split in enumerate(("train", "train", "valid", "test")):
            write_wav(folder / f"{number}.wav", tone(frequency + 50 * number, 0.1))
            writer.writerow([f"c{number}", f"{number}.wav", "tone", split, f"a {captions[number % 2]} tone"])
    return folder / "manifest.csv"


def test_two_sets_of_other_sound_or_other_words_hash_differently(tmp_path):
    first = write_set(tmp_path / "first")
    words = write_set(tmp_path / "words", captions=("low", "higher"))
    sound = write_set(tmp_path / "sound", frequency=201)
    one, other_words, other_sound = (data_hash(aadml.read(path)) for path in (first, words, sound))
    assert len({one, other_words, other_sound}) == 3
    moved = shutil.copytree(tmp_path / "first", tmp_path / "moved")
    assert data_hash(aadml.read(moved / "manifest.csv")) == one


def test_an_empty_cell_of_a_manifest_hashes_as_the_path_that_earlier_versions_hashed(tmp_path):
    write_set(tmp_path / "set")
    rows = ["id,audio,label,split", "a,0.wav,x,train", "b,,x,train", "c,2.wav,x,valid", "d,3.wav,x,test"]
    (tmp_path / "set" / "m.csv").write_text("\n".join(rows))
    splits = load_splits(assemble(data=str(tmp_path / "set" / "m.csv"), settings={"towers.audio": "hf:any"}))
    assert splits.train.present["audio"].tolist() == [True, False]
    earlier, masked = ({}, {"audio": torch.tensor([False, True])})
    hashes = [data_hash(splits.having("train", replace(splits.train, present=flags))) for flags in (earlier, masked)]
    assert (data_hash(splits) == hashes[0], hashes[1] == hashes[0]) == (True, False)


def test_only_a_checkout_of_the_package_has_a_commit(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "--message", "of the user")
    for place, is_checkout in ((tmp_path, True), (tmp_path / ".venv" / "lib", False)):
        (file := place / "aadml" / "runs" / "environment.py").parent.mkdir(parents=True)
        monkeypatch.setattr(environment, "__file__", str(file))
        # soak scripts that other tests import replace the function by a cache
        assert (inspect.unwrap(environment.git_commit)() is not None) == is_checkout
