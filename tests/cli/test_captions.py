"""The session of a person who has captioned sounds or videos: extract, train, compare, embed, index, search."""

import json

import pytest

from tests.captioned_clips import write_captioned
from tests.cli.conftest import run
from tests.feature_extraction.hub import tiny

pytest.importorskip("transformers")

KINDS = {"audio": "clap", "visual": "clip"}


def ran(*arguments):
    code, out, err = run(*arguments)
    assert code == 0, err
    return out


@pytest.fixture(scope="module", params=KINDS)
def session(request, tmp_path_factory):
    """Modality of the media, the folder with the manifest, features `F.h5`, and a run on them."""
    modality, folder = request.param, tmp_path_factory.mktemp("session")
    model = tiny.written(KINDS[modality], folder / "model")
    manifest = write_captioned(folder / "clips", videos=modality == "visual")
    ran("extract", manifest, "-o", folder / "F.h5", f"--{modality}", f"hf:{model}", "--text", f"hf:{model}",
        "--workers", 1)  # fmt: skip
    out = ran("train", "--data", folder / "F.h5", "--epochs", 1, "--runs", folder / "runs")
    return modality, folder, out.strip().splitlines()[-1]


def test_captions_are_queries_and_results_of_an_evaluation(session):
    modality, folder, trained = session
    directions = json.loads(ran("evaluate", trained, "--json"))["directions"]
    assert len(directions) == 2
    ran("embed", trained, folder / "F.h5", "-o", folder / "E.h5")
    again = json.loads(ran("evaluate", "--embeddings", folder / "E.h5", "--json"))["directions"]
    assert again[f"text-{modality}"]["map"] == directions[f"text-{modality}"]["map"]


def test_modalities_are_chosen_in_a_comparison(session, tmp_path):
    modality, folder, _ = session
    arguments = ("--data", folder / "F.h5", "--methods", "zero-shot", "--seeds", 1, "--workers", 0)
    ran("compare", *arguments, "--modalities", f"{modality},text", "-o", tmp_path / "out")
    code, _, err = run("compare", *arguments, "--modalities", "text,smell", "-o", tmp_path / "wrong")
    assert code != 0
    assert "has no smell" in err
