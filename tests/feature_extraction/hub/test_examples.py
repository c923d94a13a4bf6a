"""The examples of docs/encoders.md, as written, with tiny random networks in the place of the published ones."""

import csv
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import aadml
from aadml.cli import cli
from aadml.feature_extraction.feature_file.reading import read_features
from tests.feature_extraction.hub import stand_ins, tiny

PAGE = (Path(__file__).parents[3] / "docs" / "encoders.md").read_text(encoding="utf-8")
WORDS = tiny.SENTENCE.split()
LIMITS = {"extract": ["--workers", "1"], "train": ["--epochs", "1"],
          "compare": ["--seeds", "2", "--max-epochs", "1", "--workers", "0"]}  # fmt: skip
MEDIA = {
    "Sound and captions": ("wav", "mp4"),
    "Videos": ("mp4",),
    "An encoder that `transformers` lacks": ("mp4",),
    "Trained further": ("mp4",),
    "Fine-tuning": ("mp4",),
}
"""Section with commands -> media on which they run; every clip has captions."""


def commands(section):
    """Return the commands of all blocks of a section, each as its arguments."""
    text = re.search(rf"## {re.escape(section)}\n(.*?)(?=\n## |\Z)", PAGE, re.DOTALL).group(1)
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("aadml ")]


def test_every_section_with_commands_is_tried():
    sections = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert {section for section in sections if commands(section)} == set(MEDIA)
    assert PAGE.count("\naadml ") == sum(len(commands(section)) for section in MEDIA)


@pytest.fixture
def folder(request, render, tmp_path, monkeypatch):
    """A folder with captioned sounds or videos, networks of the published names, and the recipes."""
    picture = request.param == "mp4"
    codecs = ("mpeg4", "aac") if picture else ("", "pcm_s16le")
    with (tmp_path / "manifest.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "media", "label", "split", "caption"])
        for number in range(48):
            name, split = f"{number}.{request.param}", ("train", "train", "valid", "test")[number // 2 % 4]
            render(tmp_path / name, seconds=0.5, tone=300 + 50 * number, picture=picture, codecs=codecs)
            writer.writerow([number, name, "ab"[number % 2], split, " ".join(WORDS[number % 9 : number % 9 + 4])])
    for owner in ("laion", "openai"):
        (tmp_path / owner).mkdir()
    tiny.clap(tmp_path / "laion" / "clap-htsat-unfused", width=512)
    tiny.clip(tmp_path / "openai" / "clip-vit-base-patch32")
    stand_ins.lay_out(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def run(arguments):
    result = CliRunner().invoke(cli, [*arguments, *LIMITS[arguments[0]]])
    assert result.exit_code == 0, f"{arguments}: {result.output}"
    return result


@pytest.mark.parametrize("folder", ["wav", "mp4"], indirect=True)
@pytest.mark.usefixtures("folder")
def test_sound_and_text_of_one_model_are_described_and_nothing_else():
    extract, _ = commands("Sound and captions")
    assert "audio hf-audio 512-d, text hf-text 512-d -> clips.h5" in run(extract).output
    assert set(read_features("clips.h5").provenance) == {"audio", "text"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "folder"), [(name, kind) for name, kinds in MEDIA.items() for kind in kinds], indirect=["folder"]
)
def test_the_commands_of_a_section_run(section, folder):
    results = {arguments[0]: run(arguments) for arguments in commands(section)}
    if "compare" in results:
        assert "zero-shot" in results["compare"].output
    if "train" in results:
        assert aadml.load(folder / results["train"].stdout.splitlines()[-1]).evaluation


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["wav"], indirect=True)
def test_a_fine_tuned_model_merges_its_adapters(folder):
    pytest.importorskip("peft")
    (train,) = commands("Fine-tuning")
    model = aadml.load(folder / run(train).stdout.splitlines()[-1])
    statement = re.search(r"`(aadml\.load\(.*?\)\.merged\(\).*?)`", PAGE).group(1)
    exec(statement, {"aadml": aadml})
    text = "rain falls on the roof"
    np.testing.assert_allclose(aadml.load("merged").embed(text=text), model.embed(text=text), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["wav"], indirect=True)
def test_sound_and_captions_train_a_model_further(folder):
    train, _ = commands("Trained further")
    model = aadml.load(folder / run(train).stdout.splitlines()[-1])
    assert model.embed(text="rain falls on the roof").shape == (512,)
