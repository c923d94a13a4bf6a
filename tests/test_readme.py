"""The README's sessions run, as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language, section):
    """Return the code of a section of the README, block by block."""
    text = README.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(command, folder):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment |= {"PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_sessions_stand_side_by_side_and_are_short():
    shell, python = blocks("sh", "A session"), blocks("python", "A session")
    assert len(shell) == len(python) == 1
    assert all(len(block.strip().splitlines()) <= 12 for block in (*shell, *python))


@pytest.mark.slow
def test_the_session_in_python_and_its_models_run(tmp_path):
    program = blocks("python", "A session")[0] + blocks("python", "Models")[0]
    program += "\nprint(row.shape == audio[0].shape, best.shape, damaged, scores.split)"
    program += "\nprint(found.directions[0].map == model.evaluation['directions']['audio-visual']['map'])"
    program += "\nprint([one.check for one in findings if one.failed])"
    said = run([sys.executable, "-c", program], tmp_path).splitlines()
    assert said[0].startswith("True (")
    assert said[0].endswith(", 5) [] valid")
    assert said[1] == "True"
    assert said[2] in ("[]", "['duplicates']")  # two rendered helicopters of a second sound nearly the same
    names = {path.name for path in (tmp_path / "my-model").iterdir()}
    assert names == {"model.safetensors", "model.json", "README.md"}
    assert all(f"`{name}`" in README for name in names)


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
    said = run(["bash", "-c", session.replace("aadml audit runs/*", "aadml audit runs/* || true")], tmp_path)
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"runs/{folder.name}" in said
    assert (folder / "report.html").is_file()
    assert (tmp_path / "embeddings.h5").is_file()
    assert "checks passed" in (folder / "README.md").read_text()
