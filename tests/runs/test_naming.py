"""Where new runs go: folders that no other run has, and what is said where there can be none."""

import time
from pathlib import Path

import pytest

from aadml.runs import naming
from feature_extraction.ground.errors import InputError


@pytest.fixture(autouse=True)
def one_second(monkeypatch):
    written = time.strftime
    monkeypatch.setattr(time, "strftime", lambda form: written(form, (2026, 1, 2, 3, 4, 5, 0, 0, 0)))


def test_runs_of_one_second_get_folders_of_their_own(tmp_path):
    made = [naming.new_run_folder(tmp_path / "runs", "aa-triplet", 3) for _ in range(3)]
    assert all(folder.is_dir() for folder in made)
    assert [folder.name for folder in made] == [
        f"20260102-030405-aa-triplet-seed3{end}" for end in ("", "-1", "-2")
    ]  # fmt: skip
    assert naming.new_run_folder(tmp_path / "runs", "cca", 3).name == "20260102-030405-cca-seed3"


def test_a_file_or_a_link_to_nowhere_in_the_place_of_the_runs_is_told(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"file/.*: cannot be made \(Not a directory\)"):
        naming.new_run_folder(tmp_path / "file", "cca", 0)
    with pytest.raises(InputError, match=r"link: .*--runs wants a folder"):
        naming.new_run_folder(tmp_path / "link", "cca", 0)
    assert (tmp_path / "file").read_text() == "mine"


def test_the_search_for_a_free_name_ends(tmp_path, monkeypatch):
    asked = []

    def taken(folder, **_):
        asked.append(folder)
        raise FileExistsError

    monkeypatch.setattr(Path, "mkdir", taken)
    with pytest.raises(InputError, match="a thousand runs of this second"):
        naming.new_run_folder(tmp_path, "cca", 0)
    assert len(set(asked)) == len(asked) == 1000


def test_what_was_scored_otherwise_is_part_of_the_name():
    assert naming.file_of("inductive", "test") == "evaluations/inductive-test.json"
    assert naming.file_of("legacy:pca", "valid", "euclidean") == "evaluations/legacy-pca-valid-euclidean.json"
