"""A run with cross-batch memory: a queue that was cut off goes on as if it had not been."""

import pytest
import torch

import aadml
from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import parse_setting, with_setting
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.methods.training.session import Callbacks
from aadml.runs.train import train_into


class KilledError(Exception):
    pass


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))
    values = open_config("aadml").values
    settings = ("training.batch=20", "training.epochs=3", "network.hidden=[8]", "loss=xbm-supcon", "proxy.size=30")
    for setting in (f"data={path}", *settings):
        values = with_setting(values, *parse_setting(setting))
    return resolve(values)


@pytest.mark.slow
def test_a_queue_that_was_cut_off_goes_on_to_the_same_bytes(config, tmp_path):
    def die(record):
        if record["epoch"] == 2:
            raise KilledError

    with pytest.raises(KilledError):
        train_into(config, tmp_path / "cut", callbacks=Callbacks(on_epoch=die))
    train_into(config, tmp_path / "cut")
    train_into(config, tmp_path / "whole")
    cut, whole = (aadml.load(tmp_path / name).method.state() for name in ("cut", "whole"))
    assert cut.keys() == whole.keys()
    assert all(torch.equal(cut[name], whole[name]) for name in whole)
    assert not any("remembered" in name for name in whole)


@pytest.mark.slow
def test_what_is_remembered_changes_what_is_learned(config, tmp_path):
    alone = resolve(with_setting(config.values, "proxy.size", 20))
    for name, one in (("memory", config), ("alone", alone)):
        train_into(one, tmp_path / name)
    with_it, without = (aadml.load(tmp_path / name).method.state() for name in ("memory", "alone"))
    assert any(not torch.equal(with_it[name], without[name]) for name in without)
