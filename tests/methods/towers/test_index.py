"""An index of media by a model whose networks hear and see them."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

import aadml
from aadml.model.model import Model
from aadml.search import Index
from aadml.search.build_index import build


@pytest.fixture(scope="module")
def model(videos, networks, tmp_path_factory):
    places = {"towers.audio": f"hf:{networks['wav2vec2']}", "towers.visual": f"hf:{networks['clip']}"}
    settings = {**places, "towers.train": [], "network.hidden": [8], "training.batch": 6}
    found = aadml.fit(videos, config="recommended", settings=settings, epochs=1)
    return aadml.load(found.save(tmp_path_factory.mktemp("model") / "m"))


@pytest.fixture
def folder(videos, tmp_path):
    """Four videos: two whole ones, one that ends in its head, and one that is a text."""
    place = tmp_path / "clips"
    place.mkdir()
    with videos.open(newline="") as file:
        names = [row["media"] for row in csv.DictReader(file)][:3]
    for name in names[:2]:
        shutil.copy(videos.parent / name, place / name)
    (place / names[2]).write_bytes((videos.parent / names[2]).read_bytes()[:200])
    (place / "text.mp4").write_text("no video")
    return place


def test_sound_and_picture_are_both_embedded_as_the_model_embeds_them(folder, model, tmp_path):
    changes = build(folder, tmp_path / "i", model=model)
    assert {(Path(one.media).name, one.modality) for one in changes.failures} == {
        (name, modality) for name in ("2.mp4", "text.mp4") for modality in ("audio", "visual")
    }
    with Index(tmp_path / "i") as index:
        assert (len(index), index.modalities) == (2, ("audio", "visual"))
        for modality in index.modalities:
            numbers, gallery = index._state.galleries[modality]
            names = [index.item(int(n))[0].id for n in numbers]
            expected = model.embed(**{modality: [str(folder / name) for name in names]})
            np.testing.assert_allclose(gallery.vectors, expected, atol=1e-6)
        hits = {hit.id: hit.score for hit in index.search(visual=folder / "1.mp4", to="visual").hits}
        own = model.embed(visual=str(folder / "1.mp4"))
        assert hits["1.mp4"] == pytest.approx(float(own @ own), abs=1e-5)


def test_a_copy_is_known_by_its_content_and_not_embedded_again(folder, model, tmp_path, monkeypatch):
    build(folder, tmp_path / "i", model=model)
    shutil.copy(folder / "0.mp4", folder / "again.mp4")
    asked, embed = set(), Model.embed_features
    monkeypatch.setattr(Model, "embed_features", lambda *given: asked.update(given[1].paths) or embed(*given))
    assert build(folder, tmp_path / "i", model=model).new == 1
    assert {Path(path).name for path in asked} == {"2.mp4", "text.mp4"}  # what could not be read is tried again
