"""What several processes are refused, and what each of them does: seen from one, the others are played."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

import aadml
from aadml.configuration.from_arguments import assemble
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.training.session import SILENT, Callbacks
from aadml.runs import distributed
from aadml.runs.fit import resume_run
from aadml.runs.prepare import prepare
from aadml.runs.store import begun
from aadml.runs.train import train_into

SMALL = {"network.hidden": [4], "training.batch": 15, "training.epochs": 1}


@pytest.fixture
def config(tmp_path):
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8)))

    def config(method="aadml", **changes):
        settings = changes if method != "aadml" else SMALL | changes
        return assemble(method=method, data=str(tmp_path / "f.h5"), settings=settings)

    return config


@pytest.fixture
def processes(monkeypatch):
    """Play one of several processes, whose first one has this to say."""

    def processes(count, first=True, says=None):
        monkeypatch.setattr(distributed.group, "count", lambda: count)
        monkeypatch.setattr(distributed.group, "is_first", lambda: first)
        monkeypatch.setattr(distributed.group, "by_first", lambda compute: says or compute())

    return processes


def test_one_process_trains_anything_and_several_what_divides_batches(config, processes):
    linear = prepare(config("cca"))
    distributed.check_together(linear)
    processes(2)
    with pytest.raises(InputError, match="cca: trains in one process; several train aadml"):
        distributed.check_together(linear)
    distributed.check_together(prepare(config()))


def test_processes_that_were_given_other_things_are_refused(config, processes, monkeypatch):
    mine, other = prepare(config()), prepare(config(seed=1))
    sums = []
    for one in (mine, other):
        processes(2)
        monkeypatch.setattr(distributed.group, "by_first", lambda compute: sums.append(compute()) or sums[-1])
        distributed.check_together(one)
    assert sums[0]["data"] == sums[1]["data"]
    processes(2, first=False, says=sums[0])
    distributed.check_together(mine)
    with pytest.raises(InputError, match="this process has other config than the first one of the job"):
        distributed.check_together(other)
    with pytest.raises(InputError, match="this process has other data"):
        distributed.check_together(replace(mine, sha256="0" * 64))


def test_the_first_process_makes_the_folder_and_tells_of_the_training(processes, tmp_path):
    made = []
    assert distributed.folder_of_all(lambda: made.append(1) or tmp_path) == tmp_path
    assert made == [1]
    heard = Callbacks(on_epoch=made.append)
    assert distributed.callbacks_of_one(heard) is heard
    processes(2, first=False, says={"folder": str(tmp_path / "theirs")})
    assert distributed.folder_of_all(lambda: pytest.fail("made twice")) == tmp_path / "theirs"
    assert distributed.callbacks_of_one(heard) is SILENT


def test_who_follows_trains_the_same_and_writes_nothing(config, tmp_path):
    prepared = prepare(config())
    followed = distributed.follow(prepared, tmp_path / "run")
    assert followed.folder == tmp_path / "run"
    assert followed.evaluation is None
    assert not (tmp_path / "run").exists()
    alone = train_into(config(), tmp_path / "own")
    assert all(value.equal(followed.method.state()[key]) for key, value in alone.method.state().items())


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
    assert "begun by 1 processes, continued by 3: equal up to rounding alone" in said


def test_a_folder_of_another_config_or_of_other_data_is_not_trained_into(config, tmp_path):
    first = train_into(config(), tmp_path / "run")
    assert train_into(config(), tmp_path / "run").evaluation == first.evaluation
    with pytest.raises(InputError, match="holds a run of another config; remove it, or choose another folder"):
        train_into(config(seed=1), tmp_path / "run")
    write_features(tmp_path / "f.h5", synthetic(classes=3, train=30, valid=9, test=9, dimensions=(6, 8), seed=5))
    with pytest.raises(InputError, match=r"the data changed since .* was begun; start a new run"):
        train_into(config(), tmp_path / "run")


def test_what_cannot_become_or_continue_a_run_is_refused(config, tmp_path):
    with pytest.raises(InputError, match="fit: data of type list; possible are text, a path"):
        aadml.fit([1, 2])
    splits = aadml.read(config("random").data)
    none = replace(splits, test=splits.test.select(splits.test.labels[:0]))
    with pytest.raises(InputError, match="a run is scored on its test clips, and there are none"):
        aadml.fit(none, method="random", runs=tmp_path / "runs")
    assert aadml.fit(none, method="random").evaluation is None
    with begun(tmp_path / "run"):
        pass
    with pytest.raises(InputError, match="was stopped before it began; start it again"):
        resume_run(tmp_path / "run")
