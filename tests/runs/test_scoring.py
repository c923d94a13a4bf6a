"""What a run cost: seconds and parameters, in its evaluation."""

import pytest

from aadml.configuration.config import resolve
from aadml.configuration.files import open_config
from aadml.configuration.overrides import parse_setting, with_setting
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.methods.training.session import Callbacks, Session
from aadml.runs.loading import read_evaluation
from aadml.runs.prepare import prepare
from aadml.runs.scoring import TEST, score_model
from aadml.runs.session import read_records
from aadml.runs.train import train_into


class KilledError(Exception):
    pass


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "features.h5"
    write_features(path, synthetic(classes=3, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.2))

    def resolved(name, *settings):
        values = open_config(name).values
        for setting in (f"data={path}", "training.batch=30", *settings):
            values = with_setting(values, *parse_setting(setting))
        return resolve(values)

    return resolved


def test_the_evaluation_says_how_long_fitting_took_and_how_much_was_fitted(config, tmp_path):
    result = train_into(config("cca", "method.dimension=2"), tmp_path / "run").evaluation
    assert result["parameters"] == 6 + 8 + 2 * (6 + 8)
    assert result["seconds"] > 0
    stored = read_evaluation(tmp_path / "run")
    assert (stored.seconds, stored.parameters) == (result["seconds"], result["parameters"])


def test_the_seconds_of_fitting_are_rounded_to_thousandths(config):
    prepared = prepare(config("random"))
    record = score_model(prepared.model, prepared.config, prepared.splits, Session(), 1.23456)
    assert (record.seconds, record.epochs, record.steps, record.train_map) == (1.235, None, None, None)


def test_a_training_saves_every_epoch_and_scores_the_test_clips_once_unless_told_otherwise():
    assert (TEST.split, TEST.queries, TEST.metrics, TEST.diagnosis, TEST.saving_share) == ("test", False, (), 0, 0)


def test_the_seconds_of_an_interrupted_training_are_those_of_all_its_epochs(config, tmp_path):
    complete = config("cctl", "network.hidden=[8]", "training.epochs=4")

    def die(record):
        if record["epoch"] == 3:
            raise KilledError

    with pytest.raises(KilledError):
        train_into(complete, tmp_path / "run", callbacks=Callbacks(on_epoch=die))
    result = train_into(complete, tmp_path / "run").evaluation
    epochs = [record["seconds"] for record in read_records(tmp_path / "run")]
    assert len(epochs) == 4
    assert result["seconds"] >= sum(epochs)
