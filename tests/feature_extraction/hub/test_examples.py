"""The examples of docs/encoders.md, as written, with tiny random networks in the place of the published ones."""

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import aadml
from aadml.cli import cli
from aadml.feature_extraction.feature_file import read_features
from tests.feature_extraction.hub import tiny

PAGE = (Path(__file__).parents[3] / "docs" / "encoders.md").read_text(encoding="utf-8")
WORDS = tiny.SENTENCE.split()


def commands(section):
    """Return the commands of the first block of a section, each as its arguments."""
    block = re.search(rf"## {section}\n.*?```\n(.*?)```", PAGE, re.DOTALL)
    lines = block.group(1).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("aadml ")]


@pytest.fixture(params=["wav", "mp4"])
def folder(request, render, tmp_path, monkeypatch):
    """A folder with captioned sounds or videos, and a CLAP of the published name and width."""
    picture = request.param == "mp4"
    codecs = ("mpeg4", "aac") if picture else ("", "pcm_s16le")
    with (tmp_path / "manifest.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "media", "label", "split", "caption"])
        for number in range(48):
            name, split = f"{number}.{request.param}", ("train", "train", "valid", "test")[number // 2 % 4]
            render(tmp_path / name, seconds=0.5, tone=300 + 50 * number, picture=picture, codecs=codecs)
            writer.writerow([number, name, "ab"[number % 2], split, " ".join(WORDS[number % 9 : number % 9 + 4])])
    clap = tmp_path / "laion" / "clap-htsat-unfused"
    clap.parent.mkdir()
    tiny.clap(clap, width=512)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(arguments):
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, f"{arguments}: {result.output}"
    return result.output


def test_sound_and_text_of_one_model_are_described_and_nothing_else(folder):
    extract, _ = commands("Without any training")
    output = run([*extract, "--workers", "1"])
    assert "audio hf-audio 512-d, text hf-text 512-d -> clips.h5" in output
    assert set(read_features("clips.h5").provenance) == {"audio", "text"}


@pytest.mark.slow
def test_the_example_without_training(folder):
    for arguments in commands("Without any training"):
        output = run(arguments)
    assert "zero-shot" in output


@pytest.mark.slow
def test_the_example_of_fine_tuning(folder):
    pytest.importorskip("peft")
    (train,) = commands("Fine-tuning")
    model = aadml.load(run(train).splitlines()[-1])
    statement = re.search(r"`(aadml\.load\(.*?\)\.merged\(\).*?)`", PAGE).group(1)
    exec(statement, {"aadml": aadml})
    text = "rain falls on the roof"
    np.testing.assert_allclose(aadml.load("merged").embed(text=text), model.embed(text=text), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_the_example_of_sound_and_captions(folder):
    (train,) = commands("Trained further")
    model = aadml.load(run(train).splitlines()[-1])
    assert model.embed(text="rain falls on the roof").shape == (512,)
