"""The session of a person who has captioned sounds or videos: extract, train, compare, embed, index, search."""

import json

import pytest

from tests.captioned_clips import DEEDS, write_captioned
from tests.cli.conftest import run
from tests.feature_extraction.hub import tiny

pytest.importorskip("transformers")

KINDS = {"audio": "clap", "visual": "clip"}
WORDS = "the old dog falls"


def ran(*arguments):
    code, out, err = run(*arguments)
    assert code == 0, err
    return out


@pytest.fixture(scope="module", params=["audio", pytest.param("visual", marks=pytest.mark.slow)])
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


def test_each_caption_is_an_item_of_an_index_of_any_source(session, tmp_path):
    modality, folder, trained = session
    ran("embed", trained, folder / "F.h5", "-o", folder / "E.h5")
    sources = {folder / "F.h5": ("--model", trained), folder / "clips" / "manifest.csv": ("--model", trained),
               folder / "E.h5": ()}  # fmt: skip
    for number, (source, model) in enumerate(sources.items()):
        index = tmp_path / f"{number}.index"
        built = json.loads(ran("index", source, "-o", index, *model, "--json"))
        assert (built["items"], built["vectors"]) == (36, {modality: 36, "text": 108})
        ran("verify", index)
    words = ("search", tmp_path / "0.index", "--text", WORDS, "--json")
    hits = json.loads(ran(*words, "--to", "text", "-k", 12))["hits"]
    captions = [hit["caption"] for hit in hits]
    assert [hit["id"] for hit in hits] == [f"{caption['clip']}#{caption['number']}" for caption in captions]
    assert all(caption["text"].endswith(DEEDS[caption["number"] - 1]) for caption in captions)
    if modality == "audio":  # the untrained text tower of CLIP embeds all words alike
        assert {caption["text"] for caption in captions} == {WORDS}
        assert {caption["clip"] for caption in captions} == {f"clip {number}" for number in range(0, 36, 3)}
    assert captions[0]["text"] in ran(*words[:-1], "--to", "text")
    clips = json.loads(ran(*words, "--to", modality))["hits"]
    assert all(hit["caption"] is None for hit in clips)


@pytest.mark.slow
def test_an_audio_text_paper_is_reproduced_on_captioned_sounds(tmp_path):
    manifest = write_captioned(tmp_path / "clips")
    arguments = ("--quick", "--max-epochs", 1, "--seeds", 1, "--workers", 0, "--set", "training.batch=6")
    ran("reproduce", "xie", "--clotho", manifest, *arguments, "-o", tmp_path / "out")
    rows = (tmp_path / "out" / "xie-clotho.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 9
    assert "text-based hard" in rows[5]
