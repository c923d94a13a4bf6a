"""The documentation site: all pages in its navigation, built strictly, nothing loaded from elsewhere."""

import functools
import http.server
import re
import subprocess
import sys
import threading
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


QUESTIONS = {
    "install": "install/",
    "no GPU": "install/",
    "libGL": "install/#servers-without-a-display",
    "offline encoder": "install/#without-a-network",
    "team": "install/#questions",
    "pandas": "install/#questions",
    "own videos": "tutorials/your_videos/",
    "folder of sounds and pictures": "guides/guide/#videos-and-sounds",
    "long recordings": "guides/guide/#long-recordings",
    "numpy features": "guides/guide/#features",
    "duplicates": "tutorials/feature_files/#what-duplicates-are-worth",
    "damaged file": "tutorials/feature_files/#one-file-for-everything",
    "few labels": "guides/pairs/#some-labels-few-labels",
    "captions": "tutorials/captions/",
    "which loss": "reference/losses/#which-loss-for-which-data",
    "own method": "guides/extending/#a-method",
    "training loop": "guides/own_loop/",
    "anchor-aware proxy": "tutorials/reproducing/#what-is-an-anchor-aware-proxy",
    "ties": "tutorials/comparing/#ties-and-chance",
    "leak": "tutorials/auditing/#what-a-leak-is-worth",
    "several machines": "guides/scale/",
    "ONNX": "reference/commands/#export",
    "cite": "about/trust/#citation",
}
"""What a newcomer types into the search of the site -> the page, or the section, that answers."""


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_the_search_answers_the_questions_of_a_newcomer_in_its_first_three_hits(address, browser):
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    elsewhere = []
    page.on("request", lambda request: elsewhere.append(request.url) if not request.url.startswith(address) else None)
    page.goto(address, wait_until="networkidle")
    page.keyboard.press("Control+k")
    box, missed = page.get_by_role("combobox"), {}
    for question, answer in QUESTIONS.items():
        box.fill("")
        page.locator("a[role=option]").first.wait_for(state="detached")
        box.fill(question)
        page.locator("a[role=option]").first.wait_for()
        page.wait_for_timeout(300)  # further letters are searched after a pause
        hits = page.locator("a[role=option]").evaluate_all("hits => hits.slice(0, 3).map(hit => hit.href)")
        hits = [re.sub(r"\?h=[^#]*", "", hit.removeprefix(address)) for hit in hits]
        if not any(hit == answer or ("#" not in answer and hit.startswith(answer)) for hit in hits):
            missed[question] = hits
    page.close()
    assert not missed
    assert not [url for url in elsewhere if url.startswith("http")]
