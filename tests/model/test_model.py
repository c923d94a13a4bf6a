"""Models embed, compare and rank as their evaluations do, and are saved once into a folder."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.scores import SIMILARITIES


@pytest.fixture(scope="module")
def model():
    return aadml.fit("synthetic:ave", method="cca")


@pytest.fixture(scope="module")
def clips():
    return aadml.read("synthetic:ave").test


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_top_k_is_the_order_of_the_similarity_in_its_unit(model, clips, similarity, monkeypatch):
    monkeypatch.setattr(type(model.method), "similarity", similarity)
    queries, gallery = model.embed(audio=clips["audio"][:5].numpy(), visual=clips["visual"].numpy()).values()
    scores = model.similarity(queries, gallery)
    best = model.top_k(queries, gallery, k=4)
    assert np.array_equal(best.indices, np.argsort(-scores, axis=1, kind="stable")[:, :4])
    np.testing.assert_allclose(best.scores, np.take_along_axis(scores, best.indices, 1), rtol=1e-6)
    x, y = (values.astype(float) for values in (queries, gallery))
    wanted = {
        "cosine": x @ y.T / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(y, axis=1),
        "dot": x @ y.T,
        "euclidean": -((x[:, None] - y) ** 2).sum(2),
        "hamming": np.where(x > 0, 1, -1) @ np.where(y > 0, 1, -1).T,
    }[similarity]
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-6)
    assert model.similarity(queries[2], gallery[7]) == scores[2, 7]  # whatever is compared beside it


def test_top_k_refuses_a_k_above_the_gallery_and_vectors_of_another_dimension(model, clips):
    queries, gallery = model.embed(audio=clips["audio"][:5].numpy(), visual=clips["visual"].numpy()).values()
    with pytest.raises(InputError, match="k is 190, but the gallery has 189 items; pass a whole number from 1 to 189"):
        model.top_k(queries, gallery, k=190)
    with pytest.raises(InputError, match="queries have 9 dimensions, but the gallery has 10"):
        model.top_k(queries[:, :9], gallery, k=3)


def test_a_model_rescaled_by_its_training_clips_embeds_the_same(model, clips):
    rescaled = model.rescaled(aadml.read("synthetic:ave").train)
    for modality, vectors in model.embed_clips(clips).vectors.items():
        assert torch.equal(rescaled.embed_clips(clips).vectors[modality], vectors)


def test_a_rescaled_model_has_no_results_of_the_model_it_was_made_from(tmp_path, clips):
    settings = {"inputs.scaling": "standard"}
    trained = replace(aadml.fit("synthetic:ave", method="cca", settings=settings, runs=tmp_path), audit="passed")
    assert trained.record
    assert trained.folder
    rescaled = trained.rescaled(clips)
    assert (rescaled.record, rescaled.audit, rescaled.folder) == (None, "", None)
    assert not torch.equal(rescaled.embed_clips(clips).vectors["audio"], trained.embed_clips(clips).vectors["audio"])
    note = "the scaling of the inputs was fitted on clips passed to Model.rescaled, not in training"
    assert note in (rescaled.save(tmp_path / "rescaled") / "README.md").read_text()
    assert note in aadml.load(tmp_path / "rescaled").facts.data.notes
    assert note not in trained.card()


@pytest.mark.parametrize("name", ["model.safetensors", "model.json", "README.md"])
def test_a_model_is_not_saved_over_a_file(model, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=f"already contains a {name}; choose another folder"):
        model.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_model_is_not_saved_through_a_link(model, tmp_path):
    (tmp_path / "README.md").symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match=r"already contains a README\.md; choose another folder"):
        model.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
