"""The list of flags has every flag that a help text names, and the list of options every row of the pages."""

import re
import runpy
from pathlib import Path

import pytest
from click.testing import CliRunner

from aadml.cli import COMMANDS, cli

ROOT = Path(__file__).parents[2]
LISTS = runpy.run_path(str(ROOT / "scripts" / "flags.py"))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_flags_of_a_command_are_those_of_its_help(name):
    text = CliRunner().invoke(cli, [name, "--help"]).stdout
    shown = re.findall(r"^  (-.*?)(?:  |$)", text, re.MULTILINE)
    named = {flag for line in shown for flag in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line)}
    listed = {flag for row in LISTS["flags"]() if row[0] == name for flag in re.split(", ", row[1]) if flag[0] == "-"}
    assert listed - {"-h", "--help"} == named - {"-h", "--help"}


def test_every_option_of_the_pages_is_listed():
    found = LISTS["options"]()
    page = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert len([row for row in found if row[0] == "options.md"]) == len(re.findall("^\\| `", page, re.MULTILINE))
    assert ("options.md", "training", "epochs") in found
    assert ("losses.md", "triplet", "margin") in found
