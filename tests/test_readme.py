"""The sessions of README and of docs/guide.md run as written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import readme_session

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")


def blocks(language, section):
    """Return the code of a section of the guide, block by block."""
    text = GUIDE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def environment():
    variables = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return variables | {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}", "OMP_NUM_THREADS": "1"}


def run(command, folder):
    process = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout


def test_the_sessions_stand_side_by_side_and_are_short():
    shell, python = blocks("sh", "A session"), blocks("python", "A session")
    assert len(shell) == len(python) == 1
    assert all(len(block.strip().splitlines()) <= 12 for block in (*shell, *python))


@pytest.mark.slow
def test_the_session_in_python_and_its_models_run(tmp_path):
    program = blocks("python", "A session")[0] + "\nfirst = scores\n" + blocks("python", "Models")[0]
    program += "\nprint(row.shape == audio[0].shape, best.shape, damaged, scores.split)"
    program += "\nprint(first.directions[0].map == model.evaluation['directions']['audio-visual']['map'])"
    program += "\nprint([finding.check for finding in findings if finding.failed])"
    program += "\n" + blocks("python", "In a notebook")[0]
    output = run([sys.executable, "-c", program], tmp_path).splitlines()
    assert output[0].startswith("True (")
    assert output[0].endswith(", 5) [] valid")
    assert output[1] == "True"
    assert output[2] in ("[]", "['duplicates']")  # two rendered helicopters of a second sound nearly the same
    names = {path.name for path in (tmp_path / "my-model").iterdir()}
    assert names == {"model.safetensors", "model.json", "README.md"}
    assert all(f"`{name}`" in GUIDE for name in names)


def test_arrays_in_memory_are_trained_on_and_scored(tmp_path, monkeypatch, capsys):
    program = """
import aadml, numpy as np
numbers = np.random.default_rng(0)
labels, new_labels = (numbers.integers(0, 4, size) for size in (120, 40))
audio, new_audio = (np.eye(4)[rows] @ numbers.normal(size=(4, 9)) for rows in (labels, new_labels))
visual, new_visual = (np.eye(4)[rows] @ numbers.normal(size=(4, 7)) for rows in (labels, new_labels))
"""
    monkeypatch.chdir(tmp_path)
    exec(program + blocks("python", "Models")[1] + "\nprint(scores.split)", {})
    assert capsys.readouterr().out == "all\n"


@pytest.mark.slow
def test_the_session_in_the_shell_runs(tmp_path):
    pytest.importorskip("matplotlib")
    (session,) = blocks("sh", "A session")
    output = run(["bash", "-c", session.replace("aadml audit runs/*", "aadml audit runs/* || true")], tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"runs/{folder.name}" in output
    assert (folder / "report.html").is_file()
    assert (tmp_path / "embeddings.h5").is_file()
    assert "checks passed" in (folder / "README.md").read_text()


def test_readme_is_short_and_its_links_work_from_anywhere():
    assert len(README.split()) <= 700
    links = re.findall(r"\]\((.*?)\)", README)
    assert len(links) >= 10
    for link in links:
        assert link.startswith("https://"), link
        path = re.sub(r"^https://(raw\.githubusercontent|github)\.com/aadml/aadml/(blob/)?main/", "", link)
        assert (ROOT / path).is_file() or link.startswith("https://arxiv.org/abs/"), link


@pytest.mark.slow
def test_the_sessions_of_readme_print_what_they_show(tmp_path):
    pytest.importorskip("matplotlib")
    assert not [*readme_session.differences(tmp_path, Path(sys.executable), environment())]


@pytest.mark.slow
def test_a_session_that_prints_something_else_is_found(tmp_path, monkeypatch):
    shown = {"console": "$ aadml --version\naadml of another name\n", "python": ">>> 1 + 1\n3\n"}
    monkeypatch.setattr(readme_session, "blocks", shown.get)
    shell, python = readme_session.differences(tmp_path, Path(sys.executable), environment())
    assert shell.startswith("aadml --version: exit status 0, not printed: ['aadml of another name']")
    assert python.startswith("the Python session: exit status 0")
