"""The best moment of a hit: the stretch that fits best, where descriptions over time were kept."""

import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index
from aadml.search.best_moment import _moments, best_moment
from aadml.search.store import connect

SETTINGS = {"network.hidden": [8], "training.batch": 20, "training.learning_rate": 0.01}


@pytest.mark.parametrize("trained", [False, True], ids=["plain", "model"])
def test_it_is_the_stretch_with_the_highest_score(timed, timed_features, tmp_path, trained):
    model = (
        aadml.fit(timed_features, loss="triplet", epochs=1, settings=SETTINGS, runs=tmp_path / "r") if trained else None
    )
    index = Index.build(timed_features, tmp_path / "i", model=model, moments=True)
    timeline = timed.sequences["audio"]
    asked = timed.features["audio"][7]
    found = index.search(audio=asked, to="audio", k=90)
    for hit in found.hits:
        row = timed.ids.index(hit.id)
        own = slice(timeline.offsets[row], timeline.offsets[row + 1])
        if len(timeline.times[own]) < 2:
            assert hit.moment is None
            continue
        vectors, question = (
            index.encoder.embed(_tensor(values), "audio").double().numpy()
            for values in (timeline.values[own], asked[None])
        )
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(question)
        scores = vectors @ question[0] / (lengths if index.similarity == "cosine" else 1)
        assert hit.moment.seconds == timeline.times[own][np.argmax(scores)]
        assert hit.moment.score == pytest.approx(scores.max(), rel=1e-5)
    assert {hit.moment is None for hit in index.search(audio=asked, to="audio", k=90).hits} == {True, False}
    if not trained:
        assert all(hit.moment is None for hit in index.search(visual=timed.features["visual"][0], to="visual").hits)


def _tensor(values):
    return torch.from_numpy(np.array(values))


def test_they_are_kept_by_updates_and_only_where_they_are_wanted(timed, timed_features, tmp_path):
    index = Index.build(timed_features, tmp_path / "i")
    asked = timed.features["audio"][7]
    assert all(hit.moment is None for hit in index.search(audio=asked, to="audio").hits)
    assert index.update(moments=True).changed == 90  # every clip gains them
    assert any(hit.moment for hit in index.search(audio=asked, to="audio").hits)
    assert index.update().changed == 0  # and they are remembered
    write_features(timed_features, timed.select(np.arange(1, 90)))
    assert index.update().removed == 1
    database = connect(tmp_path / "i")
    assert database.execute("SELECT count(*) FROM moment_audio").fetchone() == (89,)
    database.close()


def test_a_file_without_descriptions_over_time_is_refused(timed, tmp_path):
    write_features(tmp_path / "f.h5", replace(timed, sequences={}))
    with pytest.raises(InputError, match=r"--moments: .* has no features over time; extract features with"):
        Index.build(tmp_path / "f.h5", tmp_path / "i", moments=True)
    assert [path.name for path in tmp_path.iterdir()] == ["f.h5"]  # no index, and no work that was not begun


def test_an_index_of_before_there_were_moments_is_read_and_updated(timed, timed_features, tmp_path):
    index = Index.build(timed_features, tmp_path / "i")
    with sqlite3.connect(tmp_path / "i") as database:
        for name in ("audio", "visual", "text"):
            database.execute(f"DROP TABLE moment_{name}")
        database.execute("DROP TABLE checksum")
        database.execute("PRAGMA user_version = 1")
    asked = timed.features["audio"][7]
    with Index(tmp_path / "i") as opened:
        assert all(hit.moment is None for hit in opened.search(audio=asked, to="audio").hits)
    assert index.update(moments=True).changed == 90


@pytest.mark.parametrize(("times", "content"), [(0, 0), (12, 8), (16, 4), (16, 12)])
def test_moments_of_another_size_are_damage(times, content):
    with pytest.raises(sqlite3.DatabaseError, match="it is damaged: moment_audio, number 7"):
        _moments([(7, bytes(times), bytes(content))], "moment_audio", 7)
    whole = _moments([(7, bytes(16), bytes(16))], "moment_audio", 7)
    assert (whole.times.shape, whole.vectors.shape, _moments([], "moment_audio", 7)) == ((2,), (2, 2), None)


def test_moments_of_another_width_than_the_query_are_damage():
    moments = _moments([(7, bytes(16), bytes(16))], "moment_audio", 7)
    with pytest.raises(sqlite3.DatabaseError, match="it is damaged: the width of the vectors over time"):
        best_moment(moments, torch.ones(1, 3), "cosine")


def test_damaged_moments_are_one_line(timed, timed_features, tmp_path):
    index = Index.build(timed_features, tmp_path / "i", moments=True)
    with sqlite3.connect(tmp_path / "i") as database:
        database.execute("UPDATE moment_audio SET content = x'00'")
    with pytest.raises(InputError, match=r"damaged: moment_audio, number"):
        index.search(audio=timed.features["audio"][7], to="audio", k=90)
