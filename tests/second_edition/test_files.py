"""Files that the second edition wrote give what they gave then, by the public face alone.

`make.py` wrote them at the commit that `results.json` names, and `reading.py` computes the results. Tensors are
compared by hash on the machine of the record. Elsewhere they are left out, and numbers may differ by 1e-5.
"""

import json
import shutil
from pathlib import Path

import pytest
from equality import differences, machine

from tests.second_edition.reading import READINGS

FILES = Path(__file__).with_name("files")
RECORD = json.loads(Path(__file__).with_name("results.json").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of the files, as the current folder: runs hold the relative path of their data."""
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(shutil.copytree(FILES, tmp_path / "files"))
    return Path()


@pytest.mark.parametrize("name", READINGS)
def test_a_file_of_the_second_edition_gives_what_it_gave(name, folder):
    if name == "model_of_captions":
        pytest.importorskip("transformers")
    current = json.loads(json.dumps(READINGS[name](folder)))
    exact = RECORD["machine"] == machine()
    assert not list(differences(RECORD["results"][name], current, exact=exact, place=name))


def test_every_file_is_read():
    read = {name.partition(".")[0] for name in READINGS} | {"part", "question"}
    assert {path.name.partition(".")[0] for path in FILES.iterdir()} <= read | {"model_of_clips"}
    assert READINGS.keys() == RECORD["results"].keys()


def test_a_resumed_run_ends_as_the_uninterrupted_one():
    finished, resumed = (RECORD["results"][name] for name in ("run_finished", "run_interrupted"))
    assert resumed["tensors"] == finished["tensors"]
    assert resumed["evaluation"]["map_mean"] == finished["evaluation"]["map_mean"]
