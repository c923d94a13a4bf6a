"""Advice for options and arguments that a command does not have."""

import sys

import pytest

from aadml.cli import main


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("compare --device cpu", "No such option '--device'; pass --set device=VALUE"),
        ("compare --batch 5", "No such option '--batch'; pass --set training.batch=VALUE"),
        ("train --learning-rate 5", "No such option '--learning-rate'; pass --set training.learning_rate=VALUE"),
        (
            "ablate --loss triplet",
            "No such option '--loss'; pass --set loss=VALUE, or --over loss=A,B to compare values",
        ),
        ("train F.h5", "Got unexpected extra argument (F.h5); pass data as --data FILE"),
        ("search --device cpu", "No such option '--device'."),
        ("evaluate runs other", "Got unexpected extra argument (other); pass data as --data FILE"),
        ("inspect a b", "Got unexpected extra argument (b)"),
    ],
)
def test_an_unknown_option_is_answered_with_the_one_that_works(line, advice, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["aadml", *line.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"Error: {advice}")


def test_an_unknown_word_is_echoed_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["aadml", "tr\nain" + "x" * 300])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("Error: 'tr\\nain")
    assert len(last) < 500
