"""Maps of the vectors: stored when an index is built, made again after each change, verified like its other parts."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import DamagedFileError
from aadml.search import Index, vector_maps
from aadml.search.store import writing
from aadml.search.vector_maps import map_index, principal
from tests.search.small_index import COLUMNS, FACTS, change, create, entry


@pytest.fixture
def source(features, tmp_path):
    shutil.copy(features, tmp_path / "f.h5")
    return tmp_path / "f.h5"


def check_map(index, modality):
    """The map of an index shows the principal components of its vectors, of which the signs are arbitrary."""
    layout, (numbers, gallery) = index.layout(modality), index._state.galleries[modality]
    order = np.argsort(numbers)
    assert layout.numbers.tolist() == numbers[order].tolist()
    expected = principal(gallery.vectors[order])
    for place, wanted in zip(layout.places.T, expected.T, strict=True):
        assert min(np.abs(place - wanted).max(), np.abs(1 - place - wanted).max()) < 1e-5


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_a_map_has_the_two_principal_components_of_the_directions(dimension):
    vectors = np.random.default_rng(0).normal(size=(40, dimension)) * np.arange(1, dimension + 1)
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    left, sizes, _ = np.linalg.svd(directions - directions.mean(0), full_matrices=False)
    expected = np.zeros((40, 2))
    expected[:, :dimension] = (left * sizes)[:, :2]
    found = principal(torch.from_numpy(vectors))
    assert (found.dtype, found.shape) == (np.float32, (40, 2))
    for place, wanted in zip(found.T, expected.T, strict=True):
        if wanted.any():
            scaled = (wanted - wanted.min()) / (wanted.max() - wanted.min())
            assert min(np.abs(place - scaled).max(), np.abs(1 - place - scaled).max()) < 1e-6
        else:
            assert not place.any()
    assert not principal(torch.ones(3, 4)).any()  # of equal directions


def test_a_map_is_made_with_the_index_and_only_read_by_a_page(source, tmp_path, monkeypatch):
    with Index.build(source, tmp_path / "i") as index:
        monkeypatch.setattr(vector_maps, "principal", lambda _: pytest.fail("the map was computed again"))
        layout = index.layout("visual")
        monkeypatch.undo()
        check_map(index, "visual")
        assert layout.labels == tuple(index.item(number)[0].label for number in layout.numbers.tolist())


def test_an_update_makes_the_map_again_and_an_update_without_changes_keeps_it(source, tmp_path, monkeypatch):
    with Index.build(source, tmp_path / "i") as index:
        before = index.layout("audio")
        content = read_features(source)
        values = content.features["audio"].copy()
        values[3] *= -3
        write_features(source, replace(content, features={**content.features, "audio": values}).select(np.arange(80)))
        index.update()
        after = index.layout("audio")
        assert (len(before.numbers), len(after.numbers)) == (90, 80)
        check_map(index, "audio")
        monkeypatch.setattr(vector_maps, "principal", lambda _: pytest.fail("the map was computed again"))
        index.update()
        assert index.layout("audio").numbers.tolist() == after.numbers.tolist()


def store_maps(path):
    with writing(path) as database:
        map_index(database)


def test_an_index_without_a_map_shows_one_and_the_next_change_stores_it(source, tmp_path):
    path = tmp_path / "i"
    Index.build(source, path).close()
    content = read_features(source)
    create(tmp_path / "old", FACTS, COLUMNS, [entry("a", 1.0), entry("b", 2.0)])  # as before maps were stored
    with Index(tmp_path / "old") as old:
        assert len(old.layout("audio").numbers) == 2
        change(tmp_path / "old", FACTS, COLUMNS, ["a"], [])
        assert len(old.layout("audio").numbers) == 1
    with closing(sqlite3.connect(path)) as database:
        points = database.execute("SELECT count(*) FROM map_audio").fetchone()
    assert points == (len(content.ids),)
    store_maps(tmp_path / "old")
    assert aadml.verify(tmp_path / "old") == []


def test_a_map_of_many_items_shows_a_regular_sample(source, tmp_path, monkeypatch):
    assert vector_maps.MOST_POINTS == 10_000  # as the guide says
    monkeypatch.setattr(vector_maps, "MOST_POINTS", 40)
    with Index.build(source, tmp_path / "i") as index:
        assert index.layout("audio").numbers.tolist() == list(range(1, 91, 3))


def test_a_point_of_another_size_is_damage(source, tmp_path, monkeypatch):
    Index.build(source, tmp_path / "i").close()
    with Index(tmp_path / "i") as index:
        monkeypatch.setattr(vector_maps, "verified_rows", lambda *_: [[(1, bytes(8))], [(2, bytes(7))]])
        with pytest.raises(DamagedFileError, match="it is damaged: the map of audio"):
            index.layout("audio")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE map_audio SET content = zeroblob(8) WHERE number = 2",
        "DELETE FROM map_audio WHERE number = 2",
        "INSERT INTO map_audio VALUES (700, zeroblob(8))",
    ],
)
def test_a_damaged_map_is_refused_and_named_by_verify(source, tmp_path, damage):
    Index.build(source, tmp_path / "i").close()
    with closing(sqlite3.connect(tmp_path / "i")) as database, database:
        database.execute(damage)
    with Index(tmp_path / "i") as index, pytest.raises(DamagedFileError, match="it is damaged: map_audio"):
        index.layout("audio")
    (named,) = aadml.verify(tmp_path / "i")
    assert "map_audio" in named


def test_vectors_that_are_not_finite_are_damage(tmp_path):
    create(tmp_path / "i", FACTS, COLUMNS, [entry("a", 1.0), entry("b", float("nan"))])
    for use in (Index, store_maps):
        with pytest.raises(DamagedFileError, match="the vectors of audio contain NaN"):
            use(tmp_path / "i")
