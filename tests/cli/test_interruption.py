"""Ctrl-C and SIGTERM: one line that says how to go on, and exit code 130 or 143."""

import signal
import subprocess
import sys

import pytest

from aadml import cli
from aadml.comparison.processes import launch

AGAIN = "aadml: interrupted; run the same command again to continue"
ANEW = "aadml: interrupted; run the same command again"  # and every clip is rendered anew
PLAIN = "aadml: interrupted; no partial output is left"
CALLS = {
    "extract": (["manifest.csv", "-o", "f.h5"], "aadml.feature_extraction.jobs.job.extract", AGAIN),
    "index": (["f.h5", "-o", "f.idx"], "aadml.search.build_index.build", AGAIN),
    "ablate": (["--over", "proxy.k=1,2", "--data", "features.h5"], "aadml.studies.sweep.sweep", AGAIN),
    "train": (["--data", "features.h5"], "aadml.runs.fit.fit", PLAIN),
    "sample-data": (["clips"], "aadml.data.sample_clips.sample_data", ANEW),
    "inspect": (["f.h5"], "aadml.data.inspection.inspection.inspect", PLAIN),
}


TERMINATED = """
import errno, fcntl, os, signal
from aadml.cli import main
from aadml.feature_extraction.jobs import extract

def without_flock(*_):
    raise OSError(errno.ENOLCK, "No locks available")

def terminate(job, _):
    assert "lock.host" in os.listdir(job.plan.output.name + ".work")
    os.kill(os.getpid(), signal.SIGTERM)

fcntl.flock, extract._run = without_flock, terminate
main()
"""


@pytest.mark.parametrize("command", CALLS)
def test_an_interrupted_command_says_once_how_to_go_on(command, features, tmp_path, monkeypatch, capsys):
    words, place, said = CALLS[command]

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifest.csv").write_text("id,media,label,split\na,a.wav,x,train\n")
    monkeypatch.setattr(place, interrupt)
    monkeypatch.setattr(sys, "argv", ["aadml", command, *words])
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 130
    lines = capsys.readouterr().err.replace("\r", "\n").splitlines()
    assert [line for line in lines if "interrupted" in line] == [said]


def test_a_terminated_job_releases_its_lock(tmp_path):
    (tmp_path / "m.csv").write_text("id,media\na,a.wav\n")
    command = [sys.executable, "-c", TERMINATED, "extract", "m.csv", "-o", "f.h5", "--audio", "log-mel"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (143, [AGAIN])
    assert sorted(path.name for path in (tmp_path / "f.h5.work").iterdir()) == ["records.jsonl", "values.f32"]


@pytest.mark.parametrize(
    ("is_worker", "caught"),
    [
        (False, [signal.SIGINT, signal.SIGTERM]),
        (True, [signal.SIGINT]),  # torchrun stops its workers by SIGTERM
    ],
)
def test_other_handlers_of_signals_stay(is_worker, caught, monkeypatch):
    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(signal, "getsignal", handlers.__getitem__)
    monkeypatch.setattr(launch, "started", lambda: is_worker)
    launch.one_voice()
    interruption = cli._interruption()
    assert [number for number, handler in handlers.items() if handler is interruption] == caught
    assert (handlers[signal.SIGTERM] is launch._stopped) == is_worker


SERVED = """
import os, signal, sys
if "ignored" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
from aadml import cli
from aadml.search import app
app.serve = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)
cli.main()
"""


@pytest.mark.parametrize(("index", "status"), [("i", -signal.SIGTERM), ("ignored", 0)])
def test_a_server_ends_by_the_signal_itself_unless_the_signal_is_ignored(index, status):
    done = subprocess.run([sys.executable, "-c", SERVED, "serve", index], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, "")
