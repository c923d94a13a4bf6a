"""How far long work is: a bar on a terminal, lines in a file."""

import io
import sys

import pytest

from aadml.feature_extraction.ground.progress_bar import LOG_SECONDS, Bar


def test_a_log_gets_whole_lines_now_and_then(clock, capsys):
    with Bar(400, "epoch", "training", done=100) as bar:
        for epoch in range(101, 111):
            clock[0] += LOG_SECONDS / 4
            bar.show(epoch, f"loss {epoch}")
    written = capsys.readouterr().err
    assert "\r" not in written
    lines = written.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["training:", "25%", "100/400"], ["training:", "26%", "104/400"], ["training:", "27%", "108/400"],
        ["training:", "28%", "110/400"],
    ]  # fmt: skip
    assert lines[-1].endswith(", loss 110]")


def test_a_bar_that_starts_later_shows_counts_and_is_closed_once(clock, capsys):
    bar = Bar(4000, "clip", "extract")
    clock[0] += LOG_SECONDS
    bar.start_from(1000)
    bar.show(2000)
    bar.close()
    bar.show(3000)
    bar.close()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" [")[0] for line in lines] == [
        "extract:   0% 0/4000", "extract:  25% 1000/4000", "extract:  50% 2000/4000",
    ]  # fmt: skip
    assert LOG_SECONDS == 30.0


def test_a_log_says_nothing_twice(clock, capsys):
    with Bar(2, "clip", "extract") as bar:
        bar.show(2)
        clock[0] += LOG_SECONDS
        bar.show(2)
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_terminal_gets_a_bar_that_is_drawn_over_itself(clock, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    with Bar(4, "clip", "rendering") as bar:
        clock[0] += 1
        bar.show(3)
    written = screen.getvalue()
    assert written.count("\n") == 1
    assert written.endswith("\n")
    assert "75%|" in written.split("\r")[-1]


def test_bytes_are_shown_in_millions_with_and_without_a_total(clock, capsys):
    for total in (72_000_000, None):
        with Bar(total, "B", "weights", done=18_000_000, scaled=True) as bar:
            bar.show(36_000_000)
    lines = [line.split(" [")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["weights:  25% 18.0M/72.0M", "weights:  50% 36.0M/72.0M", "weights: 18.0M", "weights: 36.0M"]


@pytest.mark.parametrize(("total", "done"), [(0, 0), (3, 5)])
def test_odd_totals_are_no_error(clock, capsys, total, done):
    with Bar(total, "clip", "extract") as bar:
        bar.show(done)
    assert capsys.readouterr().err.startswith("extract:")
