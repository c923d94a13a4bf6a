"""Features that stay in their file: the same weights and scores to the byte as from memory, in a fraction of it."""

import tracemalloc

import pytest
import torch
from click.testing import CliRunner

import aadml
from aadml.cli import cli
from aadml.comparison import moments, stored_rows
from aadml.comparison.stored_rows import StoredRows
from aadml.data.inspection import column_statistics
from aadml.data.reading import open_data
from aadml.data.splitting.splits import to_splits
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import rows
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.methods import METHODS
from aadml.methods.inputs import fit_scaling
from aadml.runs import environment
from aadml.runs.environment import data_hash
from tests.edited_hdf5 import edited

FAST = ("aadml", "cca", "pairs", "agah")
CAPTIONED = ("audio-text", "3cmlf", "xie")
UNTRAINED = "zero-shot"
FEW = {"method.dimension": 3}
SETTINGS = {
    **dict.fromkeys(("cca", "c-cca", "tnn-c-cca"), FEW),
    "c-dcca": {"training.batch": 60, "method.outputs": 3} | FEW,
    "kcca": {},
    "random": {},
    "pairs": {"training.batch": 20, "training.criterion": "map"},
}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=0, test=15, dimensions=(6, 8), difficulty=0.2))
    return path


@pytest.fixture
def all_large(monkeypatch):
    """Have arrays of any size stay where they are, from when it is called on."""
    return lambda: monkeypatch.setattr(rows, "LARGE", 1)


def trained(features, **wanted):
    model = aadml.fit(features, **wanted)
    evaluation = {key: value for key, value in model.evaluation.items() if key != "seconds"}
    return model.method.state(), evaluation, model.embed_clips(aadml.read(features).test).vectors


def same(features, all_large, **wanted):
    state, evaluation, vectors = trained(features, **wanted)
    all_large()
    assert isinstance(aadml.read(features).train["audio"], StoredRows)
    state_again, evaluation_again, vectors_again = trained(features, **wanted)
    assert state.keys() == state_again.keys()
    assert all(torch.equal(value, state_again[key]) for key, value in state.items())
    assert evaluation == evaluation_again
    assert all(torch.equal(value, vectors_again[m]) for m, value in vectors.items())


@pytest.mark.parametrize(
    "name",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in METHODS
        if name not in (*CAPTIONED, UNTRAINED)
    ],
)
def test_every_method_learns_the_same_from_rows_that_stay_in_their_file(features, all_large, name):
    few = {} if SETTINGS.get(name) in ({}, FEW) else {"epochs": 2}
    same(features, all_large, method=name, settings=SETTINGS.get(name, {"training.batch": 20}), **few)


@pytest.mark.parametrize("settings", [{"proxy.space": "input"}, {"inputs.scaling": "minmax"}])
def test_proxies_and_scalings_do_too(features, all_large, settings):
    settings = {"training.batch": 20, "network.hidden": [16], **settings}
    same(features, all_large, loss="aa-triplet", settings=settings, epochs=2)


def test_chunked_files_give_what_files_in_one_piece_give(features, all_large, tmp_path):
    chunked = tmp_path / "chunked.h5"
    chunked.write_bytes(features.read_bytes())
    with edited(chunked) as file:
        for name in ("audio", "visual"):
            values, origin = file[name][()], dict(file[name].attrs)
            del file[name]
            file.create_dataset(name, data=values, chunks=(7, 3), compression="gzip")
            file[name].attrs.update(origin)
    all_large()
    one, other = (aadml.read(path) for path in (features, chunked))
    for part in ("train", "valid", "test"):
        assert all(torch.equal(one[part].matrix(m), other[part].matrix(m)) for m in ("audio", "visual"))


def test_commands_take_files_that_stay_where_they_are(features, all_large, tmp_path):
    all_large()
    given, runs = str(features), str(tmp_path / "runs")

    def said(*words):
        result = CliRunner().invoke(cli, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.stdout

    run = said("train", "--data", given, "--loss", "triplet", "--epochs", 1, "--runs", runs).splitlines()[-1]
    assert "audio" in said("inspect", given)
    assert "MAP" in said("evaluate", run, "--data", given)
    said("embed", run, given, "-o", tmp_path / "embedded.h5")
    said("convert", given, tmp_path / "again.h5")
    assert (tmp_path / "again.h5").read_bytes() == features.read_bytes()


def test_reading_dividing_hashing_and_examining_hold_a_part_of_the_file_at_a_time(tmp_path, all_large, monkeypatch):
    path = tmp_path / "wide.h5"
    write_features(path, synthetic(classes=3, train=3000, valid=200, test=300, dimensions=(8, 1024)))
    all_large()
    for module, name in ((rows, "_BYTES"), (column_statistics, "_BYTES"), (moments, "_NUMBERS_AT_ONCE")):
        monkeypatch.setattr(module, name, 1 << 18)
    monkeypatch.setattr(stored_rows, "BLOCK", 64)
    monkeypatch.setattr(environment, "_ROWS_AT_ONCE", 64)
    aadml.read("synthetic:ave")  # what is imported on the way
    tracemalloc.start()
    content = open_data(path)
    splits = to_splits(content)
    data_hash(splits)
    fit_scaling(splits.train).clips(splits.train)
    for name, values in content.features.items():
        column_statistics.compute_statistics(values, content.has(name))
        column_statistics.row_hashes(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size * 0.4
