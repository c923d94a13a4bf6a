"""Encoders from outside, as docs/encoders.md shows them, and models that embed media themselves."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.feature_file.names import MODALITIES
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.hub.snapshot import find

ROOT = Path(__file__).parents[3]
YAMNET = ROOT / "docs" / "recipes" / "yamnet.py"


@pytest.fixture(scope="module")
def media(render, tmp_path_factory):
    """Twelve clips of two classes with a text each."""
    folder = tmp_path_factory.mktemp("media")
    rows = [["id", "media", "label", "split", "text"]]
    for number in range(12):
        split = ("train", "train", "train", "train", "valid", "test")[number // 2]
        render(folder / f"{number}.mp4", seconds=0.5 + 0.05 * number, tone=(300, 900)[number % 2] + 10 * number)
        rows.append(
            [f"c{number}", f"{number}.mp4", "ab"[number % 2], split, f"a dog barks {'loudly near by'[:number]}"]
        )
    with (folder / "m.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder


@pytest.mark.slow
def test_a_recipe_is_a_whole_extractor_which_extracts_and_embeds(media, shared_data, tmp_path):
    pytest.importorskip("tensorflow", reason="YAMNet runs by TensorFlow Lite (the extra tfhub)")
    if not (shared_data / "yamnet" / "yamnet.tflite").is_file():
        pytest.skip("YAMNet is not here")
    assert sum(bool(line.strip()) for line in YAMNET.read_text().splitlines()) < 50
    shutil.copy(YAMNET, tmp_path)
    shutil.copy(shared_data / "yamnet" / "yamnet.tflite", tmp_path)
    shutil.copytree(media, tmp_path / "media")
    script = """
import numpy as np, aadml
from aadml.feature_extraction.feature_file.reading import read_features
content = read_features("f.h5")
assert content.features["audio"].shape == (12, 1024), content.features["audio"].shape
assert content.features["audio"].std(axis=0).max() > 0.01
model = aadml.fit("f.h5", method="cca", settings={"method.dimension": 2})
again = aadml.load(model.save("model"), trust_code=True)
row = again.embed(audio="media/3.mp4")
np.testing.assert_allclose(row, again.embed(audio=content.features["audio"][3]), atol=1e-5)
"""
    names = ["--audio", "yamnet:yamnet", "--visual", "hog-color"]
    extract = ["-m", "aadml", "extract", "media/m.csv", "-o", "f.h5", *names, "--workers", "1"]
    for arguments in (extract, ["-c", script]):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=300,
            env=os.environ | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def features(network, media, tmp_path_factory):
    output = tmp_path_factory.mktemp("features") / "f.h5"
    names = {"audio": network("clap"), "visual": network("clip"), "text": network("sentence encoder")}
    aadml.extract(media / "m.csv", output, **{m: f"hf:{folder}" for m, folder in names.items()}, workers=1)
    return output


@pytest.fixture(scope="module")
def folder(features, tmp_path_factory):
    """A saved model of sound and pictures, and of text beside them where the method takes it."""
    model = aadml.fit(features, method="clip", epochs=1)
    return model.save(tmp_path_factory.mktemp("model") / "m")


@pytest.mark.slow
def test_a_model_embeds_media_as_it_embeds_their_rows(features, folder, media):
    model, content = aadml.load(folder), read_features(features)
    given = {"audio": str(media / "5.mp4"), "visual": str(media / "5.mp4"), "text": content.columns["text"][5]}
    for modality in model.modalities:
        row = model.embed(**{modality: content.features[modality][5]})
        np.testing.assert_allclose(model.embed(**{modality: given[modality]}), row, atol=1e-5)


def test_a_model_folder_holds_no_path(folder, network, media):
    said = "".join(path.read_text(errors="replace") for path in folder.iterdir() if path.suffix in (".json", ".md"))
    for place in (network("clap"), media, ROOT):
        assert str(place) not in said


def test_a_network_is_found_wherever_it_was_last_used_and_asked_for_where_it_was_not(
    folder, features, network, media, cache, tmp_path
):
    model = aadml.load(folder)
    moved = shutil.copytree(network("clap"), tmp_path / "moved")
    register = cache / "weights" / "models.json"
    known = json.loads(register.read_text())
    checksum = find(str(moved), None).weights_checksum()
    register.write_text(json.dumps(known | {checksum: str(moved)}))
    assert (
        model.embed(audio=str(media / "5.mp4")).shape
        == (model.embed(audio=read_features(features).features["audio"][5])).shape
    )
    register.unlink()
    with pytest.raises(InputError, match=r"never used on this machine, .* hf:FOLDER"):
        model.embed(audio=str(media / "5.mp4"))
    register.write_text(json.dumps(known))


def test_the_feature_file_says_where_everything_comes_from(features, network):
    origin = read_features(features).provenance["audio"]
    assert {"family": "clap", "pooling": "projection", "precision": "float32", "window": 2.0}.items() <= origin[
        "parameters"
    ].items()
    assert set(origin["about"]) == {"model", "license", "files", "source", "torch", "transformers"}
    assert {"config.json", "model.safetensors", "preprocessor_config.json"} <= set(origin["about"]["files"])
    assert set(MODALITIES) == set(read_features(features).provenance)


def test_the_license_of_the_card_is_kept_and_said(network, media, tmp_path):
    from click.testing import CliRunner

    from aadml.cli import cli

    place = shutil.copytree(network("dinov2"), tmp_path / "licensed")
    (place / "README.md").write_text("---\nlicense: cc-by-4.0\ntags: [x]\n---\n# Card\n")
    line = ["extract", media / "m.csv", "-o", tmp_path / "f.h5", "--audio", "none", "--visual", f"hf:{place}#mean"]
    done = CliRunner().invoke(cli, [*map(str, line), "--workers", "1"], catch_exceptions=False)
    assert (done.exit_code, "the visual extractor is licensed; its license is cc-by-4.0" in done.output) == (0, True), (
        done.output
    )
    assert read_features(tmp_path / "f.h5").provenance["visual"]["about"]["license"] == "cc-by-4.0"
