"""What people see while a training runs: epochs, steps of slow epochs, warnings as one line each."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from aadml.cli.progress import TrainingProgress, warn
from aadml.cli.sweeps import SweepProgress
from aadml.feature_extraction.ground.progress_bar import LOG_SECONDS


@pytest.fixture
def shown(clock):
    """A progress whose bar is never drawn by time."""
    one = TrainingProgress()
    one.plan(3, 0)
    yield one, clock
    one.close()


def test_a_slow_epoch_shows_its_steps(shown):
    one, clock = shown
    one.step(1)
    assert not one._bar.remark, "an epoch that is quick shows no steps"
    clock[0] += 2
    one.step(7)
    assert one._bar.remark == "step 7"
    one.epoch({"loss": 0.25, "steps": 40})
    assert one._bar.remark == "loss 0.25"
    clock[0] += 2
    one.step(8)
    assert one._bar.remark == "step 8/40, loss 0.25"
    assert one._bar.done == 1


def test_a_method_that_chooses_by_recall_shows_the_mean_of_its_maps(shown):
    one, _ = shown
    one.epoch({"loss": 1.5, "valid recall_sum": 2.0, "valid map text-audio": 0.25, "valid map audio-text": 0.75})
    assert one._bar.remark == "loss 1.5, MAP 0.5000"


def test_a_model_trained_before_another_has_a_bar_of_its_own(shown):
    one, clock = shown
    one.epoch({"loss": 0.25, "steps": 40})
    first = one._bar
    one.plan(5, 2)
    assert first.closed, "it was closed"
    assert (one._bar.total, one._bar.done) == (5, 2)
    clock[0] += 2
    one.step(3)
    assert one._bar.remark == "step 3", "the steps of the other model's epochs say nothing of these"


def test_a_note_clears_the_bar_of_a_terminal_and_draws_it_again_below(clock, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    one = TrainingProgress()
    one.plan(3, 0)
    warn("clip.wav: left out, no sound")
    one.close()
    before, after = screen.getvalue().split("aadml: warning: clip.wav: left out, no sound\n")
    assert not before.split("\r")[-1].strip(), "the bar was cleared"
    assert after.split("\r")[1].startswith("training:   0%|")


def test_a_session_counts_the_steps_of_each_epoch():
    from aadml.methods.training.session import Callbacks, Session

    seen = []
    session = Session(Callbacks(on_step=seen.append))
    for number in (1, 2):
        session.step(number)
    Session().step(1)
    assert seen == [1, 2]


def outcome(name, reason="", *, was_finished=False):
    return SimpleNamespace(job=SimpleNamespace(folder=Path(name)), reason=reason, was_finished=was_finished)


def test_the_time_left_before_the_first_run_ends_excludes_the_start_of_the_processes(clock, capsys):
    bar, seconds = SweepProgress(10), [0.0]
    inner = bar._bar._bar
    inner._time, inner.start_t, inner.last_print_t = lambda: seconds[0], 0.0, 0.0
    run = SimpleNamespace(folder=Path("a"))
    for seconds[0], epoch in ((60.0, 1), (69.0, 10)):
        clock[0] += LOG_SECONDS
        bar.epoch(run, epoch, 100)
    bar.close()
    assert "0.1/10 [00:09<16:" in capsys.readouterr().err


def test_runs_that_go_on_count_by_their_epochs(clock, capsys):
    bar = SweepProgress(4)
    bar.outcome(outcome("a", was_finished=True))
    one, two = (SimpleNamespace(folder=Path(name)) for name in "bc")
    clock[0] += LOG_SECONDS
    bar.epoch(one, 1, 4)
    clock[0] += LOG_SECONDS
    bar.epoch(two, 2, 4)
    clock[0] += LOG_SECONDS
    bar.outcome(outcome("b", "no space"))
    bar.close()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" [")[0].split()[-1] for line in lines[:4]] == ["0/4", "1.25/4", "1.75/4", "2.5/4"]
    assert lines[2].endswith(", epoch 1/4, 2/4]")
    assert lines[4:] == ["aadml: b failed: no space", "aadml: 1 run was finished earlier and kept"]
