"""Training into a folder: a new run, or the rest of an interrupted one."""

from types import SimpleNamespace

import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import Callbacks
from aadml.runs import train
from aadml.runs.manifest import read_manifest
from aadml.runs.scoring import Scoring
from aadml.runs.train import continued_config, train_into


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
    assert any("and is 3 now; the results may differ by rounding errors" in message for message in said)


def test_a_metric_of_more_items_than_are_scored_is_refused_before_the_training(config, tmp_path):
    with pytest.raises(InputError, match="recall@10"):
        train_into(config(), tmp_path / "run", Scoring(metrics=("recall@10",)))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("finished", [True, False])
def test_a_pretrained_model_is_scored_plainly_in_its_own_folder(monkeypatch, tmp_path, finished):
    calls, notes, taken = [], [], []
    monkeypatch.setattr(train, "prior_config", lambda config, prior: SimpleNamespace(label=lambda: "small"))
    monkeypatch.setattr(train, "prior_folder", lambda place, config, prior: place / "own")
    monkeypatch.setattr(train, "is_finished", lambda folder: finished)
    monkeypatch.setattr(
        train, "train_into", lambda config, folder, scoring, **_: calls.append((folder, scoring)) or result
    )
    result = SimpleNamespace(method="trained")
    method = SimpleNamespace(prior=lambda: SimpleNamespace(name="ancillary"), take_prior=taken.append)
    prepared = SimpleNamespace(model=SimpleNamespace(method=method), config=None, splits=None)
    scoring = Scoring(split="valid", queries=True, metrics=("map",), diagnosis=3, saving_share=7)
    train.train_prior(prepared, scoring, tmp_path, callbacks=Callbacks(), on_note=notes.append)
    assert calls == [(tmp_path / "own", Scoring(split="valid", queries=True, saving_share=7))]
    place = f"{'loaded from' if finished else 'trained in'} {tmp_path / 'own'}"
    assert (notes, taken) == ([f"the ancillary model (small) is {place}"], ["trained"])


def test_a_folder_of_another_config_or_of_other_data_is_not_trained_into(config, tmp_path):
    first = train_into(config(), tmp_path / "run")
    assert train_into(config(), tmp_path / "run").evaluation == first.evaluation
    with pytest.raises(
        InputError, match=r"a run of a different config \(seed is 0 instead of 1\); remove this run, or choose another"
    ):
        train_into(config(seed=1), tmp_path / "run")
    with pytest.raises(InputError, match=r"different config \(data is .* instead of https://host/f\.h5\)") as error:
        continued_config(read_manifest(tmp_path / "run"), config().on("https://me:secret@host/f.h5?sig=SECRET"))
    assert "secret" not in str(error.value).lower()
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8), seed=5))
    with pytest.raises(
        InputError, match=r"the data have changed since .* was begun, or another version of aadml .*; start a new run"
    ):
        train_into(config(), tmp_path / "run")
