"""Measure the search page of 10,000 clips with sounds and pictures: Chromium, queries by sound, 200 parallel clients.

    OMP_NUM_THREADS=1 python scripts/bench/search_page.py FOLDER [--clips 10000] [--seed 0]

FOLDER receives the clips (one second of a decaying tone and a picture each, ten classes), their log-mel features, the
index and screenshots; files of an earlier call are reused. Processor time of the server includes its decoders.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
import wave
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
from million import family, memory
from playwright.sync_api import CDPSession, Page, sync_playwright

CLASSES, RATE, PORT, TOKEN = 10, 16_000, 8799, "0123456789abcdef" * 2
PAGE = f"http://127.0.0.1:{PORT}/"
TICKS = os.sysconf("SC_CLK_TCK")
LOADED = "() => [...document.querySelectorAll('{} img')].filter((image) => image.getBoundingClientRect().top < 800)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clients", type=int, default=200)
    options = parser.parse_args()
    index = build(options.folder, options.clips, options.seed)
    sound = options.folder / "question.wav"
    write_sound(sound, np.random.default_rng(options.seed + 1), 2.0, 440.0)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    print(f"{options.clips} clips, seed {options.seed}, commit {commit.strip()}, load {os.getloadavg()[0]:.0f}\n")
    print("| work | seconds | processor seconds of the server | of the page |\n| --- | ---: | ---: | ---: |")
    with served(index, options.folder) as server:
        questions(server, sound)
        look(server, sound, options.folder)
        crowd(server, sound, options.clients)


def write_sound(path: Path, generator: np.random.Generator, seconds: float, pitch: float) -> None:
    times = np.arange(int(seconds * RATE)) / RATE
    tone = (
        0.3 * np.sin(2 * np.pi * pitch * generator.uniform(0.9, 1.1) * times) * np.exp(-generator.uniform(0, 3) * times)
    )
    samples = tone + 0.05 * generator.standard_normal(len(times))
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((32_767 * samples.clip(-1, 1)).astype("<i2").tobytes())


def build(folder: Path, clips: int, seed: int) -> Path:
    """Write clips with classes and columns, and their index without a model; return the path of the index."""
    media, manifest, index = folder / "media", folder / "clips.csv", folder / "clips.index"
    media.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(seed)
    pitches, colors = np.geomspace(150, 3000, CLASSES), generator.integers(0, 256, (CLASSES, 3))
    rows = [("id", "audio", "visual", "label", "split", "speaker", "year")]
    for number in range(clips):
        own, name = int(generator.integers(CLASSES)), f"{number:05}"
        split, speaker, year = (
            generator.choice(["train", "valid", "test"]),
            generator.integers(12),
            generator.integers(20),
        )
        rows.append((name, f"media/{name}.wav", f"media/{name}.jpg", f"class {own}", split, f"s{speaker}", 2000 + year))
        if not (media / f"{name}.jpg").is_file():
            write_sound(media / f"{name}.wav", np.random.default_rng((seed, number)), 1.0, pitches[own])
            blocks = np.clip(colors[own] + generator.integers(-60, 60, (3, 4, 3)), 0, 255)
            cv2.imwrite(str(media / f"{name}.jpg"), np.kron(blocks, np.ones((40, 40, 1))).astype(np.uint8))
    with manifest.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    if not index.is_file():
        words = ["index", str(manifest), "-o", str(index), "--audio", "log-mel"]
        subprocess.run([sys.executable, "-m", "aadml", *words], check=True, stdout=sys.stderr)
    return index


@contextmanager
def served(index: Path, folder: Path) -> Iterator[int]:
    """Serve an index in a separate process with an empty cache of previews; yield the process id."""
    (folder / "token").write_text(TOKEN)
    words = ["serve", str(index), "--port", str(PORT), "--token-file", str(folder / "token")]
    cache = {"AADML_CACHE": str(folder / f"cache-{time.time():.0f}")}
    with (folder / "requests.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "aadml", *words], stdout=log, stderr=log, env={**os.environ, **cache}
        )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{PAGE}health").read()
                break
            except OSError:
                time.sleep(0.2)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process and all its descendants, including ended children."""
    total = 0.0
    for one in family(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += sum(int(value) for value in fields[11:15]) / TICKS
    return total


def row(what: str, seconds: float, server: float, page: float | None = None) -> None:
    print(f"| {what} | {seconds:.2f} | {server:.3f} | {'' if page is None else f'{page:.2f}'} |", flush=True)


def ask(sound: Path) -> tuple[int, float]:
    """Search by a sound; return the status and the seconds."""
    request = urllib.request.Request(f"{PAGE}search?kind=audio&to=audio", sound.read_bytes(), method="POST")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    begin = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=300) as reply:
            reply.read()
            return reply.status, time.monotonic() - begin
    except urllib.error.HTTPError as error:
        return error.code, time.monotonic() - begin


def questions(server: int, sound: Path) -> None:
    for what, count in (("question by a sound of 2 s, the first", 1), ("later, mean of 20", 20)):
        before = processor_seconds(server)
        replies = [ask(sound) for _ in range(count)]
        assert {status for status, _ in replies} == {200}
        row(what, statistics.mean(s for _, s in replies), (processor_seconds(server) - before) / count)


class Clock:
    """Wall seconds and processor seconds of a page and its server since `start`."""

    def __init__(self, session: CDPSession, server: int) -> None:
        self._session, self._server = session, server
        self.start()

    def _now(self) -> tuple[float, float, float]:
        metrics = {each["name"]: each["value"] for each in self._session.send("Performance.getMetrics")["metrics"]}
        return time.monotonic(), processor_seconds(self._server), metrics["TaskDuration"]

    def start(self) -> None:
        """Restart the clock."""
        self._begin = self._now()

    def row(self, what: str) -> None:
        """Print a row."""
        seconds, server, page = (end - begin for end, begin in zip(self._now(), self._begin, strict=True))
        row(what, seconds, server, page if page >= 0 else page + self._begin[2])  # a new process counts from 0


def look(server: int, sound: Path, folder: Path) -> None:
    """Open the page in Chromium, search by a dropped sound, and play a hit."""
    with sync_playwright() as playwright:
        arguments = ["--autoplay-policy=no-user-gesture-required", "--mute-audio"]
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        for when in ("first opening", "opened again"):
            clock = Clock(session, server)
            page.goto(f"{PAGE}?token={TOKEN}" if when == "first opening" else PAGE)
            paint = page.evaluate("async () => { while (true) { const [paint] = performance.getEntriesByName("
                                  "'first-contentful-paint'); if (paint) return paint.startTime / 1000; "
                                  "await new Promise((next) => setTimeout(next, 20)); } }")  # fmt: skip
            row(f"{when}: first paint (since the address was opened)", paint, 0.0)
            page.wait_for_selector("#clips .card", timeout=120_000)
            clock.row(f"{when}: clips and counts")
            page.wait_for_function(
                "() => document.getElementById('map-note').textContent.includes('points')", timeout=120_000
            )
            clock.row(f"{when}: map")
            seen(page, "#clips")
            clock.row(f"{when}: pictures in view")
        clock.start()
        page.set_input_files("#file", sound)
        page.wait_for_selector("#hits .card", timeout=120_000)
        clock.row("hits of a dropped sound")
        seen(page, "#hits")
        clock.row("their pictures")
        clock.start()
        page.locator("#hits button.player").first.click()
        page.wait_for_function("() => document.querySelector('#hits video')?.currentTime > 0", timeout=120_000)
        clock.row("a hit plays after the click")
        pictures(page, folder)
        browser.close()


def seen(page: Page, place: str) -> None:
    """Wait for the pictures in view."""
    images = LOADED.format(place)
    page.wait_for_function(
        f"() => ({images})().every((image) => image.complete && image.naturalWidth > 0)", timeout=300_000
    )


def pictures(page: Page, folder: Path) -> None:
    """Save screenshots of clips and hits in both widths and color schemes."""
    for width, scheme in ((w, s) for w in (1200, 390) for s in ("light", "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        for name, address in (("clips", PAGE), ("hits", f"{PAGE}#clip=00042&from=audio&to=audio")):
            page.goto("about:blank")
            page.goto(address)
            page.wait_for_selector("#hits .card" if name == "hits" else "#clips .card", timeout=120_000)
            page.wait_for_load_state("networkidle")
            page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)


def crowd(server: int, sound: Path, clients: int) -> None:
    """Search by a sound from many clients at once; print their responses, and the memory of the server afterwards."""
    before, begin = processor_seconds(server), time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        replies = list(pool.map(lambda _: ask(sound), range(clients)))
    row(f"{clients} clients at a time, all of them", time.monotonic() - begin, processor_seconds(server) - before)
    seconds = sorted(s for _, s in replies)
    own = sum(memory(one)[0] for one in family(server)) / 2**20
    statuses = ", ".join(f"{count} x {status}" for status, count in Counter(status for status, _ in replies).items())
    print(f"\n{clients} clients: {statuses}; median {statistics.median(seconds):.1f} s, longest {seconds[-1]:.1f} s.")
    print(f"The server and its decoders then use {own:.2f} GiB of their own.")


if __name__ == "__main__":
    main()
