"""A crash of a decoder costs the clip that causes it, and no other: a seeded sample of `scripts/soak/pictures.py`."""

import importlib.util
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "scripts" / "soak" / "pictures.py"


@pytest.fixture(scope="module")
def pictures():
    spec = importlib.util.spec_from_file_location("soak_pictures", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_with_profiles_are_described_alike_in_every_run(pictures, tmp_path):
    report = pictures.profiles(tmp_path / "a", 40, 2, 0, 1)
    assert report.startswith("40 pictures with ICC profiles, 2 runs, 0 lost, 1 content")


def test_crashes_are_charged_to_the_clips_that_cause_them(pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    report = pictures.crashes(tmp_path / "b", {pictures.GOOD: 8, pictures.RED: 3, pictures.BLUE: 2}, 0, 2)
    assert "| 8 good | 8 | 0 |" in report
    assert "| 3 that kill their process | 0 | 3 crashed: the decoding process ended with SIGSEGV |" in report
    assert "| 2 that kill it at the next clip | 2 | 0 |" in report
