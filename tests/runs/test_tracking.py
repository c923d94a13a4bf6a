"""Trackers: every epoch reaches the tracker once, and a tracker that fails costs no training."""

import os
import sys
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError, MissingExtraError
from aadml.runs.tracking import TRACKERS
from tests.small_training import features  # noqa: F401

SMALL = {"network.hidden": [8], "training.batch": 20}


class StandIn:
    """A module with the calls of wandb, trackio and mlflow that are used here."""

    def __init__(self, log_error=None, config_error=None):
        self.opened, self.logged, self.closed, self.environment = [], [], 0, {}
        self._error, self._config_error = log_error, config_error

    def _log(self, values, step):
        if self._error:
            raise self._error
        self.logged.append((step, values))

    def _close(self):
        self.closed += 1

    def init(self, **options):
        self.environment = dict(os.environ)
        self.opened.append(options)
        return SimpleNamespace(log=self._log, finish=self._close)

    def set_experiment(self, name):
        self.experiment, self.environment = name, dict(os.environ)

    def start_run(self, run_name):
        self.opened.append({"name": run_name})

    def log_params(self, config):
        if self._config_error:
            raise self._config_error
        self.opened[-1]["config"] = config

    log = log_metrics = _log
    finish = end_run = _close


def train(features, track, **options):  # noqa: F811
    return aadml.fit(features, settings=SMALL, epochs=3, track=track, **options)


@pytest.mark.parametrize("name", ["wandb", "mlflow", "trackio"])
def test_every_epoch_is_logged_once(name, features, monkeypatch, tmp_path):  # noqa: F811
    module = StandIn()
    monkeypatch.setitem(sys.modules, name, module)
    seen = []
    model = train(features, name, on_epoch=seen.append, runs=tmp_path / "runs")
    assert [step for step, _ in module.logged] == [1, 2, 3]
    assert [values["loss"] for _, values in module.logged] == [record["loss"] for record in seen]
    assert (module.closed, len(module.opened)) == (1, 1)
    assert module.opened[0]["config"]["training.epochs"] == 3
    assert "aa-triplet" in module.opened[0]["name"]
    assert name != "wandb" or module.opened[0]["mode"] == "offline"
    assert model.folder.name in [path.name for path in (tmp_path / "runs").iterdir()]


@pytest.mark.slow  # TensorBoard imports TensorFlow where it is installed
def test_tensorboard_holds_the_epochs(features, monkeypatch, tmp_path):  # noqa: F811
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="needs tensorboard")
    monkeypatch.chdir(tmp_path)
    model = train(features, "tensorboard")
    (folder,) = (tmp_path / "tensorboard").iterdir()
    events = reader.EventAccumulator(str(folder))
    events.Reload()
    logged = [(event.step, event.value) for event in events.Scalars("loss")]
    assert logged == [(int(r["epoch"]), pytest.approx(r["loss"])) for r in model.records()]


def test_tensorboard_is_given_the_config_and_every_number(monkeypatch):
    calls = []

    class Writer:
        def __getattr__(self, name):
            return lambda *values: calls.append((name, *values))

    module = SimpleNamespace(SummaryWriter=lambda folder: calls.append(folder) or Writer())
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    with ExitStack() as closing:
        log = TRACKERS["tensorboard"]("own", {"k": 3, "data": "f.h5"}, closing)
        log({"loss": 1.5, "epoch": 2.0}, 2)
    assert calls == [
        "tensorboard/own", ("add_text", "config", "    k: 3\n    data: f.h5"), ("add_scalar", "loss", 1.5, 2),
        ("add_scalar", "epoch", 2.0, 2), ("close",),
    ]  # fmt: skip


def test_a_tracker_that_cannot_be_opened_ends_before_the_training(features, monkeypatch, tmp_path):  # noqa: F811
    def fail(**_):
        raise RuntimeError("no space\nleft")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=fail))
    runs = tmp_path / "runs"
    with pytest.raises(InputError, match=r"^wandb: the tracker cannot be opened \(no space\); correct its setup, "):
        train(features, "wandb", runs=runs)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match="track=mlflow needs mlflow, which is not installed"):
        train(features, "mlflow", runs=runs)
    with pytest.raises(InputError, match="tracker"):
        train(features, "wandbb", runs=runs)
    assert not runs.exists()


def test_a_tracker_that_fails_later_is_left_with_one_note(features, monkeypatch):  # noqa: F811
    monkeypatch.setitem(sys.modules, "trackio", StandIn(log_error=OSError("gone")))
    notes = []
    model = train(features, "trackio", on_note=notes.append)
    assert model.evaluation is not None
    assert sys.modules["trackio"].closed == 1
    assert [note for note in notes if "trackio" in note] == [
        "warning: the tracker trackio failed, so nothing more is logged in it (gone)"
    ]


def test_what_a_tracker_prints_is_not_a_result(features, monkeypatch, capsys):  # noqa: F811
    module = StandIn()
    module.init = lambda **options: sys.stdout.write("Created new run\n")
    module.finish = lambda: sys.stdout.write("Run finished\n")
    monkeypatch.setitem(sys.modules, "trackio", module)
    train(features, "trackio")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert {"Created new run", "Run finished"} <= set(printed.err.splitlines())


def test_mlflow_gets_names_that_it_accepts(monkeypatch):
    module = StandIn()
    monkeypatch.setitem(sys.modules, "mlflow", module)
    log = TRACKERS["mlflow"]("run", {"a:b.k": 3}, ExitStack())
    log({"recall@10": 0.5, "audio/loss-a.b c": 1.0}, 1)
    assert module.opened[0]["config"] == {"a_b.k": 3}
    assert module.logged == [(1, {"recall_10": 0.5, "audio/loss-a.b c": 1.0})]


def test_a_run_of_mlflow_whose_config_is_refused_is_closed(features, monkeypatch):  # noqa: F811
    module = StandIn(config_error=ValueError("Changing param values is not allowed"))
    monkeypatch.setitem(sys.modules, "mlflow", module)
    with pytest.raises(InputError, match=r"^mlflow: the tracker cannot be opened \(Changing param values"):
        train(features, "mlflow")
    assert (len(module.opened), module.closed) == (1, 1)


def test_values_of_a_config_fit_every_server_of_mlflow(monkeypatch):
    module = StandIn()
    monkeypatch.setitem(sys.modules, "mlflow", module)
    TRACKERS["mlflow"]("run", {"data": "x" * 7000, "k": 3}, ExitStack())
    assert module.opened[0]["config"] == {"data": "x" * 500, "k": 3}


@pytest.mark.parametrize(
    ("name", "variable", "value"),
    [("mlflow", "MLFLOW_DISABLE_TELEMETRY", "true"), ("wandb", "WANDB_ERROR_REPORTING", "false")],
)
def test_trackers_send_no_statistics_of_use_unless_the_user_says_so(name, variable, value, monkeypatch):
    monkeypatch.delenv(variable, raising=False)
    for expected in (value, "chosen"):
        monkeypatch.setitem(sys.modules, name, module := StandIn())
        TRACKERS[name]("run", {}, ExitStack())
        assert module.environment[variable] == expected
        monkeypatch.setenv(variable, "chosen")


def test_a_resumed_run_continues_its_steps(features, monkeypatch, tmp_path):  # noqa: F811
    def stop(record):
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(features, None, runs=tmp_path, on_epoch=stop)
    module = StandIn()
    monkeypatch.setitem(sys.modules, "trackio", module)
    (folder,) = tmp_path.glob("*-seed0")
    aadml.resume(folder, track="trackio")
    assert [step for step, _ in module.logged] in ([2, 3], [3])
