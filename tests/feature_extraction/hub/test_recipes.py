"""The recipes of docs/recipes with stand-in packages of the same interface; the real packages were not run."""

import csv
import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from aadml.feature_extraction.backbones import extractor
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.consent import trusting
from aadml.feature_extraction.ground.errors import InputError
from tests.feature_extraction.hub.stand_ins import RECIPES, SCALE, lay_out

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the recipes, stand-ins of their packages, and weights; its modules are forgotten afterwards."""
    lay_out(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in NAMES]:
        del sys.modules[name]


NAMES = {"imagebind", "BEATs", *(path.stem for path in RECIPES.glob("*.py"))}


def test_every_recipe_says_that_it_was_not_run():
    notes = {path.stem: "Not run against the real " in path.read_text() for path in RECIPES.glob("*.py")}
    assert notes == {"imagebind_towers": True, "beats_tower": True, "yamnet": False}


def test_imagebind_equals_calls_of_its_network(folder):
    recipe = importlib.import_module("imagebind_towers")
    data, random = importlib.import_module("imagebind.data"), np.random.default_rng(0)
    sound = random.normal(size=2 * 32_000 + 16_000).astype(np.float32)
    tower = recipe.sound()
    (rows,) = tower.describe([tower.prepare(sound)])
    for row, start in zip(rows, (0, 32_000, 48_000), strict=True):
        mel = data.waveform2melspec(torch.tensor(sound[start : start + 32_000])[None], 16_000, 128, 204)
        np.testing.assert_allclose(row, ((mel + 4.268) / 9.138).mean() * SCALE, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(tower.times(3, 5.0), [0.0, 2.0, 3.0])
    frames = random.integers(0, 256, (2, 224, 224, 3), dtype=np.uint8)
    tower = recipe.pictures()
    (rows,) = tower.describe([tower.prepare(frames)])
    mean, deviation = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
    expected = ((frames / 255 - mean) / deviation).mean(axis=(1, 2, 3))
    np.testing.assert_allclose(rows, expected[:, None] * SCALE.numpy(), rtol=1e-4, atol=1e-4)
    tower = recipe.text()
    (rows,) = tower.describe([tower.prepare(np.frombuffer("a döner".encode(), dtype=np.uint8))])
    np.testing.assert_allclose(rows[0], sum("a döner".encode()) / 77 * SCALE, rtol=1e-5)


def test_beats_equals_calls_of_its_network_without_the_classifier(folder):
    sound = np.random.default_rng(0).normal(size=200_000).astype(np.float32)
    tower = importlib.import_module("beats_tower").beats()
    (rows,), (short,) = (tower.describe([tower.prepare(samples)]) for samples in (sound, sound[:3_000]))
    network = importlib.import_module("BEATs").BEATs(importlib.import_module("BEATs").BEATsConfig()).eval()
    with torch.no_grad():
        network.scale.copy_(SCALE[:768])
        for row, window in zip([*rows, *short], (sound[:160_000], sound[-160_000:], sound[:3_000]), strict=True):
            patches, _ = network.extract_features(torch.tensor(window)[None])
            np.testing.assert_allclose(row, patches[0].mean(0), rtol=1e-5)


SCRIPT = """
import aadml
model = aadml.fit("f.h5", method="cca", settings={"method.dimension": 2, "modalities": ["audio", "visual"]})
folder = model.save("model")
try:
    aadml.load(folder).embed(audio="0.mp4")
except aadml.UntrustedCodeError as error:
    assert "trust" in str(error), error
else:
    raise SystemExit("code of a file was run without consent")
assert aadml.load(folder, trust_code=True).embed(audio="0.mp4").shape == (2,)
"""


@pytest.mark.slow
@pytest.mark.parametrize("audio", ["imagebind_towers:sound", "beats_tower:beats"])
def test_a_recipe_extracts_and_a_model_needs_consent(folder, render, audio):
    rows = [["id", "media", "label", "split", "caption"]]
    for number in range(12):
        split = ("train", "train", "train", "train", "valid", "test")[number // 2]
        render(folder / f"{number}.mp4", seconds=0.5 + 0.05 * number, tone=(300, 900)[number % 2] + 10 * number)
        rows.append([f"c{number}", f"{number}.mp4", "ab"[number % 2], split, "a dog barks " * (number + 1)])
    with (folder / "m.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    names = ["--audio", audio, "--visual", "imagebind_towers:pictures", "--text", "imagebind_towers:text"]
    extract = ["-m", "aadml", "extract", "m.csv", "-o", "f.h5", *names, "--workers", "1"]
    for arguments in (extract, ["-c", SCRIPT]):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *arguments], cwd=folder, capture_output=True, text=True, timeout=300,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        if arguments == extract:
            assert "the visual extractor is imagebind_towers:pictures; its license is CC-BY-NC-SA-4.0" in done.stderr
    widths = {modality: values.shape for modality, values in read_features("f.h5").features.items()}
    assert widths == {"audio": (12, 768 if "beats" in audio else 1024), "visual": (12, 1024), "text": (12, 1024)}


@pytest.mark.parametrize("missing", ["BEATs.py", "BEATs_iter3_plus_AS2M.pt"])
def test_a_missing_package_or_weight_file_of_a_recipe_is_an_error_of_one_line(folder, missing):
    (folder / missing).unlink()
    with trusting(), pytest.raises(InputError, match=r"beats_tower:beats cannot be built \(.*(BEATs|AS2M).*; install"):
        extractor("beats_tower:beats", "audio")
