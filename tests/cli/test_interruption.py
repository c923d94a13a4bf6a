"""Ctrl-C: one line that says how to go on, and exit code 130."""

import sys

import pytest

from aadml import cli

AGAIN = "aadml: interrupted; run the same command again to continue"
PLAIN = "aadml: interrupted; no partial output is left"
CALLS = {
    "extract": (["manifest.csv", "-o", "f.h5"], "aadml.feature_extraction.jobs.job.extract", AGAIN),
    "index": (["f.h5", "-o", "f.idx"], "aadml.search.build_index.build", AGAIN),
    "ablate": (["--over", "proxy.k=1,2", "--data", "features.h5"], "aadml.studies.sweep.sweep", AGAIN),
    "train": (["--data", "features.h5"], "aadml.runs.fit.fit", PLAIN),
    "sample-data": (["clips"], "aadml.data.sample_clips.sample_data", AGAIN),
    "inspect": (["f.h5"], "aadml.data.inspection.inspection.inspect", PLAIN),
}


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
