"""Check every page in Chromium with axe-core: no violation of WCAG level A or AA, and no part wider than the window.

    python scripts/soak/pages.py --axe axe.min.js -o docs/lab/soak/pages.md [--screenshots FOLDER]

axe-core is not a dependency of this project: `npm pack axe-core` downloads the archive with axe.min.js. The pages are
written from small synthetic data: a run, a run that failed its audit, comparisons on other data and on data named AVE,
an ablation, a reproduction, and the search page, each light and dark, 1,200 and 390 px wide.
"""

import argparse
import asyncio
import csv
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

import aadml
from aadml.data.samples.mp4 import write_mp4
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.papers.reproduction import reproduce
from aadml.protocols.audit import AuditReport, Verdict
from aadml.runs.audit import audit
from aadml.runs.loading import AUDIT
from aadml.runs.protocol_scores import add_to_run
from aadml.search import Index
from aadml.search.access import Access
from aadml.search.app import application
from aadml.search.server import listening
from aadml.search.uploads import ClientLimits

SIZES = [(width, scheme) for width in (1200, 390) for scheme in ("light", "dark")]
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SETTINGS = {"network.hidden": [32], "training.batch": 50, "training.learning_rate": 0.01}
WIDER = """() => Math.max(document.documentElement.scrollWidth - window.innerWidth, ...
  [...document.querySelectorAll(".scroll:not(.row)")].map((box) => box.scrollWidth - box.clientWidth), 0)"""
CLASSES = ("dog", "church bell", "violin, fiddle", "train horn", "frying food")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axe", required=True, type=Path, help="axe.min.js")
    parser.add_argument("--seed", type=int, default=0, help="of the data and of every training")
    parser.add_argument("--pages", type=Path, help="folder that keeps the pages; existing pages are used again")
    parser.add_argument("--screenshots", type=Path, help="folder for a picture of each page")
    parser.add_argument("-o", "--output", type=Path, help="record (Markdown)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        pages = write_pages(options.pages or Path(name), options.seed)
        browser = playwright.chromium.launch(executable_path=chromium())
        rows = [check(browser, options, title, address) for title, address in pages.items()]
        with served(options.pages or Path(name)) as address:
            still = (options.pages or Path(name)) / "media/still.png"
            for title, prepare in (("clips", browse), ("hits", lambda page: ask(page, still)), ("api", read_api)):
                rows.append(check(browser, options, f"search-{title}", address(), prepare))
        browser.close()
    record = report(rows, options, json.loads((options.axe.parent / "package.json").read_text())["version"])
    print(record)
    if options.output:
        options.output.write_text(record)
    if any(violations for _, _, violations, _ in rows):
        raise SystemExit(1)


def chromium() -> str:
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next(path for path in found if path)


def write_pages(folder: Path, seed: int) -> dict[str, str]:
    """Write every page that does not exist in `folder`; return the addresses by title."""
    folder.mkdir(parents=True, exist_ok=True)
    data = write_data(folder, seed)
    arguments = {"settings": [f"{key}={value}" for key, value in SETTINGS.items()], "workers": 0}
    paths = {}

    def made(title: str, write: Any) -> None:
        record = folder / f"{title}.path"
        if not record.is_file():
            record.write_text(str(write()))
        paths[title] = Path(record.read_text()).resolve().as_uri()

    def run() -> Path:
        model = aadml.fit(data, loss="aa-triplet", epochs=12, seed=seed, settings=SETTINGS, runs=folder / "runs")
        audit(model.folder)
        return aadml.report(model.folder)

    def failed() -> Path:
        model = aadml.fit(data, config="recommended", epochs=2, seed=seed, settings=SETTINGS, runs=folder / "runs")
        first, *others = audit(model.folder)
        findings = AuditReport([replace(first, verdict=Verdict.FAIL), *others])
        content = json.loads((model.folder / AUDIT).read_text())
        content |= {"verdict": findings.summary, "findings": [vars(finding) for finding in findings]}
        add_to_run(model.folder, {AUDIT: json.dumps(content).encode()}, print)
        return aadml.report(model.folder)

    def compared(place: Path, name: str) -> Path:
        return aadml.compare(
            data=place, methods="aadml,random,cca", losses="triplet,supcon", max_epochs=3, seeds=3,
            output=folder / name, command="aadml compare", **arguments,
        ).page  # fmt: skip

    def ablated() -> Path:
        grid = {"proxy.k": [1, 2, 3], "loss": ["aa-triplet", "aa-supcon"]}
        output = folder / "ablation"
        return aadml.ablate(
            grid, data=data, max_epochs=3, seeds=2, output=output, baseline=["proxy=none"], command="aadml ablate",
            **arguments,
        ).page  # fmt: skip

    def reproduced() -> Path:
        return reproduce(
            "paper", ave=data, only="table-1,figure-3,figure-5", quick=True, max_epochs=2,
            output=folder / "reproduction", command="aadml reproduce paper", **arguments,
        ).page  # fmt: skip

    made("run", run)
    made("failed-audit", failed)
    made("comparison", lambda: compared(data, "comparison"))
    made("comparison-ave", lambda: compared(folder / "AVE.h5", "comparison-ave"))
    made("ablation", ablated)
    made("reproduction", reproduced)
    return paths


def write_data(folder: Path, seed: int) -> Path:
    """Write a feature file, its copy named after a published data set, media of some clips, and their manifest."""
    path = folder / "clips.h5"
    if path.is_file():
        return path
    content = synthetic(classes=5, train=150, valid=27, test=60, dimensions=(12, 16), difficulty=0.4, seed=seed)
    write_features(path, replace(content, class_names=CLASSES))
    shutil.copy(path, folder / "AVE.h5")
    generator = np.random.default_rng(seed)
    media = folder / "media"
    media.mkdir()
    for number in range(3):
        tone = 0.3 * np.sin(2 * np.pi * (300 + 200 * number) * np.arange(2 * 48_000) / 48_000)
        blocks = np.kron(generator.integers(0, 256, (3, 4, 3)), np.ones((20, 20, 1))).astype(np.uint8)
        write_mp4(media / f"{number}.mp4", np.repeat(blocks[None], 20, axis=0), tone, frame_rate=10, rate=48_000)
        cv2.imwrite(str(media / "still.png"), blocks)
    names = [("0.mp4", "0.mp4"), ("1.mp4", "1.mp4"), ("2.mp4", ""), ("", "still.png"), ("no.mp4", "no.mp4")]
    files = [[f"media/{name}" if name else "" for name in pair] for pair in names]
    with (folder / "manifest.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "audio", "visual", "label", "split"))
        for number, name in enumerate(content.ids):
            rows.writerow((name, *files[number % len(files)], "a", content.splits[number]))
    return path


@contextmanager
def served(folder: Path) -> Iterator[Callable[[], str]]:
    """Serve the search page of a folder of media; yield a function that returns the address for another browser."""
    index = folder / "media.index"
    if not index.is_file():
        Index.build(folder / "media", index, workers=1).close()
    addresses: list[str] = []
    opened = listening(0)
    access = Access(opened.getsockname()[1], addresses.append)
    access.renew()
    config = uvicorn.Config(application(Index(index), access, ClientLimits()), log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([opened])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield lambda: addresses[-1]
    server.should_exit = True
    thread.join(timeout=30)


def ask(page: Page, picture: Path) -> None:
    """Search by a picture, and open every part of the page."""
    browse(page)
    page.set_input_files("#file", picture)
    page.wait_for_selector("#hits button.player", timeout=60_000)
    page.wait_for_load_state("networkidle")
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")


def browse(page: Page) -> None:
    """Show all clips."""
    page.goto(page.url.partition("docs")[0].partition("#")[0])
    page.wait_for_selector("#clips .card")
    page.wait_for_load_state("networkidle")


def read_api(page: Page) -> None:
    """Show the page of the API."""
    page.goto(f"{page.url.partition('docs')[0].partition('#')[0]}docs")
    page.wait_for_selector("#paths section")


def check(browser: Browser, options: argparse.Namespace, title: str, address: str, prepare: Any = None) -> tuple:
    """Return the title, the number of passed rules, the violations, and the largest clipped width in px."""
    violations: Counter[str] = Counter()
    passed, wider = 0, 0
    context = browser.new_context()  # one for all sizes, because an address of the search page is valid in one browser
    context.new_page().goto(address)
    for width, scheme in SIZES:
        page = context.pages[0]
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.reload()
        if prepare:
            prepare(page)
        page.evaluate(options.axe.read_text(encoding="utf-8"))
        found = page.evaluate("(tags) => axe.run(document, { runOnly: tags })", TAGS)
        passed = max(passed, len(found["passes"]))
        for violation in found["violations"]:
            violations[violation["id"]] += len(violation["nodes"])
            for node in violation["nodes"][:3]:
                print(title, width, scheme, violation["id"], node["html"][:150], node["failureSummary"][:200])
        wider = max(wider, page.evaluate(WIDER))
        if options.screenshots:
            options.screenshots.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=options.screenshots / f"{title}-{width}-{scheme}.png", full_page=True)
    context.close()
    return title, passed, violations, wider


def report(rows: list[tuple], options: argparse.Namespace, version: str) -> str:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
    lines = [
        "# Every page under axe-core",
        "",
        f"axe-core {version}, WCAG 2.0 to 2.2, level A and AA; each page light and dark, 1,200 and 390 px wide, so "
        f"{len(rows) * len(SIZES)} runs. Seed {options.seed}, commit {commit.strip()}.",
        "",
        "| page | rules passed | violations | px cut off |",
        "| --- | ---: | ---: | ---: |",
    ]
    for title, passed, violations, wider in rows:
        named = ", ".join(f"{name} x{count}" for name, count in violations.items()) or "0"
        lines.append(f"| {title} | {passed} | {named} | {wider} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
