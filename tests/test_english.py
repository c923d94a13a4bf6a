"""Plain English on user pages: the rules that a machine can check, and links, commands and length."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from aadml.cli import cli

ROOT = Path(__file__).parents[1]
USER_PAGES = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *USER_PAGES]
LONGEST_SENTENCE = 45  # words
MOST_LINES = 1_100


def written_by_hand(page: str) -> str:
    """Return a page without the parts between `<!-- generated: NAME -->` and `<!-- end: NAME -->`."""
    return re.sub(r"<!-- generated: (\S+) -->.*?<!-- end: \1 -->", "", page, flags=re.DOTALL)


def sentences(page: str) -> Iterator[str]:
    """Yield the sentences of a page, without code, tables and headings."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    prose = [line for line in text.splitlines() if not line.startswith(("#", "|", "<", "    "))]
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*] |\d\. )", "\n".join(prose)):
        plain = re.sub(r"`[^`]*`|\]\([^)]*\)|\[|\*\*", "X", " ".join(paragraph.split()))
        yield from re.split(r"(?<=[.!?:;])\s+(?=[A-Z\[])", plain)


def commands(page: str) -> Iterator[list[str]]:
    """Yield the arguments of every aadml command in the code blocks of a page."""
    for block in re.findall(r"```(?:sh|bash|console|)\n(.*?)```", page, flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            match = re.search(r"(?:^|[$;&!(|]\s?|do |srun |-m )aadml (.*)", line)
            if match:
                yield shlex.split(match[1].split(";")[0].split(" && ")[0], comments=True)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_sentences_of_user_pages_are_short(path):
    text = written_by_hand(path.read_text(encoding="utf-8"))
    assert not [line for line in sentences(text) if len(line.split()) > LONGEST_SENTENCE]


@pytest.mark.parametrize("path", [*PAGES, *sorted((ROOT / "docs" / "lab").rglob("*.md"))], ids=lambda path: path.name)
def test_relative_links_lead_to_files_and_headings(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, heading = link.partition("#")
        target = (path.parent / place) if place else path
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), flags=re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
            assert heading in anchors, link


def test_user_pages_stay_short():
    """docs/options.md is generated as a whole, docs/fidelity.md in its tables, docs/losses.md between markers."""
    lines = {}
    for path in USER_PAGES:
        text = written_by_hand(path.read_text(encoding="utf-8"))
        if path.name == "fidelity.md":
            text = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
        lines[path.name] = 0 if path.name == "options.md" else len(text.splitlines())
    assert sum(lines.values()) <= MOST_LINES, lines


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_of_user_pages_have_only_flags_that_exist(path):
    for name, *arguments in commands(path.read_text(encoding="utf-8")):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, name
        flags = {flag for option in command.params if isinstance(option, click.Option) for flag in option.opts}
        flags |= {flag for option in command.params for flag in option.secondary_opts} | {"--help"}
        for argument in arguments:
            if re.match(r"-{1,2}[a-z]", argument):
                assert argument.partition("=")[0] in flags, (name, argument)


@pytest.mark.parametrize("package", ["aadml", "feature_extraction"])
def test_contributing_lists_every_room(package):
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition(f"| room of `{package}`")[2].partition("\n\n")[0]
    listed = re.findall(r"`([\w.]+)`", "".join(line.split(" | ")[0] for line in table.splitlines()))
    rooms = {path.name for path in (ROOT / package).iterdir() if path.is_dir() and not path.name.startswith("__")}
    assert sorted({*listed} - {"self_test.py", "manifest.py"}) == sorted(rooms - {"feature_extraction"})


def test_files_named_in_contributing_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:aadml|configs|docs|feature_extraction|scripts|tests)/[\w./]+)`?", text):
        assert (ROOT / path).exists() or "NAME" in path, path
