"""The pages in a browser, large and small, light and dark, with names and media that mean harm."""

import csv
import os
from dataclasses import replace

import cv2
import numpy as np
import pytest

from aadml.data.samples.mp4 import write_mp4
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features

pytestmark = pytest.mark.slow

HOSTILE = (
    "<img src=x onerror=harm()>",
    "</script><script>harm()</script>",
    '" onmouseover="harm()',
    "$\\frac{1}$ & _x_ <u>",
    "_ \u2028 <!-- ]]>",
)
SETTINGS = {"network.hidden": [8], "training.batch": 20, "training.learning_rate": 0.01}
PAPER = 718
"""Width of A4 within margins of a centimeter, in CSS pixels."""
SIZES = [(width, scheme) for width in (1200, 390) for scheme in ("light", "dark")]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """Previews are kept in a folder of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A feature file of hostile names, and beside it the manifest of its clips: of every kind, and a pipe."""
    folder = tmp_path_factory.mktemp("data")
    content = synthetic(classes=5, train=60, valid=15, test=30, dimensions=(6, 8), difficulty=0.4)
    ids = tuple(f"{HOSTILE[number % 5]} {number}" for number in range(len(content.ids)))
    path = folder / "<img src=x onerror=harm()>.h5"
    write_features(path, replace(content, ids=ids, class_names=HOSTILE))
    generator = np.random.default_rng(0)
    tone = 0.3 * np.sin(2 * np.pi * 500 * np.arange(2 * 48_000) / 48_000)
    for number in range(3):
        pictures = generator.integers(0, 256, (20, 60, 80, 3), dtype=np.uint8)
        write_mp4(folder / f"{number}.mp4", pictures, tone, frame_rate=10, rate=48_000)
    cv2.imwrite(str(folder / "still.png"), generator.integers(0, 256, (60, 80, 3), dtype=np.uint8))
    os.mkfifo(folder / "pipe.mp4")
    files = [(f"{n}.mp4", f"{n}.mp4") for n in range(3)]
    files += [("0.mp4", ""), ("", "still.png"), ("1.mp4", "still.png"), ("pipe.mp4", "pipe.mp4"), ("no.mp4", "no.mp4")]
    with (folder / "manifest.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "audio", "visual", "label", "split"))
        for number, name in enumerate(ids):
            rows.writerow((name, *files[number % len(files)], "a", content.splits[number]))
    return path


@pytest.fixture(scope="module")
def pages(data, tmp_path_factory):
    """The pages."""
    pytest.importorskip("matplotlib")
    import aadml

    folder = tmp_path_factory.mktemp("pages")
    model = aadml.fit(data, loss="aa-triplet", epochs=3, settings=SETTINGS, runs=folder / "runs")
    settings = [f"{key}={value}" for key, value in SETTINGS.items()]
    small = {"seeds": 2, "workers": 0, "data": data, "command": HOSTILE[1]}
    compared = aadml.compare(
        methods="aadml,random", losses="triplet,supcon", max_epochs=2, settings=settings, output=folder / "c", **small
    )
    ablated = aadml.ablate(
        {"proxy.k": [1, 2], "loss": ["aa-triplet"]}, max_epochs=2, settings=settings, output=folder / "a", **small
    )
    return {
        "run": aadml.report(model.folder),
        "comparison": compared.page,
        "ablation": ablated.page,
        "reproduction": reproduced(data, folder / "r", settings),
    }


def reproduced(data, folder, settings):
    """The page of a paper, of two rows a table."""
    from aadml.papers import rows
    from aadml.papers.reproduction import reproduce

    few = {"losses": ("triplet", "aa-triplet"), "methods": ("random", "aadml")}
    printed = {kind: {name: rows.PAPER.published[kind][name] for name in names} for kind, names in few.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "PAPER", replace(rows.PAPER, published=printed))
        patch.setattr(rows, "published_losses", lambda: ["triplet"])
        patch.setattr(rows, "published_methods", lambda: list(few["methods"]))
        made = reproduce(
            "paper",
            ave=data,
            vegas=data,
            quick=True,
            max_epochs=2,
            workers=0,
            settings=settings,
            output=folder,
            command=HOSTILE[1],
        )
    return made.page


@pytest.fixture
def opened(browser, pages):
    """Open a page; whatever it says, asks or fetches is kept in `events`."""
    contexts = []

    def opened(name, width=1200, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page, events = context.new_page(), []
        address = pages[name].as_uri()
        page.on("console", lambda message: events.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: events.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (events.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: events.append(request.url))
        page.add_init_script("window.harmed = 0; window.harm = () => { window.harmed += 1; };")
        page.goto(address)
        page.wait_for_load_state("load")
        events.remove(address)
        return page, events

    yield opened
    for context in contexts:
        context.close()


def elsewhere(events):
    return [event for event in events if not event.startswith(("blob:", "data:"))]


READABLE = """() => {
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((one) => Number(one.tagName[1]));
  const wide = (one) => one.scrollWidth > one.clientWidth + 1;
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  return {
    overflow: document.documentElement.scrollWidth - window.innerWidth,
    skipped: levels.filter((level, n) => n && level > levels[n - 1] + 1).length,
    first: levels[0], titles: levels.filter((level) => level === 1).length,
    unscoped: document.querySelectorAll("th:not([scope])").length,
    nameless: document.querySelectorAll("img:not([alt]), svg:not([aria-label]), button:not([aria-label])").length,
    stuck: [...document.querySelectorAll(".scroll, pre")].filter((one) => wide(one) && one.tabIndex < 0).length,
    lang: document.documentElement.lang, title: document.title.length > 0,
    repeated: ids.length - new Set(ids).size,
    cut: [...document.querySelectorAll(".scroll:not(.row)")].filter(wide).length,
    empty: [...document.querySelectorAll("section")].filter((one) => one.children.length < 2).length,
    small: [...document.querySelectorAll("svg text")].filter((one) => one.getBoundingClientRect().height < 8.5).length,
  };
}"""
WANTED = {"overflow": 0, "skipped": 0, "first": 1, "titles": 1, "cut": 0, "unscoped": 0, "nameless": 0, "stuck": 0,
          "lang": "en", "title": True, "repeated": 0, "empty": 0, "small": 0}  # fmt: skip

FAINT_TEXT = """() => {
  const color = (text) => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return parts.length > 3 && parts[3] === 0 ? null : parts;
  };
  const light = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, n) => {
    const c = rgb[n] / 255; return sum + weight * (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); }, 0);
  const behind = (one) => { for (; one; one = one.parentElement) {
    const c = color(getComputedStyle(one).backgroundColor); if (c) return c; } return [255, 255, 255]; };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(one.tagName)) continue;
    const style = getComputedStyle(one);
    const ink = color(one.namespaceURI.includes("svg") ? style.fill : style.color);
    const [low, high] = [light(ink), light(behind(one))].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) < 4.5) faint.push(walker.currentNode.data.slice(0, 40));
  }
  return faint;
}"""


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("name", ["run", "comparison", "ablation", "reproduction"])
def test_a_page_can_be_read_and_asks_for_nothing(opened, name, width, scheme):
    page, events = opened(name, width, scheme)
    assert page.evaluate(READABLE) == WANTED
    assert page.evaluate(FAINT_TEXT) == []
    assert elsewhere(events) == []


@pytest.mark.parametrize("name", ["run", "comparison", "ablation", "reproduction"])
def test_nothing_is_cut_off_on_paper_and_dark_pages_print_light(opened, name):
    page, _ = opened(name, width=PAPER, scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0
    boxes = "[...document.querySelectorAll('.scroll, pre')]"
    assert page.evaluate(f"{boxes}.filter((one) => one.scrollWidth > one.clientWidth + 1).length") == 0
    assert page.evaluate(f"{boxes}.every((one) => getComputedStyle(one).overflowX === 'visible')")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", ["run", "comparison", "ablation", "reproduction"])
def test_names_are_text_and_run_nothing(opened, data, name):
    page, events = opened(name)
    page.evaluate("document.querySelectorAll('*').forEach((one) => one.dispatchEvent(new Event('mouseover')))")
    assert page.evaluate("window.harmed") == 0
    words = page.evaluate("document.body.textContent")
    assert data.name in words
    for hostile in HOSTILE if name == "run" else HOSTILE[1:2]:
        assert hostile in words
    assert page.query_selector_all("img[src='x'], u, [onerror], [onmouseover]") == []
    assert elsewhere(events) == []


@pytest.mark.parametrize("width", [1200, 390])
def test_the_players_play(opened, width):
    page, events = opened("run", width)
    buttons, sounds = page.query_selector_all("button.player"), page.query_selector_all("audio")
    assert buttons
    assert sounds
    assert page.query_selector_all("img.still")
    assert page.evaluate("[...document.images].every((one) => one.complete && one.naturalWidth > 0)")
    for place in (buttons[0], buttons[-1]):
        place.focus()
        page.keyboard.press("Enter")
        page.wait_for_function("(place) => place.querySelector('video').currentTime > 0.2", arg=place)
        assert place.get_attribute("aria-pressed") == "true"
    assert page.evaluate("(place) => place.querySelector('video').paused", buttons[0])  # one at a time
    sounds[0].evaluate("(sound) => sound.play()")
    page.wait_for_function("(sound) => sound.currentTime > 0.2", arg=sounds[0])
    for place in buttons:
        assert place.evaluate("""async (place) => { const video = place.querySelector("video"); video.load();
            return await new Promise((done) => { video.onloadeddata = () => done(""); video.preload = "auto";
            video.onerror = () => done(video.error.message); }); }""") == ""  # fmt: skip
    assert elsewhere(events) == []


def test_each_preview_stands_in_the_page_once_and_the_page_is_repeated_byte_for_byte(pages, tmp_path, monkeypatch):
    import aadml

    html = pages["run"].read_text()
    assert len(html) < 10_000_000
    assert html.count("data-preview=") > html.count('"video/mp4"') + html.count('"audio/mp4"') > 0
    monkeypatch.setenv("AADML_CACHE", str(tmp_path / "another cache"))
    again = aadml.report(pages["run"].parent, output=tmp_path / "again.html")
    assert again.read_bytes() == pages["run"].read_bytes()
    assert any((tmp_path / "another cache").rglob("*.json"))


def test_hits_misses_partners_and_what_is_missing_are_said_in_words(opened):
    page, _ = opened("run")
    words = page.inner_text("body")
    for wanted in ("✓ hit", "✗ miss", "own clip at rank", "query: audio", "no preview", "could not be read completely"):
        assert wanted in words
    hits = page.query_selector_all("figure.hit")
    assert hits
    assert all("hit" in one.inner_text() for one in hits)
