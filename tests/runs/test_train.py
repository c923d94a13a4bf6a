"""Training into a folder: a new run, or the rest of an interrupted one."""

from types import SimpleNamespace

import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks
from aadml.runs.train import train_into


def test_a_run_continued_by_other_processes_says_that_it_is_equal_up_to_rounding(config, monkeypatch, tmp_path):
    class StopError(Exception):
        pass

    def stop(record):
        raise StopError

    with pytest.raises(StopError):
        train_into(config(**{"training.epochs": 2}), tmp_path / "run", callbacks=Callbacks(on_epoch=stop))
    monkeypatch.setattr("aadml.runs.train.group", SimpleNamespace(count=lambda: 3, own_device=lambda device: device))
    said = []
    train_into(config(**{"training.epochs": 2}), tmp_path / "run", on_note=said.append)
    assert any("continued by 3; its results may differ by rounding errors" in message for message in said)


def test_a_folder_of_another_config_or_of_other_data_is_not_trained_into(config, tmp_path):
    first = train_into(config(), tmp_path / "run")
    assert train_into(config(), tmp_path / "run").evaluation == first.evaluation
    with pytest.raises(
        InputError, match="contains a run of a different config; remove this run, or choose another folder"
    ):
        train_into(config(seed=1), tmp_path / "run")
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8), seed=5))
    with pytest.raises(InputError, match=r"the data have changed since .* was begun; start a new run"):
        train_into(config(), tmp_path / "run")
