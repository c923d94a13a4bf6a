"""Plain English in the product and on user pages: the rules that a machine can check; links, commands and length."""

import ast
import functools
import inspect
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from aadml.cli import cli

ROOT = Path(__file__).parents[1]
USER_PAGES = sorted((ROOT / "docs").glob("*.md"))
SITE_PAGES = sorted([*(ROOT / "docs").glob("site/*.md"), *(ROOT / "docs").glob("tutorials/*.md")])
"""Pages that exist only on the site, tutorials among them; `scripts/docs` checks their links."""
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *USER_PAGES]
LONGEST_SENTENCE = 45  # words
MOST_LINES = 1_100  # without generated tables and Python examples


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


@pytest.mark.parametrize("path", [*PAGES, *SITE_PAGES], ids=lambda path: path.name)
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
        text = re.sub(r"```python\n.*?```\n", "", text, flags=re.DOTALL)
        lines[path.name] = 0 if path.name == "options.md" else len(text.splitlines())
    assert sum(lines.values()) <= MOST_LINES, lines
    written = [path for path in SITE_PAGES if path.parent.name == "site"]  # tutorials are made by running scripts
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in written) <= 170


@pytest.mark.parametrize("path", [*PAGES, *SITE_PAGES], ids=lambda path: path.name)
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


FILES = sorted([*(ROOT / "aadml").rglob("*.py"), *(ROOT / "feature_extraction").rglob("*.py")])
VERBS = frozenset(("Give", "Say", "Name", "Tell", "Take", "Let", "Put", "Ask", "Lay", "Leave", "Hold", "Keep"))
"""Verbs that begin no summary: the field has a word that states what is returned, computed, checked or raised."""

VAGUE = frozenset(("one", "found", "own", "there", "given", "asked", "whole", "made", "said", "told", "kept"))
FIELDS = 5  # fields of records whose names stand in files: `kept` of an outcome, `asked` of an answer
DIALECT = {
    r"(?<![Tt]here )\b(is|are) no (?!longer|more|less|fewer|better|worse|larger|smaller)[a-z]": "is not a",
    r"\btold (apart )?from\b": "cannot be distinguished from",
}
DIALECT_LEFT = 0
"""Places of the old wording that are left; the number only falls."""


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Yield place and node of some kinds, over the whole product."""
    for path, tree in trees().items():
        yield from ((f"{path}:{node.lineno}", node) for node in ast.walk(tree) if isinstance(node, kinds))


def test_no_summary_begins_with_a_vague_verb():
    definitions = nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    summaries = {place: (ast.get_docstring(node) or "").split() for place, node in definitions}
    assert not {place: words[0] for place, words in summaries.items() if words and words[0] in VERBS}


def test_variables_have_names_of_the_domain():
    stored = [place for place, node in nodes(ast.Name) if isinstance(node.ctx, ast.Store) and node.id in VAGUE]
    assert len(stored) <= FIELDS, "\n".join(stored)


def test_each_class_has_a_name_of_its_own():
    counts = Counter(node.name for _, node in nodes(ast.ClassDef))
    assert not [name for name, count in counts.items() if count > 1]


def test_docstrings_and_messages_lose_the_old_dialect():
    texts = [(place, node.value) for place, node in nodes(ast.Constant) if isinstance(node.value, str)]
    found = [f"{place}: {match[0]}" for place, text in texts for phrase in DIALECT
             for match in re.finditer(phrase, " ".join(text.split()))]  # fmt: skip
    assert len(found) <= DIALECT_LEFT, "\n".join(found)


CITATIONS = (
    r"\b([A-Z][\w-]+)(?: et al\.|(?:, [A-Z][\w-]+)* and [A-Z][\w-]+)[ ,(]+(?:[\w.+-]+[ ,(]+){0,4}?((?:19|20)\d\d)\b",
    r"[(;,] ?([A-Z][a-z]+), (?:[A-Z]\w* )?((?:19|20)\d\d)\b",
)
"""Author and year of `Author et al., ICCV 2017` or `Author and Author, 2017`, and of `(Author, 2017)`."""
UNREFERENCED = {
    "aadml/methods/correlation/algebra.py: Mardia 1979": "a book without DOI",
    "aadml/methods/label_space/msnsca.py: Zhang 2023": "no source with its DOI was found",
    "aadml/retrieval/influence.py: Jaeckel 1972": "a memorandum of Bell Laboratories, never published",
    "aadml/retrieval/significance.py: Serlin 1993": "no source with its DOI was found",
}
"""Citations without a `Reference:` line, and why."""


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, those of its constants included, as lines without indentation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield inspect.cleandoc(node.value.value)


def references(text: str) -> list[str]:
    """Return each `Reference: Author, Title, Venue YEAR, LINK` of a docstring, without the first word, on one line."""
    parts = re.split(r"^Reference: ", text, flags=re.MULTILINE)[1:]
    return [" ".join(part.partition("\n\n")[0].split()) for part in parts]


def citations(text: str) -> set[str]:
    """Return the papers that a docstring cites, as `Author YEAR`."""
    prose = " ".join(re.sub(r"^Reference: .*?(?=\n\n|\Z)", "", text, flags=re.MULTILINE | re.DOTALL).split())
    return {" ".join(paper) for pattern in CITATIONS for paper in re.findall(pattern, prose)}


def test_every_cited_paper_has_a_reference_with_a_link():
    missing = set()
    for path, tree in trees().items():
        texts = list(docstrings(tree))
        entries = [entry for text in texts for entry in references(text)]
        papers = [re.fullmatch(r"([\w-]+).*, .*\b(\d{4}), https?://\S+", entry) for entry in entries]
        assert all(papers), f"{path}: write `Reference: Author, Title, Venue YEAR, LINK`"
        known = {" ".join(paper.groups()) for paper in papers}
        missing |= {f"{path}: {paper}" for text in texts for paper in citations(text) - known}
    assert missing == set(UNREFERENCED)


def test_a_paper_has_one_reference_everywhere():
    entries = {entry for tree in trees().values() for text in docstrings(tree) for entry in references(text)}
    papers, _, links = zip(*(entry.rpartition(", ") for entry in entries), strict=True)
    assert len(set(papers)) == len(set(links)) == len(entries)
