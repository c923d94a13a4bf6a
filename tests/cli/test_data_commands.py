import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from aadml.cli import cli
from aadml.data.reading import open_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import Timeline
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from tests.edited_hdf5 import edited


def call(*words):
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def npz(tmp_path):
    generator = np.random.default_rng(0)
    arrays = {f"{view}_{part}": generator.standard_normal((6, 3)) for view in "xy" for part in ("train", "test")}
    np.savez(tmp_path / "v.npz", **arrays, label_train=np.arange(6) % 2, label_test=np.arange(6) % 2)
    return tmp_path / "v.npz"


def test_sample_data_ends_with_the_manifest(tmp_path):
    result = call("sample-data", tmp_path / "clips", "--clips", 10, "--seconds", 0.5, "--workers", 1)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [str(tmp_path / "clips" / "manifest.csv")]
    assert "10 clips of 0.5 s" in result.stderr


@pytest.mark.parametrize("options", [("--clips", "0"), ("--seconds", "nan")])
def test_sample_data_refuses_by_name(tmp_path, options):
    with pytest.raises(InputError, match=options[0].strip("-")):
        call("sample-data", tmp_path / "clips", *options)
    assert not (tmp_path / "clips").exists()


def test_convert_and_inspect_agree(npz, tmp_path):
    (tmp_path / "names.txt").write_text("even\nodd\n")
    result = call(
        "convert", npz, tmp_path / "o.h5", "--audio", "x", "--visual", "y", "--class-names", tmp_path / "names.txt"
    )
    assert result.exit_code == 0
    assert result.stdout.strip() == str(tmp_path / "o.h5")
    assert open_data(tmp_path / "o.h5").class_names == ("even", "odd")
    found = json.loads(call("inspect", tmp_path / "o.h5", "--json").stdout)
    assert found["clips"] == 12
    assert found["classes"]["odd"] == {"train": 3, "valid": 0, "test": 3}
    shown = call("inspect", tmp_path / "o.h5")
    assert "audio: 3-d" in shown.stdout
    assert "warning: there are no valid clips" in shown.stderr


def test_inspect_says_how_rows_are_joined_by_time(tmp_path):
    content = synthetic(classes=2, train=2, valid=0, test=1, dimensions=(2, 2))
    n = len(content.ids)
    timelines = {
        name: Timeline(np.ones((6 * n, 2), np.float32), np.arange(n + 1) * 6, np.tile(np.arange(6) * step, n))
        for name, step in [("audio", 0.96), ("visual", 1.0)]
    }
    write_features(tmp_path / "f.h5", replace(content, sequences=timelines))
    shown = call("inspect", tmp_path / "f.h5").stdout
    assert f"audio sequence: {6 * n} rows, 6 to 6 per clip, one row every 0.96 s, the first rows at 0 to 0 s" in shown
    assert f"visual sequence: {6 * n} rows, 6 to 6 per clip, one row every 1 s" in shown
    assert "join by time: for clip i, the row of modality M at second t is" in shown


def test_convert_leaves_nothing_behind_when_it_fails(npz, tmp_path):
    with pytest.raises(InputError, match="--audio VIEW"):
        call("convert", npz, tmp_path / "o.h5")
    with pytest.raises(InputError, match="is a folder"):
        call("convert", npz, tmp_path, "--audio", "x", "--visual", "y")
    assert [path.name for path in tmp_path.iterdir()] == ["v.npz"]


def test_convert_can_drop_incomplete_classes(tmp_path):
    content = synthetic(classes=3, train=(4, 4, 4), valid=0, test=(2, 2, 0), dimensions=(2, 2))
    write_features(tmp_path / "i.h5", content)
    result = call("convert", tmp_path / "i.h5", tmp_path / "o.h5", "--incomplete-classes", "drop")
    assert "'class 2' has no test clips" in result.stderr
    assert open_data(tmp_path / "o.h5").class_names == ("class 0", "class 1")


def test_manifest_lists_a_tree_and_tells_what_it_is(tmp_path):
    for label in ("cat", "dog"):
        for number in range(5):
            path = tmp_path / "tree" / label / f"{label}{number}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.name)
    result = call("manifest", tmp_path / "tree", "-o", tmp_path / "m.csv", "--split", "random:0.6/0/0.4")
    assert result.exit_code == 0
    assert "10 clips, 2 classes" in result.stderr
    assert "missing media files: 0" in result.stderr
    lines = (tmp_path / "m.csv").read_text().splitlines()
    assert lines[0] == "id,media,label,split"
    assert sum(line.endswith(",test") for line in lines) == 4
    assert lines[1].split(",")[1] == "tree/cat/cat0.mp4"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("av",), "did you mean 'ave'"),
        (("ave", "--folds", "f"), "has no such option"),
        (("ave", "--clock-limit", "many"), "--clock-limit"),
        (("vegas",), "is not a folder"),
    ],
)
def test_manifest_refuses_in_one_line(tmp_path, words, message):
    with pytest.raises(InputError, match=message):
        call("manifest", words[0], tmp_path / "absent", "-o", tmp_path / "m.csv", *words[1:])
    assert not (tmp_path / "m.csv").exists()


@pytest.mark.slow
def test_manifest_can_skip_what_is_missing(shared_data, tmp_path):
    source = shared_data / "ave_annotations"
    with pytest.raises(InputError, match="no clips to list"):
        call("manifest", "ave", source, "-o", tmp_path / "m.csv", "--skip-missing")
    result = call("manifest", "ave", source, "-o", tmp_path / "m.csv", "--clock-limit", "none")
    assert "2015 clips, 15 classes (1625 train, 195 valid, 195 test)" in result.stderr
    assert len((tmp_path / "m.csv").read_text().splitlines()) == 2016


def test_convert_draws_features_of_the_published_sizes(tmp_path):
    result = call("convert", "synthetic:ave", tmp_path / "ave.h5")
    assert result.exit_code == 0
    assert "15 classes, audio 128-d, visual 1024-d (1577 train, 189 valid, 189 test)" in result.stderr
    assert open_data(tmp_path / "ave.h5").ids[0] == "synthetic-000000"
    with pytest.raises(InputError, match="ave"):
        call("convert", "synthetic:avee", tmp_path / "x.h5")


def test_embeddings_without_a_split_are_trained_on_after_one_was_drawn(tmp_path):
    generator = np.random.default_rng(0)
    arrays = {name: generator.standard_normal((60, 4)).astype(np.float32) for name in ("audio", "visual")}
    np.savez(tmp_path / "e.npz", **arrays, label=np.arange(60) % 3)
    assert call("evaluate", "--embeddings", tmp_path / "e.npz").exit_code == 0
    with pytest.raises(
        InputError, match=r"has no 'split'.*`aadml convert .*e\.npz F\.h5 --split random:0\.7/0\.1/0\.2`"
    ):
        call("train", "--data", tmp_path / "e.npz", "--runs", tmp_path / "runs")
    result = call("convert", tmp_path / "e.npz", tmp_path / "f.h5", "--split", "random:0.7/0.1/0.2")
    assert "note: the split was drawn at random (0.7/0.1/0.2, seed 0): 42 train, 6 valid, 12 test" in result.stderr
    content = open_data(tmp_path / "f.h5")
    for label in range(3):
        splits = [split for split, of in zip(content.splits, content.labels, strict=True) if of == label]
        assert [splits.count(split) for split in ("train", "valid", "test")] == [14, 2, 4]
    trained = call("train", "--data", tmp_path / "f.h5", "--method", "cca", "--runs", tmp_path / "runs", "--set",
                   "method.dimension=2")  # fmt: skip
    assert trained.exit_code == 0
    with pytest.raises(InputError, match="--split half is not a random division; write random"):
        call("convert", tmp_path / "e.npz", tmp_path / "g.h5", "--split", "half")


@pytest.mark.slow
def test_a_flat_folder_becomes_features_whose_pairs_are_trained_on(tmp_path):
    call("sample-data", tmp_path / "clips", "--clips", 10, "--seconds", 0.5, "--workers", 1)
    result = call("manifest", tmp_path / "clips" / "clips", "--no-labels")
    assert "10 clips, no labels (7 train, 1 valid, 2 test)" in result.stderr
    assert call("extract", result.stdout.strip(), "-o", tmp_path / "f.h5", "--workers", 1).exit_code == 0
    found = json.loads(call("inspect", tmp_path / "f.h5", "--json").stdout)
    assert (found["clips"], found["classes"]) == (10, {})
    shown = call("inspect", tmp_path / "f.h5")
    assert shown.exit_code == 0
    assert "warning: the clips have no labels, so only a query's own partner is relevant" in shown.stderr
    call("convert", tmp_path / "f.h5", tmp_path / "g.h5")
    assert (tmp_path / "g.h5").read_bytes() == (tmp_path / "f.h5").read_bytes()
    trained = call("train", "--data", tmp_path / "f.h5", "--runs", tmp_path / "runs", "--epochs", 1, "--criterion",
                   "map", "--json")  # fmt: skip
    assert "the clips do not have exactly one class each, so config 'pairs' is used" in trained.stderr
    assert "a relevant result is the query's own partner only" in trained.stderr
    assert '"relevance": "own"' in trained.stdout


def test_several_labels_are_inspected_and_refused_by_methods_of_classes_until_the_first_is_kept(tmp_path):
    content = synthetic(classes=3, train=12, valid=3, test=6, dimensions=(3, 3))
    marked = np.eye(3, dtype=np.uint8)[content.labels]
    marked[0] = 1
    write_features(tmp_path / "f.h5", replace(content, all_labels=marked))
    shown = call("inspect", tmp_path / "f.h5")
    assert "1 clips have several labels" in shown.stderr
    with pytest.raises(InputError, match=r"have no class or several classes;.*--first-label"):
        call("train", "--data", tmp_path / "f.h5", "--method", "aadml", "--runs", tmp_path / "runs")
    call("convert", tmp_path / "f.h5", tmp_path / "g.h5", "--first-label")
    assert open_data(tmp_path / "g.h5").all_labels is None
    assert open_data(tmp_path / "g.h5").labels.tolist() == content.labels.tolist()


@pytest.mark.parametrize("command", [("inspect",), ("evaluate", "--embeddings"), ("convert", "out.h5")])
def test_a_file_that_reads_another_is_refused_by_every_command(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    content = synthetic(classes=2, train=2, valid=0, test=1, dimensions=(2, 2))
    write_features("f.h5", content)
    (tmp_path / "secret").write_bytes(b"a secret  " * 6)
    with edited("f.h5") as file:
        del file["id"]
        file.create_dataset("id", (6,), "S10", external=[("secret", 0, 60)])
    words = [command[0], "f.h5", command[1]] if command[0] == "convert" else [*command, "f.h5"]
    with pytest.raises(InputError, match="/id stores its values in another file, which is not read"):
        call(*words)
    assert not (tmp_path / "out.h5").exists()


def test_near_duplicates_are_listed_and_left_out_of_a_new_file(tmp_path):
    content = synthetic(classes=3, train=90, valid=15, test=60, dimensions=(12, 16))
    train, test = content.rows("train"), content.rows("test")
    features = {name: values.copy() for name, values in content.features.items()}
    for values in features.values():
        values[train[:25]] = values[test[:25]] + 1e-4
    write_features(tmp_path / "f.h5", replace(content, features=features))
    before = (tmp_path / "f.h5").read_bytes()
    shown = call("inspect", tmp_path / "f.h5")
    assert shown.stdout.count("near-duplicate: test ") == 20
    assert "and 5 more near-duplicates (--json lists all)" in shown.stdout
    assert "25 test clips are also in train, up to noise or encoding (25 by audio, 25 by visual)" in shown.stderr
    found = json.loads(call("inspect", tmp_path / "f.h5", "--json").stdout)["near_duplicates"]
    assert {(pair["id"], pair["other"]) for pair in found} == {
        (content.ids[one], content.ids[other]) for one, other in zip(test[:25], train[:25], strict=True)
    }
    result = call("convert", tmp_path / "f.h5", tmp_path / "g.h5", "--drop-duplicates", "train")
    assert "note: 25 train clips that are in two splits up to noise or encoding were left out" in result.stderr
    assert len(open_data(tmp_path / "g.h5").ids) == len(content.ids) - 25
    assert json.loads(call("inspect", tmp_path / "g.h5", "--json").stdout)["near_duplicates"] == []
    with pytest.raises(InputError, match="is the input; pass another output"):
        call("convert", tmp_path / "f.h5", tmp_path / "f.h5", "--drop-duplicates", "test")
    assert (tmp_path / "f.h5").read_bytes() == before
