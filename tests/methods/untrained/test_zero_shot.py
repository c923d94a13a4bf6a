"""Zero-shot: features of the towers of one model are compared as they are; any others are refused in one line."""

import csv
import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.settings import Training
from aadml.methods.untrained.zero_shot import shared_space
from tests.feature_extraction.hub import tiny

pytest.importorskip("transformers")

TEXTS = ("a dog", "rain falls on the roof", "someone is clapping", "a dog barks loudly", "tin", "the old roof")


def origin(modality, family="clap", weights="aa", extractor=None):
    return {"extractor": extractor or f"hf-{modality}", "parameters": {"family": family, "weights": weights}}


def built(**features):
    return METHODS["zero-shot"](Context(dict.fromkeys(features, 4), 2, features=features), Training())


def test_vectors_of_one_space_are_compared_as_they_are():
    method = built(audio=origin("audio"), text=origin("text"))
    rows = torch.randn(3, 4)
    assert torch.equal(method.embed(rows, "audio"), rows)
    assert method.similarity == "cosine"
    assert method.parameters_count() == 0


def test_a_shared_space_names_the_modalities_whose_towers_end_in_it():
    found = shared_space(origin("audio"), "audio")
    assert set(found.modalities) >= {"audio", "text"}
    assert found == shared_space(origin("text"), "text")
    for other in (origin("audio", "wav2vec2"), origin("audio", weights=""), origin("audio", extractor="vggish"), {}):
        assert shared_space(other, "audio") is None
    assert shared_space(origin("visual"), "visual") is None
    with pytest.raises(InputError, match="needs vectors"):
        built(audio=origin("audio"), text=origin("text")).embed(object(), "audio")


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (
            {"audio": origin("audio"), "text": origin("text", weights="bb")},
            "from different models .audio clap aa, text clap bb",
        ),
        ({"audio": origin("audio"), "visual": origin("visual", "clip")}, "from different models"),
        (
            {"visual": origin("visual", "dinov2"), "text": origin("text")},
            r"visual features were extracted by hf-visual \(dinov2\)",
        ),
        (
            {"audio": origin("audio", extractor="vggish"), "text": origin("text")},
            "audio features were extracted by vggish",
        ),
        ({"audio": {}, "text": origin("text")}, "audio features were extracted by an unknown extractor"),
        (
            {"audio": origin("audio"), "visual": origin("visual", extractor="hog-color"), "text": origin("text")},
            r"visual features were extracted by hog-color .*; choose the modalities of one model .*=audio,",
        ),
        ({"audio": origin("audio")}, "the data have only audio"),
        ({"visual": origin("visual"), "text": origin("text")}, r"visual features were extracted by hf-visual \(clap\)"),
    ],
)
def test_other_features_are_refused_in_one_line(features, message):
    with pytest.raises(InputError, match=message) as caught:
        built(**features)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Pictures and texts by the two towers of a tiny CLIP, random as it is."""
    folder = tmp_path_factory.mktemp("towers")
    clip = tiny.written("clip", folder)
    manifest = aadml.sample_data(folder / "clips", clips=40, seconds=0.5)
    with manifest.open() as file:
        rows = [dict(row) for row in csv.DictReader(file)]
    with manifest.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "media", "label", "split", "text"])
        writer.writerows([r["id"], r["media"], r["label"], r["split"], TEXTS[i % 6]] for i, r in enumerate(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AADML_CACHE", str(folder / "cache"))
        aadml.extract(manifest, folder / "f.h5", audio=None, visual=f"hf:{clip}", text=f"hf:{clip}", workers=1)
    return folder / "f.h5"


@pytest.mark.slow
def test_a_run_scores_what_direct_comparison_gives_and_its_model_loads(features, tmp_path):
    model = aadml.fit(features, method="zero-shot", runs=tmp_path)
    test = aadml.read(features).test
    assert set(test.modalities) == {"visual", "text"}
    embedded = aadml.load(model.folder).embed(visual=test["visual"].numpy())
    assert np.array_equal(embedded, test["visual"].numpy())
    direct = aadml.evaluate(embeddings=test.embedded({m: test[m] for m in test.modalities}, "cosine"))
    assert model.evaluation["map_mean"] == pytest.approx(direct.map_mean, abs=1e-6)


def test_compare_has_a_row_of_it_beside_trained_ones(features, tmp_path):
    from aadml.cli import cli

    done = CliRunner().invoke(
        cli, ["compare", "--data", str(features), "--methods", "zero-shot,cca", "--seeds", "1", "--workers", "0",
              "--json", "-o", str(tmp_path / "out")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout[done.stdout.index("{") :])
    rows = {row["method"]: row for row in found["rows"]}
    assert {"zero-shot", "cca"} <= rows.keys()
    assert rows["zero-shot"]["parameters"] in (0, "0")


def test_statistics_of_the_training_clips_are_refused(features):
    with pytest.raises(
        InputError,
        match=r"inputs.scaling is standard, but zero-shot fits no statistics; set inputs.scaling to none or l2",
    ):
        aadml.fit(features, method="zero-shot", settings={"inputs.scaling": "standard"})


def test_data_without_such_features_are_refused(tmp_path):
    with pytest.raises(InputError, match="zero-shot: the audio features were extracted by"):
        aadml.fit("synthetic:ave", method="zero-shot")
