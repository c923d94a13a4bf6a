"""The documentation site: all pages in its navigation, built strictly, nothing loaded from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
MOST_PAGES = 27
REFERENCE = ("commands", "python", "files")
TAG = r"""<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=["']?(?:https?:)?//[^>]*"""
FROM_OUTSIDE = TAG + r"""|url\(["']?(?:https?:)?//[^)]*"""


def navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return re.findall(r"- (\S+\.md)$", text, re.MULTILINE)


def test_every_user_page_is_in_the_navigation_and_the_site_is_small():
    names = [Path(page).name for page in navigation()]
    written = [path.name for folder in ("", "site", "tutorials") for path in (ROOT / "docs" / folder).glob("*.md")]
    included = {"fidelity.md"}
    assert sorted({*written} - {*names} - included) == []
    assert len(names) == len(set(names)) <= MOST_PAGES


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("zensical", reason="needs `scripts/setup docs`")
    folder = tmp_path_factory.mktemp("docs") / "site"
    program = [sys.executable, "-m", "scripts.site_pages", "-o", str(folder)]
    process = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return folder


@pytest.mark.slow
def test_every_page_of_the_navigation_is_built(site):
    for page in navigation():
        address = page.removesuffix(".md")
        assert (site / (address if address != "index" else "") / "index.html").is_file(), page


@pytest.mark.slow
def test_no_page_loads_a_file_from_elsewhere(site):
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css", ".js")]
    assert len(files) > 20
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search("unpkg|jsdelivr|googleapis|gstatic|cdnjs", text), path
        if path.suffix != ".js":
            found = re.findall(FROM_OUTSIDE, text)
            assert not [link for link in found if 'rel="canonical"' not in link], path


@pytest.mark.slow
def test_every_link_leads_to_a_page_and_a_heading(site):
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("index.html")}
    ids = {path: set(re.findall(r'\bid="?([^"\s>]+)', text)) for path, text in texts.items()}
    links = 0
    for path, text in texts.items():
        article = text.partition("<article")[2].partition("</article>")[0]
        for href in re.findall(r'href="([^"]+)"', article):
            if re.match(r"https?:|mailto:", href):
                continue
            place, _, heading = href.partition("#")
            target = (path.parent / place).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), (path, href)
            assert not heading or target.suffix != ".html" or unquote(heading) in ids[target], (path, href)
            links += 1
    assert links > 300


@pytest.mark.slow
def test_the_reference_has_every_command_public_name_and_option(site):
    import aadml
    from aadml.cli import COMMANDS

    texts = {page: (site / "reference" / page / "index.html").read_text(encoding="utf-8") for page in REFERENCE}
    headings = {page: set(re.findall(r'<h2 id="([^"]+)"', text)) for page, text in texts.items()}
    assert headings["commands"] == {*COMMANDS}
    assert headings["python"] >= {f"aadml.{name}" for name in {*aadml.__all__} - {"__version__", "losses"}}
    assert len(headings["files"]) == 6
    assert "--require-training" in texts["commands"]
