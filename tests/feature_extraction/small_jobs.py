"""Extractions of small collections of clips, as several tests run them."""

import csv

from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.jobs.extract import execute
from aadml.feature_extraction.jobs.plan import ExtractionPlan
from aadml.feature_extraction.manifest import read_manifest

AUDIO, VISUAL = extractor("log-mel", "audio"), extractor("hog-color", "visual")
BAD = {
    "no file": ("none.mp4", "missing"),
    "text": ("text.mp4", "not-a-media-file"),
    "list": ("list.m3u8", "refused"),
}
LACKING = {"mute": ("mute.mp4", "no-audio"), "blind": ("blind.m4a", "no-video")}


def write_manifest(path, rows):
    with path.open("w", newline="", encoding="utf-8", errors="surrogateescape") as file:
        table = csv.writer(file)
        table.writerow(["id", "media", "label", "split", "caption_1"])
        for number, (name, media) in enumerate(rows):
            table.writerow([name, media, number % 3, ["train", "val", "test"][number % 3], f"about {name}"])


def run(folder, output, extractors=(AUDIO, VISUAL), progress=None, **options):
    return extract(read_manifest(folder / "manifest.csv"), output, extractors, progress=progress, **options)


def extract(manifest, output, extractors, progress=None, **options):
    """Execute a plan in one decoding process."""
    return execute(ExtractionPlan(manifest, output, extractors, **{"workers": 1, **options}), progress)


def failures(output):
    with output.with_name(output.name + ".failures.csv").open(encoding="utf-8", errors="surrogateescape") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def decoded(monkeypatch):
    """Count the clips that are sent to be decoded."""
    import aadml.feature_extraction.engines.decoding_workers as module

    seen = []
    original = module.decode_all

    def counting(tasks, settings, **options):
        def counted():
            for task in tasks:
                seen.append((task.number, *sorted(task.media)))
                yield task

        return original(counted(), settings, **options)

    monkeypatch.setattr(module, "decode_all", counting)
    return seen
