"""The page of an index in a browser: looked around, asked, played, filtered, judged, by keyboard, light and dark."""

import csv
import wave
from urllib.parse import parse_qs, urlsplit

import cv2
import numpy as np
import pytest

pytestmark = pytest.mark.slow
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from aadml.data.samples.mp4 import write_mp4  # noqa: E402
from aadml.search import Index  # noqa: E402
from aadml.search.uploads import ClientLimits  # noqa: E402

HOSTILE = "<img src=x onerror=harm()>.mp4"
WAIT = 60_000
EMPTY = {"total": 0, "clips": [], "examples": [], "counts": {}}


@pytest.fixture(scope="module")
def media(tmp_path_factory):
    """Three videos, one of a name that means harm, a sound, a picture of the first video, and their manifest."""
    folder = tmp_path_factory.mktemp("clips") / "media"
    folder.mkdir()
    generator = np.random.default_rng(0)
    for number, name in enumerate(("a.mp4", "b.mp4", HOSTILE, "c.wav")):
        tone = 0.3 * np.sin(2 * np.pi * (300 + 400 * number) * np.arange(48_000) / 48_000)
        blocks = np.kron(generator.integers(0, 256, (3, 4, 3)), np.ones((20, 20, 1))).astype(np.uint8)
        pictures = np.repeat(blocks[None], 10, axis=0)
        if name.endswith("mp4"):
            write_mp4(folder / name, pictures, tone, frame_rate=10, rate=48_000)
        else:
            write_sound(folder / name, tone)
        if number == 0:
            cv2.imwrite(str(folder / "a.png"), cv2.cvtColor(blocks, cv2.COLOR_RGB2BGR))
    with (folder / "clips.csv").open("w", newline="") as file:
        labels = {"a.mp4": "dog", "b.mp4": "dog", HOSTILE: "cat", "c.wav": "cat", "a.png": "dog"}
        rows = [(name, name, label, "test") for name, label in labels.items()]
        csv.writer(file).writerows([("id", "media", "label", "split"), *rows])
    return folder


def write_sound(path, tone):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 48_000, 0, "NONE", ""))
        file.writeframes((32767 * tone).astype("<i2").tobytes())


@pytest.fixture(scope="module")
def site(media, served, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", str(folder / "cache"))
        yield served(Index.build(media / "clips.csv", folder / "my clips.index", workers=1), ClientLimits())


@pytest.fixture
def opened(browser, site):
    """Open the page; whatever it says, or asks of anybody else, is kept in `events`."""
    contexts = []

    def opened(width=1200, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        contexts.append(context)
        page, events, own = context.new_page(), [], f"http://127.0.0.1:{site.port}/"
        page.on("console", lambda message: events.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: events.append(f"error: {error}"))
        page.on("request", lambda one: one.url.startswith((own, "blob:", "data:")) or events.append(one.url))
        page.add_init_script("window.harmed = 0; window.harm = () => { window.harmed += 1; };")
        page.goto(site.addresses[-1])
        page.wait_for_selector("#clips .card", timeout=WAIT)
        return page, events

    yield opened
    for context in contexts:
        context.close()


def hits(page, first):
    """Wait for an answer that begins with a clip; give the names of all hits."""
    page.wait_for_function(
        "(name) => document.querySelector('#hits .id')?.textContent === `1. ${name}`", arg=first, timeout=WAIT
    )
    return [one.inner_text().partition(" ")[2] for one in page.query_selector_all("#hits .id")]


def drop(page, file):
    """Drop a file as a person does, by the events of a drag."""
    data = page.evaluate_handle(
        """([bytes, name, type]) => { const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(bytes)], name, { type })); return data; }""",
        [
            list(file.read_bytes()),
            file.name,
            {"png": "image/png", "mp4": "video/mp4", "wav": "audio/wav"}[file.suffix[1:]],
        ],
    )
    page.dispatch_event("#drop", "dragover", {"dataTransfer": data})
    page.dispatch_event("#drop", "drop", {"dataTransfer": data})


READABLE = """() => ({
  overflow: document.documentElement.scrollWidth - window.innerWidth,
  titles: document.querySelectorAll("h1").length, lang: document.documentElement.lang,
  nameless: [...document.querySelectorAll("button, input, select, img")].filter((one) => !one.alt
    && !one.closest("[aria-label]") && !one.textContent.trim() && !one.labels?.length).length,
})"""

FAINT = """() => {
  const color = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, n) => {
    const c = rgb[n] / 255; return sum + weight * (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); }, 0);
  const behind = (one) => { for (; one; one = one.parentElement) {
    const c = color(getComputedStyle(one).backgroundColor); if (c.length < 4 || c[3] > 0) return c; }
    return [255, 255, 255]; };
  return [...document.querySelectorAll("h1, h2, p, span, strong, label, button, footer")].filter((one) =>
    one.textContent.trim() && !one.hidden).filter((one) => {
      const [low, high] = [light(color(getComputedStyle(one).color)), light(behind(one))].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05) < 4.5; }).map((one) => one.textContent.slice(0, 40));
}"""


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_dropped_picture_finds_its_video_which_plays(opened, media, width, scheme):
    page, events = opened(width, scheme)
    drop(page, media / "a.png")
    assert hits(page, "a.png")[1] == "a.mp4"
    page.wait_for_function("() => document.querySelector('#query img').naturalWidth > 0", timeout=WAIT)  # the question
    pictures = "() => [...document.querySelectorAll('#hits img')].every((one) => one.complete && one.naturalWidth > 0)"
    page.wait_for_function(pictures, timeout=WAIT)
    player = page.query_selector("li:nth-child(2) button.player")
    player.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("(one) => one.querySelector('video')?.currentTime > 0.2", arg=player, timeout=WAIT)
    assert player.get_attribute("aria-pressed") == "true"
    assert page.evaluate(READABLE) == {"overflow": 0, "titles": 1, "lang": "en", "nameless": 0}
    assert page.evaluate(FAINT) == []
    columns = page.evaluate("getComputedStyle(document.getElementById('hits')).gridTemplateColumns.split(' ').length")
    assert columns == (2 if width == 390 else 5)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 24, 30)"
    assert dark == (scheme == "dark")
    assert HOSTILE in page.inner_text("#hits")
    assert page.evaluate("window.harmed") == 0
    assert events == []


def test_a_picture_has_no_player_and_clips_with_vectors_are_examples(opened):
    page, events = opened()
    figure = page.locator("#clips .card", has=page.get_by_text("a.png", exact=True)).locator("figure")
    assert figure.locator("img").get_attribute("alt") == "a.png"
    assert figure.locator("button").count() == 0
    assert page.locator("#clips .player").count() == 4
    names = [button.inner_text() for button in page.locator("#examples button").all()]
    assert names == ["Sounds for the sound of dog", "Sounds for the sound of cat"]  # most frequent first
    assert events == []


def test_the_whole_story(opened, media, site):
    page, events = opened()
    assert page.inner_text("#all-title") == "Clips (5)"
    page.wait_for_function("() => document.querySelectorAll('#clips img').length === 5", timeout=WAIT)
    assert "a.mp4" in page.inner_text("#clips")
    page.locator("#examples button").first.click()
    page.wait_for_selector("#hits .card", timeout=WAIT)
    assert page.locator("#hits .own").count() == 1  # the clip of the question is marked
    drop(page, media / "c.wav")
    assert set(hits(page, "c.wav")) == {"c.wav", "a.mp4", "b.mp4", HOSTILE}
    assert page.locator("#query audio").get_attribute("src").startswith("blob:")
    assert "no probabilities: the index has 0 of the 30 validation clips that are needed" in page.inner_text("#said")
    page.get_by_role("button", name="dog").click()
    page.wait_for_function("() => document.querySelectorAll('#hits .card').length === 2", timeout=WAIT)
    first, second = page.locator("#hits button.player").all()
    for player in (first, second):
        player.click()
        player.and_(page.locator(".playing")).wait_for(timeout=WAIT)
    assert first.get_attribute("aria-pressed") == "false"  # one player at a time
    page.locator("#hits").get_by_label("More like this: b.mp4").click()
    page.wait_for_selector("#query .card", timeout=WAIT)  # the hits before may begin with the same clip
    assert hits(page, "b.mp4") == ["b.mp4", "a.mp4"]
    link = page.url
    assert "clip=b.mp4&from=audio&to=audio" in link
    page.click("#advanced summary")
    page.fill("#where", "id LIKE 'a%'")
    page.keyboard.press("Enter")
    assert hits(page, "a.mp4") == ["a.mp4"]
    page.go_back()
    assert len(hits(page, "b.mp4")) == 2
    again = page.context.new_page()
    again.goto(link)
    assert len(hits(again, "b.mp4")) == 2
    again.close()
    page.locator("#hits").get_by_label("Does not fit: a.mp4").click()
    page.wait_for_function("() => document.getElementById('said').textContent.startsWith('Noted')", timeout=WAIT)
    (path,) = site.index.path.parent.glob("*.judgments.csv")
    assert path.read_text() == "query,item,grade\nb.mp4,a.mp4,0\n"
    with page.expect_download() as download:
        page.click("#export")
    lines = download.value.path().read_text().splitlines()
    assert lines[0].startswith("rank,id,label,score,second_key,probability")
    assert lines[1].startswith("1,b.mp4,dog,")
    assert len(lines) == 3
    page.get_by_text("Show all clips").click()
    page.wait_for_selector("#clips .card", timeout=WAIT)
    assert page.evaluate("window.harmed") == 0
    assert events == []


def test_values_are_chosen_and_left_again(opened):
    page, events = opened()

    def clips(route):
        where = parse_qs(urlsplit(route.request.url).query).get("where", [""])[0]
        route.fulfill(
            json={**EMPTY, "total": 5, "counts": {"label": {"values": [["bird", 3], ["o'clock", 2]], "of": 2}}}
            if not where
            else {**EMPTY, "total": 2 if where.endswith(" LIMIT -1) WHERE instr(l, '|o''clock|'))") else -1}
        )

    page.route("**/clips?*", clips)
    page.reload()
    for total in (2, 5):
        page.get_by_role("button", name="o'clock").click()
        page.wait_for_function(f"() => document.getElementById('all-title').textContent === 'Clips ({total})'")
        assert page.get_by_role("button", name="bird").is_visible()  # another value can be chosen as well
    assert events == []


def test_clips_are_shown_page_by_page_and_the_page_keeps_only_those(opened):
    page, events = opened()
    example = page.evaluate("async () => (await (await fetch('clips')).json()).clips[0]")

    def clips(route):
        offset, content = int(parse_qs(urlsplit(route.request.url).query).get("offset", ["0"])[0]), route.fetch().json()
        made = [{**example, "id": f"clip {n}", "has": []} for n in range(offset, min(offset + 24, 60))]
        route.fulfill(json={**content, "total": 60, "clips": made})

    page.route("**/clips?*", clips)
    page.reload()
    for first, last, turn in ((1, 24, "#more"), (25, 48, "#more"), (49, 60, "#less"), (25, 48, "")):
        title = f"Clips {first} to {last} of 60"
        page.wait_for_function(
            "(title) => document.getElementById('all-title').textContent === title", arg=title, timeout=WAIT
        )
        names = [name.inner_text() for name in page.query_selector_all("#clips .id")]
        assert names == [f"clip {n}" for n in range(first - 1, last)]
        assert (page.locator("#less").is_hidden(), page.locator("#more").is_hidden()) == (first == 1, last == 60)
        if turn:
            page.click(turn)
    assert page.evaluate("document.activeElement.id") == "all-title"
    page.go_back()
    page.get_by_text("Clips 49 to 60 of 60").wait_for(timeout=WAIT)
    page.goto(f"{page.url.partition('#')[0]}#f.label=abc")
    page.wait_for_function("document.querySelector('#said').className === 'wrong'", timeout=WAIT)
    assert events == []


def test_only_the_latest_files_are_kept(opened, media):
    page, events = opened()
    revoked = "() => { window.revoked = []; URL.revokeObjectURL = (address) => window.revoked.push(address); }"
    page.evaluate(revoked)
    drop(page, media / "a.png")
    hits(page, "a.png")
    first, link = page.locator("#query img").get_attribute("src"), page.url
    drop(page, media / "a.png")
    page.wait_for_function("(url) => location.href !== url", arg=link, timeout=WAIT)
    hits(page, "a.png")
    page.wait_for_function("(first) => window.revoked.includes(first)", arg=first, timeout=WAIT)
    for _ in range(19):
        drop(page, media / "a.png")
    page.goto(link)
    page.get_by_text("the file of this link is gone; drop the file again").wait_for(timeout=WAIT)
    assert events == []


def test_a_wrong_condition_is_a_sentence(opened):
    page, events = opened()
    page.click("#advanced summary")
    page.fill("#where", "weather = 'fine'")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('said').className === 'wrong'", timeout=WAIT)
    assert [event for event in events if "400 (Bad Request)" not in event] == []


def test_a_point_of_the_map_shows_its_clip(opened):
    page, events = opened()
    page.wait_for_function("() => document.getElementById('map-note').textContent.startsWith('4 points')", timeout=WAIT)
    page.locator("#map").click(position={"x": 5, "y": 5})
    page.wait_for_selector("#picked .card video", timeout=WAIT)
    assert events == []


def test_the_map_and_its_legend_show_each_class_of_a_label(opened):
    page, events = opened()
    classes = ["", "cat", "cat|dog"]
    page.route(
        "**/map?*", lambda route: route.fulfill(json={"classes": classes, "points": [[1, 0, 1000, 2], [2, 0, 0, 0]]})
    )
    page.reload()
    page.wait_for_function("() => document.getElementById('map-note').textContent.startsWith('2 points')", timeout=WAIT)
    assert page.locator("#map-note").inner_text() == (
        "2 points by class (several colors: several classes); click a point to play its clip."
    )
    assert page.locator("#legend li").all_inner_texts() == ["no class", "cat", "dog"]
    drawn, legend = page.evaluate("""() => {
      const column = document.getElementById("map").getContext("2d").getImageData(13, 0, 1, 520).data;
      const at = (y) => `rgb(${[...column.slice(4 * y, 4 * y + 3)].join(", ")})`;
      const colors = [...document.querySelectorAll("#legend i")].map((dot) => getComputedStyle(dot).backgroundColor);
      return [[at(505), at(15), at(12)], colors]; }""")
    assert drawn == legend
    assert events == []


def test_everything_is_reached_by_keyboard_and_a_file_can_be_chosen(opened, media):
    page, events = opened(390)
    page.on("filechooser", lambda chooser: chooser.set_files(str(media / "a.mp4")))  # from now on, not from the key on
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.activeElement.id === 'file'", timeout=WAIT)
    assert page.evaluate("getComputedStyle(document.getElementById('drop')).outlineStyle") == "solid"
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"kind", "to", "k", "player"} <= reached
    page.focus("#file")
    page.keyboard.press("Enter")
    hits(page, "a.mp4")
    assert page.evaluate("document.activeElement.id") == "hits-title"  # a screen reader continues there
    assert events == []


def test_a_recording_of_the_microphone_asks(opened):
    page, events = opened()
    page.evaluate("""() => { navigator.mediaDevices.getUserMedia = async () => {
      const context = new AudioContext(), tone = context.createOscillator();
      const end = context.createMediaStreamDestination();
      tone.connect(end); tone.start(); return end.stream; }; }""")
    page.click("#record")
    page.wait_for_function("() => document.getElementById('record').textContent === 'Stop and search'", timeout=WAIT)
    page.wait_for_timeout(1500)
    page.click("#record")
    page.wait_for_selector("#hits .card", timeout=WAIT)
    assert "recording.webm" in page.inner_text("#query")
    assert events == []


def test_words_ask_what_words_can_find(opened):
    page, _ = opened()
    questions = [["audio", "audio"], ["visual", "visual"], ["clip", "audio"], ["clip", "visual"], ["text", "visual"]]
    page.route("**/facts", lambda route: route.fulfill(json={**route.fetch().json(), "questions": questions}))
    page.reload()
    page.wait_for_selector("#clips .card", timeout=WAIT)
    assert page.input_value("#to") == "audio"
    page.fill("#words", "rain")
    assert page.input_value("#to") == "visual"
    with page.expect_request("**/search?*") as request:
        page.click("#words-row button")
    assert "kind=text" in request.value.url
    assert "to=visual" in request.value.url
    page.select_option("#kind", "audio")
    assert page.input_value("#to") == "audio"


def test_a_hit_states_its_probability_times_links_and_ties(opened):
    page, events = opened()

    def results(route):
        content = route.fetch().json()
        columns = {"source": "https://example.org/a?b=1", "bad": "javascript:harm()", "empty": ""}
        hits = [
            {**hit, "score": 1.0, "second_key": 0.5 - rank, "probability": [0.95, 0.5][rank], "range": [3725, None],
             "moment": {"seconds": 61.0, "score": 1.0}, "columns": columns}
            for rank, hit in enumerate(content["hits"][:2])
        ]  # fmt: skip
        threshold = {"threshold": 0.97, "precision": 0.9, "clips": 30}
        route.fulfill(
            json={**content, "nothing_fits": True, "calibration": threshold, "uncalibrated": "", "hits": hits}
        )

    page.route("**/like?*", results)
    page.locator("#clips").get_by_label("More like this: b.mp4").click()
    page.wait_for_selector("#hits .card", timeout=WAIT)
    first, second = page.locator("#hits .card").all_inner_texts()
    assert "fits almost certainly (95 %)" in first
    assert "may fit (50 %)" in second
    assert "1:02:05 to the end · best at 1:01 · score 1.000000 · second key 0.5000" in first
    said = page.locator("#said")
    assert said.get_attribute("class") == "none"
    assert said.inner_text().startswith("No hit is certain: none reaches the threshold of 97 %, above which 90 % of")
    links = page.locator("#hits .card").first.locator("a")
    assert [link.get_attribute("href") for link in links.all()] == ["https://example.org/a?b=1"]
    assert links.first.get_attribute("rel") == "noreferrer noopener"
    assert events == []
