"""Shell completion, by the lines of docs/guide.md."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = (Path(__file__).parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")


def completion(shell, **words):
    """Run the program as a shell does."""
    code = "import sys; sys.argv = ['aadml']; from aadml.cli import main; main()"
    environment = {"_AADML_COMPLETE": shell, **words}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=Path(__file__).parents[2],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_of_the_guide_defines_the_completion(shell):
    assert re.search(r'eval "\$\(_AADML_COMPLETE=bash_source aadml\)"', GUIDE)
    assert "_AADML_COMPLETE" in completion(f"{shell}_source")


def test_commands_and_options_are_completed():
    assert "plain,evaluate" in completion("bash_complete", COMP_WORDS="aadml eval", COMP_CWORD="1").splitlines()
    options = completion("bash_complete", COMP_WORDS="aadml train --tra", COMP_CWORD="2").splitlines()
    assert options == ["plain,--track"]
