"""Where new runs go: folders that no other run has, and what is said where there can be none."""

import hashlib
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aadml.feature_extraction.ground.errors import InputError
from aadml.runs import run_names


@pytest.fixture(autouse=True)
def one_second(monkeypatch):
    written = time.strftime
    monkeypatch.setattr(time, "strftime", lambda form: written(form, (2026, 1, 2, 3, 4, 5, 0, 0, 0)))


def test_runs_of_one_second_get_folders_of_their_own(tmp_path):
    made = [run_names.new_run_folder(tmp_path / "runs", "aa-triplet", 3) for _ in range(3)]
    assert all(folder.is_dir() for folder in made)
    assert [folder.name for folder in made] == [
        f"20260102-030405-aa-triplet-seed3{end}" for end in ("", "-1", "-2")
    ]  # fmt: skip
    assert run_names.new_run_folder(tmp_path / "runs", "cca", 3).name == "20260102-030405-cca-seed3"


def test_a_file_or_a_link_to_nowhere_in_the_place_of_the_runs_is_told(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"file/.* cannot be created \(Not a directory\)"):
        run_names.new_run_folder(tmp_path / "file", "cca", 0)
    with pytest.raises(InputError, match=r"link is not a folder; pass a folder to --runs"):
        run_names.new_run_folder(tmp_path / "link", "cca", 0)
    assert (tmp_path / "file").read_text() == "mine"


def test_the_search_for_a_free_name_ends(tmp_path, monkeypatch):
    asked = []

    def taken(folder, **_):
        asked.append(folder)
        raise FileExistsError

    monkeypatch.setattr(Path, "mkdir", taken)
    with pytest.raises(InputError, match="a thousand runs started in this second"):
        run_names.new_run_folder(tmp_path, "cca", 0)
    assert len(set(asked)) == len(asked) == 1000


def test_what_was_scored_otherwise_is_part_of_the_name():
    assert run_names.evaluation_file("inductive", "test") == "evaluations/inductive-test.json"
    assert run_names.evaluation_file("inductive", "valid", "euclidean") == "evaluations/inductive-valid-euclidean.json"
    other = run_names.evaluation_file("legacy:pca", "test")
    assert re.fullmatch(r"evaluations/legacy-pca-test-[0-9a-f]{8}\.json", other)
    assert other != run_names.evaluation_file("legacy-pca", "test")
    assert len(run_names.evaluation_file("inductive", "test", *(f"recall@{k}" for k in range(1, 100)))) < 130


def test_a_run_folder_of_outside_code_has_a_plain_name_of_its_own(tmp_path):
    labels = [
        "my_losses:mine",
        "my_losses-mine",
        "my_losses mine",
        "../up",
        "a/b",
        "Zürich",
        "ü",
        ".",
        "\ud800",
        "x" * 300,
    ]
    made = [run_names.new_run_folder(tmp_path / "runs", label, 0) for label in labels]
    assert all(re.fullmatch("[A-Za-z0-9._-]+", folder.name) for folder in made)
    assert len({folder.name for folder in made}) == len(labels)
    assert {folder.parent for folder in made} == {tmp_path / "runs"}
    assert made[1].name == "20260102-030405-my_losses-mine-seed0"
    assert re.fullmatch("20260102-030405-my_losses-mine-[0-9a-f]{8}-seed0", made[0].name)


def test_a_name_of_up_to_a_hundred_characters_stays():
    assert run_names.file_name("x" * 100) == "x" * 100
    digest = hashlib.sha256(b"x" * 101).hexdigest()
    assert run_names.file_name("x" * 101) == f"{'x' * 100}-{digest[:8]}"


TEXTS = st.text(max_size=200) | st.text("a=-._:", max_size=5)


@given(TEXTS, TEXTS)
def test_names_of_files_are_plain_and_differ(one, other):
    names = [run_names.file_name(text) for text in (one, other)]
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,108}", name) for name in names)
    assert (names[0] == names[1]) == (one == other)
