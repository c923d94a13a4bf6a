"""Training by several processes, of which one is real and the others are simulated, and refusals of `fit`."""

from dataclasses import replace

import pytest

import aadml
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.errors import InputError
from aadml.runs.fit import check_processes, follow, resume_run
from aadml.runs.manifest import CONFIG
from aadml.runs.prepare import prepare
from aadml.runs.store import new_run
from aadml.runs.train import train_into
from tests.runs.conftest import SMALL


@pytest.fixture
def processes(monkeypatch):
    """Simulate one of several processes, whose first process sends `says`."""

    def processes(count, first=True, says=None):
        monkeypatch.setattr(group, "count", lambda: count)
        monkeypatch.setattr(group, "is_first", lambda: first)
        monkeypatch.setattr(group, "by_first", lambda compute: says or compute())

    return processes


def test_one_process_trains_anything_and_several_what_divides_batches(config, processes, tmp_path):
    linear = prepare(config("cca"))
    check_processes(linear)
    processes(2)
    message = "cca cannot be trained by several processes; start a single process without torchrun"
    with new_run(tmp_path / "run") as store:
        store.commit({CONFIG: config("cca").yaml().encode()})
    for call in (
        lambda: check_processes(linear),
        lambda: aadml.fit(config("cca").data, method="cca"),
        lambda: resume_run(tmp_path / "run"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    check_processes(prepare(config()))


def test_processes_with_different_data_or_configs_are_refused(config, processes, monkeypatch):
    mine, other = prepare(config()), prepare(config(seed=1))
    sums = []
    for one in (mine, other):
        processes(2)
        monkeypatch.setattr(group, "by_first", lambda compute: sums.append(compute()) or sums[-1])
        check_processes(one)
    assert sums[0]["data"] == sums[1]["data"]
    processes(2, first=False, says=sums[0])
    check_processes(mine)
    with pytest.raises(InputError, match="the config of this process and of the job's first process differ"):
        check_processes(other)
    with pytest.raises(InputError, match="the data of this process and of the job"):
        check_processes(replace(mine, sha256="0" * 64))


def test_another_process_than_the_first_trains_silently_and_writes_nothing(config, processes, monkeypatch, tmp_path):
    processes(1, first=False)
    monkeypatch.setattr("aadml.runs.fit.new_run_folder", lambda *_: tmp_path / "run")
    folders, data = [], config().data
    heard = {"on_run": folders.append, "on_epoch": lambda record: pytest.fail("heard")}
    model = aadml.fit(data, settings=SMALL, runs=tmp_path, **heard)
    assert folders == [model.folder] == [tmp_path / "run"]
    assert not model.folder.exists()


def test_a_following_process_trains_the_same_model_and_writes_nothing(config, tmp_path):
    prepared = prepare(config())
    followed = follow(prepared, tmp_path / "run")
    assert followed.folder == tmp_path / "run"
    assert followed.evaluation is None
    assert not (tmp_path / "run").exists()
    alone = train_into(config(), tmp_path / "own")
    assert all(value.equal(followed.method.state()[key]) for key, value in alone.method.state().items())


def test_what_cannot_become_or_continue_a_run_is_refused(config, tmp_path):
    with pytest.raises(InputError, match="fit: data has type list; pass text, a path"):
        aadml.fit([1, 2])
    splits = aadml.read(config("random").data)
    none = replace(splits, test=splits.test.select(splits.test.labels[:0]))
    with pytest.raises(InputError, match="the data have no test clips, but a run is scored on test clips"):
        aadml.fit(none, method="random", runs=tmp_path / "runs")
    assert aadml.fit(none, method="random").evaluation is None
    with new_run(tmp_path / "run"):
        pass
    with pytest.raises(InputError, match="was stopped before training began; start a new run"):
        resume_run(tmp_path / "run")
