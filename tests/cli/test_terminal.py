"""Texts from files do not control the terminal: titles, colors, deleted lines, forged lines."""

import csv
import io
import sys
from dataclasses import replace

import numpy as np
import pytest

from aadml.cli.progress import note
from aadml.cli.terminal import echo, echo_path
from aadml.data.sample_clips import sample_data
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features

HOSTILE = "\x1b]0;owned\x07\x1b[2K\x9b31m\nwarning: forged"
SHOWN = r"\x1b]0;owned\x07\x1b[2K\x9b31m\nwarning: forged"


@pytest.fixture
def hostile(tmp_path):
    """A feature file whose class names, extractor, column and labels control a terminal."""
    content = synthetic(classes=2, train=40, valid=10, test=20, dimensions=(6, 8), difficulty=0.2)
    provenance = {name: {"extractor": f"e{HOSTILE}"} for name in content.features}
    path = tmp_path / "hostile.h5"
    write_features(path, replace(
        content, class_names=(f"a{HOSTILE}", "b"), provenance=provenance, columns={f"c{HOSTILE}": content.splits},
    ))  # fmt: skip
    return path


def controls(text):
    return [letter for letter in text if letter != "\n" and not letter.isprintable()]


def test_inspect_and_evaluate_escape_names_of_files(aadml, hostile, tmp_path):
    code, out, err = aadml("inspect", hostile)
    assert (code, controls(out + err)) == (0, []), err
    for name in ("a", "c", "  from e"):
        assert f"{name}{SHOWN}" in out
    assert "\nwarning: forged" not in out + err
    code, out, err = aadml("train", "--data", hostile, "--method", "random", "--runs", tmp_path / "runs")
    assert (code, controls(out + err)) == (0, []), err
    code, out, err = aadml("evaluate", tmp_path / "runs", "--by-class")
    assert (code, controls(out + err)) == (0, []), err
    assert f"a{SHOWN}  " in out
    assert "\nwarning: forged" not in out


def test_convert_escapes_its_notes(aadml, tmp_path):
    content = {"audio": np.eye(6, 3), "visual": np.eye(6, 4), "label": [f"a{HOSTILE}", "b"] * 3, f"o{HOSTILE}": [1] * 6}
    np.savez(tmp_path / "plain.npz", **content, split=["train"] * 4 + ["test"] * 2)
    code, out, err = aadml("convert", tmp_path / "plain.npz", tmp_path / "o.h5")
    assert code == 0, err
    assert (controls(out), controls(err)) == ([], [])
    code, out, err = aadml("index", tmp_path / "o.h5", "-o", tmp_path / "o.index")
    assert (code, controls(out + err)) == (0, []), err


def test_a_note_is_one_line(capsys):
    note(HOSTILE)
    assert capsys.readouterr().err == f"aadml: {SHOWN}\n"


def test_lines_are_printed_as_they_are_with_line_ends_between_them(capsys):
    echo("", "a  b", "ü")
    assert capsys.readouterr().out == "\na  b\nü\n"


def test_a_path_is_printed_with_its_bytes_except_on_a_terminal(monkeypatch):
    for is_terminal, shown in ((False, f"run{HOSTILE}\n"), (True, f"run{SHOWN}\n")):
        screen = io.StringIO()
        screen.isatty = lambda is_terminal=is_terminal: is_terminal
        monkeypatch.setattr(sys, "stdout", screen)
        echo_path(f"run{HOSTILE}")
        assert screen.getvalue() == shown


@pytest.mark.slow
def test_search_escapes_labels_and_captions(aadml, tmp_path):
    manifest = sample_data(tmp_path / "clips", clips=10, seconds=0.5, workers=1)
    with manifest.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with manifest.open("w", newline="") as file:
        table = csv.DictWriter(file, [*rows[0], "caption"])
        table.writeheader()
        table.writerows(row | {"label": f"l{HOSTILE}", "caption": f"c{HOSTILE}"} for row in rows)
    code, out, err = aadml("index", manifest, "-o", tmp_path / "i", "--workers", "1")
    assert (code, controls(out + err)) == (0, []), err
    code, out, err = aadml("search", tmp_path / "i", "--audio", manifest.parent / rows[0]["media"], "--to", "audio")
    assert (code, controls(out + err)) == (0, []), err
    assert out.count(f"l{SHOWN}") == 10
    assert len(out.splitlines()) == 12  # two lines above the hits
