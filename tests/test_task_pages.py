"""Commands of docs/audio_text.md and docs/pairs.md, as written, with tiny networks under the published names."""

import csv
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from tests.captioned_clips import write_captioned
from tests.cli.conftest import run
from tests.feature_extraction.hub import tiny

pytest.importorskip("transformers")

DOCS = Path(__file__).parents[1] / "docs"
BRIEF = {
    "train": ("--epochs", "1"), "compare": ("--seeds", "1", "--max-epochs", "1", "--workers", "0"),
    "ablate": ("--seeds", "1", "--max-epochs", "1", "--workers", "0"),
    "extract": ("--workers", "1"), "index": ("--workers", "1"),
}  # fmt: skip
"""Options that shorten a command."""
CLOTHO = {"train": "development", "valid": "validation", "test": "evaluation"}


def commands(page, section):
    """Return the commands of a section, each as its arguments."""
    text = (DOCS / page).read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = "\n".join(re.findall(r"```\n(.*?)```", text, re.DOTALL)).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("aadml ")]


def run_all(section, trained=""):
    """Run the commands of a section and return their outputs; RUN stands for the latest run, at first `trained`."""
    outputs = []
    for command in commands(*section):
        name, *arguments = [trained if word == "RUN" else word for word in command]
        code, out, err = run(name, *arguments, *BRIEF.get(name, ()))
        assert code == 0, (command, err)
        trained = out.strip().splitlines()[-1] if name == "train" else trained
        outputs.append(out)
    return outputs


def networks(folder):
    """Write a CLAP and a CLIP of the published names."""
    for name, family in (("laion/clap-htsat-unfused", "clap"), ("openai/clip-vit-base-patch32", "clip")):
        (folder / name).parent.mkdir()
        shutil.move(tiny.written(family, folder / family), folder / name)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    networks(tmp_path)
    return tmp_path


def write_clotho(folder):
    """Write 36 sounds in the layout of Clotho, with five captions each, and a sound to search by."""
    with write_captioned(folder / "clips").open() as file:
        clips = list(csv.DictReader(file))
    for split, name in CLOTHO.items():
        (folder / "Clotho" / name).mkdir(parents=True)
        with (folder / "Clotho" / f"clotho_captions_{name}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["file_name", *(f"caption_{n}" for n in range(1, 6))])
            for clip in (clip for clip in clips if clip["split"] == split):
                shutil.copy(folder / "clips" / clip["media"], folder / "Clotho" / name / clip["media"])
                table.writerow([clip["media"], *(clip[f"caption_{1 + n % 3}"] for n in range(5))])
    shutil.copy(folder / "clips" / "0.wav", folder / "rain.wav")


@pytest.mark.slow
def test_clotho_and_a_clap(folder):
    write_clotho(folder)
    outputs = run_all(("audio_text.md", "I have Clotho and a CLAP"))
    assert "36 clips (36 audio, 180 text)" in outputs[-3]
    assert "text to audio: 10 of 36 clips" in outputs[-2]
    assert "audio to text: 10 of 180" in outputs[-1]


@pytest.mark.slow
def test_clips_and_captions(folder):
    shutil.copytree(write_captioned(folder / "my_clips", videos=True).parent, folder, dirs_exist_ok=True)
    (folder / "my_clips" / "manifest.csv").unlink()
    outputs = run_all(("audio_text.md", "I have clips and captions"))
    assert "36 clips (36 visual, 108 text)" in outputs[-4]
    assert "text to visual+text" in outputs[-3]
    assert "text to audio+visual: 10 of 72 clips, by reciprocal rank" in outputs[-1]


@pytest.mark.slow
def test_pairs_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    audio = generator.normal(size=(120, 24)).astype(np.float32)
    np.savez("pairs.npz", audio=audio, visual=audio[:, ::-1] + generator.normal(size=(120, 24)).astype(np.float32))
    outputs = run_all(("pairs.md", "I have pairs only"))
    assert "120 clips (120 audio, 120 visual)" in outputs[3]
    assert outputs[4] == "F.h5\n"
    assert read_features("F.h5").splits.count("test") == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "labels"),
    [
        ("No labels: `pairs`", "none"),
        ("Some labels: `few-labels`", "half"),
        ("When can a graph help?", "none"),
        ("Several texts per clip", "none"),
    ],
)
def test_other_sections_of_pairs(tmp_path, monkeypatch, section, labels):
    monkeypatch.chdir(tmp_path)
    content = synthetic(classes=3, train=60, valid=30, test=30, dimensions=(16, 16), difficulty=0.3)
    known = np.arange(120) % 2 == 0 if labels == "half" else np.zeros(120, dtype=bool)
    content = replace(content, labels=np.where(known, content.labels, -1))
    if labels == "none":
        content = replace(content, class_names=())
    if section == "Several texts per clip":
        rows = np.repeat(np.arange(120), 2)
        texts = content.features["visual"][rows] + np.float32(0.1) * (np.arange(240) % 2)[:, None].astype(np.float32)
        features = {"audio": content.features["audio"], "text": texts[::2]}
        content = replace(content, features=features, provenance={}, texts=Texts(texts, rows))
    write_features("F.h5", content)
    code, out, err = run("train", "--data", "F.h5", "--config", "pairs", "--epochs", 1)
    assert code == 0, err
    run_all(("pairs.md", section), trained=out.strip().splitlines()[-1])
