"""Approximate search: cells find what they promise, scores stay exact, and an index that changes makes them anew."""

import numpy as np
import pytest
import torch

from aadml.feature_extraction.feature_file import FeatureFile, write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index, build_index, ivf
from aadml.search.exact_search import Gallery
from aadml.search.ivf import Cells, RecallQueries, make_cells
from aadml.search.store import connect

pytest.importorskip("faiss", reason="faiss is not installed (extra faiss)")

ITEMS, WIDTH = 3000, 8


def clustered(count=ITEMS, seed=0):
    generator = np.random.default_rng(seed)
    centers = generator.normal(size=(40, WIDTH))
    return (centers[generator.integers(0, 40, count)] + 0.2 * generator.normal(size=(count, WIDTH))).astype(np.float32)


def asking(vectors, own=None):
    own = np.full(len(vectors), -1) if own is None else own
    return {"audio": RecallQueries(torch.from_numpy(vectors), own)}


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean", "hamming"])
def test_the_cells_hold_the_promised_share_of_the_ten_best(similarity):
    gallery, queries = Gallery(torch.from_numpy(clustered()), similarity), clustered(60, seed=1)
    cells = make_cells(gallery, asking(queries), recall=0.9, smallest=1000)
    assert isinstance(cells, Cells)
    shares = []
    for query in torch.from_numpy(queries):
        best = set(gallery.best(query[None], 10)[0].tolist())
        rows = cells.candidates(query[None])
        assert (np.diff(rows) > 0).all()
        shares.append(len(best & set(rows.tolist())) / 10)
        held, scores = gallery.best(query[None], 10, rows)
        np.testing.assert_allclose(scores, gallery.scores(query[None])[held], rtol=1e-6, atol=1e-6)
    assert np.mean(shares) == pytest.approx(cells.recall["audio"])
    assert np.mean(shares) >= 0.9


def test_every_item_lies_in_the_cell_of_its_nearest_center():
    vectors = clustered()
    cells = make_cells(Gallery(torch.from_numpy(vectors), "euclidean"), asking(vectors[:20]), recall=0.5, smallest=1)
    apart = ((vectors[:, None].astype(float) - cells.centers[None]) ** 2).sum(2)
    np.testing.assert_allclose(apart[np.arange(ITEMS), cells.cell_of], apart.min(1), rtol=1e-4)
    everything = Cells(cells.centers, cells.cell_of, len(cells.centers), {}, "euclidean")
    assert everything.candidates(torch.from_numpy(vectors[:1])).tolist() == list(range(ITEMS))


def test_a_question_that_is_an_item_does_not_count_itself():
    vectors = clustered()
    gallery = Gallery(torch.from_numpy(vectors), "cosine")
    cells = make_cells(gallery, asking(vectors[:50], np.arange(50)), recall=0.5, smallest=1)
    shares = []
    for row in range(50):
        best = [n for n in gallery.best(torch.from_numpy(vectors[row : row + 1]), 11)[0] if n != row][:10]
        shares.append(np.isin(best, cells.candidates(torch.from_numpy(vectors[row : row + 1]))).mean())
    assert np.mean(shares) == pytest.approx(cells.recall["audio"])


def test_where_cells_do_not_pay_there_are_none():
    noise = np.random.default_rng(0).normal(size=(2000, 64)).astype(np.float32)
    gallery = Gallery(torch.from_numpy(noise), "cosine")
    reason = make_cells(gallery, asking(noise[:40], np.arange(40)), recall=0.99, smallest=1)
    assert "searched exactly" in reason
    assert "recall@10" in reason
    assert "2,000 items" in make_cells(gallery, asking(noise[:40]), recall=0.9, smallest=ivf.SMALLEST)


@pytest.fixture
def source(tmp_path):
    def written(rows):
        vectors = clustered()[rows]
        ids = tuple(f"clip {row:05}" for row in rows)
        content = FeatureFile(
            features={"audio": vectors}, labels=np.zeros(len(ids), dtype=np.int64), ids=ids,
            splits=("test",) * len(ids), class_names=("any",), provenance={},
        )  # fmt: skip
        write_features(tmp_path / "f.h5", content)
        return tmp_path / "f.h5"

    return written


@pytest.mark.slow
def test_an_index_looks_at_a_part_until_exactness_is_asked_for(source, tmp_path, monkeypatch):
    monkeypatch.setattr(ivf, "SMALLEST", 1000)
    notes = []
    place = source(range(ITEMS))
    index = Index.build(place, tmp_path / "i", approximate=0.9, on_note=notes.append)
    assert any("audio: approximate search in" in note and "recall@10" in note for note in notes)
    asked = clustered(5, seed=3)
    for one in asked:
        part, whole = (index.search(audio=one, to="audio", exact=exact) for exact in (False, True))
        assert part.looked_at < whole.looked_at == part.among == ITEMS
        scores = {hit.id: hit.score for hit in whole.hits}
        assert all(hit.score == pytest.approx(scores[hit.id], abs=1e-6) for hit in part.hits if hit.id in scores)
        filtered = index.search(audio=one, to="audio", where="split = 'test'")
        assert [hit.id for hit in filtered.hits] == [hit.id for hit in whole.hits]
    assert index.search(audio=asked[0], to="audio", k=ITEMS).looked_at == ITEMS  # more than the cells hold
    source(range(100, ITEMS))
    index.update()  # makes them anew, and the open index sees it
    found = index.search(audio=asked[0], to="audio")
    assert found.looked_at < found.among == ITEMS - 100


@pytest.mark.slow
def test_cells_of_an_earlier_state_are_not_used(source, tmp_path, monkeypatch):
    monkeypatch.setattr(ivf, "SMALLEST", 1000)
    index = Index.build(source(range(ITEMS)), tmp_path / "i", approximate=0.9)
    source(range(50, ITEMS))
    with monkeypatch.context() as patch:
        patch.setattr(build_index, "approximate_index", lambda *_, **__: None)  # killed before
        index.update()
    found = index.search(audio=clustered(1, seed=3)[0], to="audio")
    assert found.looked_at == found.among == ITEMS - 50


@pytest.mark.parametrize("change", ["own = x'00'", "centers = x'0011'", "facts = '{}'"])
def test_damaged_cells_are_one_line(source, tmp_path, monkeypatch, change):
    monkeypatch.setattr(ivf, "SMALLEST", 1000)
    Index.build(source(range(ITEMS)), tmp_path / "i", approximate=0.9).close()
    database = connect(tmp_path / "i")
    database.execute(f"UPDATE cells SET {change}")
    database.close()
    with pytest.raises(InputError, match="damaged"):
        Index(tmp_path / "i")


@pytest.mark.parametrize("recall", [0, 1, 1.5, float("nan")])
def test_a_recall_that_is_none_is_refused(source, tmp_path, recall):
    with pytest.raises(InputError, match="pass a share above 0 and below 1"):
        Index.build(source(range(20)), tmp_path / "i", approximate=recall)
    assert not (tmp_path / "i").exists()
