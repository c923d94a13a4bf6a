"""Building, asking and updating an index, as a person does it in Python."""

import csv
import shutil
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch

import aadml
from aadml.data.samples.mp4 import write_mp4
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file import read_features, write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.scores import score_source
from aadml.search import Index

SETTINGS = {"network.hidden": [8], "training.batch": 20, "training.learning_rate": 0.01}


def content(**changes):
    return replace(synthetic(classes=3, train=40, valid=20, test=30, dimensions=(6, 8), difficulty=0.3), **changes)


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "features.h5"
    made = content()
    write_features(path, replace(made, columns={"speaker": tuple(f"s{n % 3}" for n in range(len(made.ids)))}))
    return path


@pytest.fixture(scope="module", params=["aa-triplet", "recommended"])
def model(request, features, tmp_path_factory):
    config = {"config": "recommended"} if request.param == "recommended" else {"loss": request.param}
    return aadml.fit(features, epochs=2, settings=SETTINGS, runs=tmp_path_factory.mktemp("runs"), **config)


def test_a_ranking_is_that_of_an_evaluation(features, model, tmp_path):
    index = Index.build(features, tmp_path / "i", model=model)
    test = aadml.read(features).test
    audio, visual = (model.embed(**{m: test[m].numpy()}) for m in ("audio", "visual"))
    scores = score_source(torch.from_numpy(audio), torch.from_numpy(visual), model.method.similarity).block(
        0, len(audio)
    )
    for row in range(len(test)):
        found = index.search(audio=test["audio"][row].numpy(), to="visual", k=30, where="split = 'test'")
        order = np.lexsort((test.ids, -scores[row]))
        unit = found.hits[0].score / scores[row].max()
        assert np.log2(unit) == pytest.approx(round(np.log2(unit)), abs=1e-5)  # scores of sets carry a power of two
        np.testing.assert_allclose([hit.score for hit in found.hits], unit * scores[row][order], rtol=1e-6, atol=1e-6)
        for hit, wanted in zip(found.hits, order, strict=True):
            assert scores[row][test.ids.index(hit.id)] == pytest.approx(scores[row][wanted], abs=1e-6)
        assert found.among == 30


def test_without_a_model_a_modality_asks_for_itself_alone(features, tmp_path):
    index, stored = Index.build(features, tmp_path / "i"), read_features(features)
    found = index.search(visual=stored.features["visual"][5], to="visual", k=3)
    assert found.hits[0].id == stored.ids[5]
    assert found.hits[0].score == pytest.approx(1)
    assert found.hits[0].item.columns == {"speaker": "s2"}
    with pytest.raises(InputError, match=r"built without a model.*--model RUN"):
        index.search(visual=stored.features["visual"][5], to="audio")
    with pytest.raises(InputError, match="does not read words"):
        index.search(text="rain", to="audio")
    with pytest.raises(InputError, match="--to is missing; this index has audio, visual"):
        index.search(visual=stored.features["visual"][5])
    like = index.like(found.hits[1].number, "audio", to="audio", k=1)
    assert like.hits[0].number == found.hits[1].number


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({}, "not none; pass one of them"),
        ({"audio": "a.wav", "visual": "b.jpg"}, "not audio, visual; pass one"),
        ({"audio": "no such.wav"}, "no such file"),
        ({"audio": [1.0, 2.0]}, "one row of 6"),
        ({"audio": np.zeros((2, 6))}, "one row of 6"),
        ({"audio": np.zeros(6), "k": 0}, "not a positive whole number"),
        ({"audio": np.zeros(6), "where": "weather = 1"}, "no such column: weather; there are id, split, label"),
        ({"audio": np.zeros(6), "to": "text"}, "has only audio, visual"),
    ],
)
def test_a_wrong_question_is_refused(features, tmp_path, question, says):
    index = Index.build(features, tmp_path / "i")
    with pytest.raises(InputError, match=says):
        index.search(**{"to": "audio", **question})


def test_filters_and_more_than_there_is(features, tmp_path):
    index = Index.build(features, tmp_path / "i")
    asked = read_features(features).features["audio"][0]
    for where, parameters, count in (
        ("speaker = ?", ["s1"], 30),
        ("speaker = 's1' AND split = 'valid'", [], None),
        ("0", [], 0),
        (None, [], 90),
    ):
        found = index.search(audio=asked, to="audio", k=1000, where=where, parameters=parameters)
        assert len(found.hits) == found.among == (count if count is not None else found.among)
        if where and "s1" in (where, *parameters):
            assert {hit.item.columns["speaker"] for hit in found.hits} == {"s1"}


def test_an_update_embeds_what_is_new_or_changed_and_removes_what_is_gone(features, tmp_path, monkeypatch):
    source, place = tmp_path / "f.h5", tmp_path / "i"
    shutil.copy(features, source)
    index, before = Index.build(source, place), read_features(source)
    assert index.update() == replace(index.update(), new=0, changed=0, removed=0, items=90)
    rows = np.arange(1, 90)
    changed = before.select(rows)
    values = changed.features["audio"].copy()
    values[3] = values[10]
    write_features(
        source, replace(changed, features={**changed.features, "audio": values}, ids=(*changed.ids[:-1], "new"))
    )
    changes = index.update()
    assert (changes.items, changes.new, changes.changed, changes.removed) == (89, 1, 1, 2)
    found = index.search(audio=values[10], to="audio", k=2)  # the open index sees it
    assert {hit.id for hit in found.hits} == {changed.ids[3], changed.ids[10]}
    assert found.hits[0].score == found.hits[1].score
    assert [hit.id for hit in found.hits] == sorted(hit.id for hit in found.hits)
    assert len(index) == 89


def test_another_source_or_model_is_refused(features, model, tmp_path):
    Index.build(features, tmp_path / "i", model=model)
    shutil.copy(features, tmp_path / "other.h5")
    with pytest.raises(InputError, match=r"is the index of .*pass another output"):
        Index.build(tmp_path / "other.h5", tmp_path / "i")
    other = aadml.fit(features, method="cca", settings={"method.dimension": 2}).save(tmp_path / "other model")
    with pytest.raises(InputError, match="is not the model that made this index"):
        Index.build(features, tmp_path / "i", model=other)
    Index.build(features, tmp_path / "plain")
    with pytest.raises(InputError, match="was made without a model"):
        Index.build(features, tmp_path / "plain", model=other)


def test_a_moved_model_is_given_anew(features, tmp_path):
    folder = aadml.fit(features, method="cca", settings={"method.dimension": 2}).save(tmp_path / "model")
    Index.build(features, tmp_path / "i", model=folder).close()
    folder.rename(tmp_path / "elsewhere")
    asked = read_features(features).features["audio"][0]
    with Index(tmp_path / "i") as index, pytest.raises(InputError, match="pass --model if it was moved"):
        index.search(audio=asked, to="visual")
    with Index(tmp_path / "i", model=tmp_path / "elsewhere") as index:
        assert len(index.search(audio=asked, to="visual").hits) == 10


def test_vectors_are_exported(features, tmp_path):
    with Index.build(features, tmp_path / "i") as index:
        written = index.export(tmp_path / "out")
        assert [path.name for path in written] == [
            "out.audio.npy", "out.audio.ids.txt", "out.visual.npy", "out.visual.ids.txt"
        ]  # fmt: skip
        values, ids = np.load(written[0]), written[1].read_text().splitlines()
        assert ids == sorted(read_features(features).ids)
        assert values.shape == (90, 6)


def test_vectors_are_exported_as_parquet_with_all_columns(features, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra parquet)")
    with Index.build(features, tmp_path / "i") as index:
        written = index.export(tmp_path / "out", kind="parquet")
        rows = parquet.read_table(written[1]).to_pylist()
        stored = read_features(features)
        assert [path.name for path in written] == ["out.audio.parquet", "out.visual.parquet"]
        assert list(rows[0]) == ["id", "split", "label", "speaker", "vector"]
        assert [row["id"] for row in rows] == sorted(stored.ids)
        values = np.load(index.export(tmp_path / "out")[2])
        np.testing.assert_array_equal(np.asarray([row["vector"] for row in rows], dtype=np.float32), values)
        with pytest.raises(InputError, match="pass npy or parquet"):
            index.export(tmp_path / "out", kind="csv")


@pytest.fixture(scope="module")
def media(tmp_path_factory):
    """A flat folder of media without labels: videos with sound, a silent one, a sound, a picture, and a broken file."""
    folder = tmp_path_factory.mktemp("media")
    generator = np.random.default_rng(0)
    for number in range(3):
        tone = 0.3 * np.sin(2 * np.pi * (300 + 400 * number) * np.arange(48_000) / 48_000)
        blocks = np.kron(generator.integers(0, 256, (3, 4, 3)), np.ones((20, 20, 1))).astype(np.uint8)
        pictures = np.repeat(blocks[None], 10, axis=0)
        write_mp4(folder / f"{number}.mp4", pictures, tone, frame_rate=10, rate=48_000)
        cv2.imwrite(str(folder / f"{number}.png"), cv2.cvtColor(pictures[0], cv2.COLOR_RGB2BGR))
    (folder / "broken.mp4").write_bytes(b"not a video")
    (folder / "sub").mkdir()
    shutil.copy(folder / "2.mp4", folder / "sub" / "2.mp4")
    return folder


@pytest.mark.slow
def test_a_folder_of_media_becomes_an_index_that_files_ask(media, tmp_path):
    folder = tmp_path / "media"
    shutil.copytree(media, folder)
    place = tmp_path / "i"
    index = Index.build(folder, place, workers=1)
    assert len(index) == 7
    assert {m: len(g[0]) for m, g in index._state.galleries.items()} == {"audio": 4, "visual": 7}
    found = index.search(visual=folder / "1.png", to="visual", k=2)
    assert found.hits[0].id == "1.png"
    assert found.hits[1].id == "1.mp4"
    assert found.hits[1].media["visual"] == str(folder / "1.mp4")
    found = index.search(clip=folder / "2.mp4", to="audio", k=2)
    assert [hit.id for hit in found.hits] == ["2.mp4", "sub/2.mp4"]
    assert found.asked == ("audio",)
    with pytest.raises(InputError, match=r"broken\.mp4"):
        index.search(audio=folder / "broken.mp4", to="audio")
    (folder / "1.mp4").unlink()
    shutil.copy(folder / "2.mp4", folder / "0.mp4")
    shutil.copy(folder / "2.mp4", folder / "new.mp4")
    changes = index.update(workers=1)
    assert (changes.new, changes.changed, changes.removed, len(changes.failures)) == (1, 1, 1, 2)
    found = index.search(clip=folder / "2.mp4", to="audio", k=4)
    assert [hit.id for hit in found.hits] == ["0.mp4", "2.mp4", "new.mp4", "sub/2.mp4"]


def test_a_folder_without_media_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        Index.build(tmp_path / "empty", tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_a_manifest_says_where_the_media_of_a_feature_file_are(features, tmp_path):
    with (tmp_path / "manifest.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "media", "split"))
        rows.writerows((name, f"{n}.mp4", "test") for n, name in enumerate(read_features(features).ids))
    with Index.build(features, tmp_path / "i", media=tmp_path / "manifest.csv") as index:
        hit = index.search(audio=read_features(features).features["audio"][4], to="audio", k=1).hits[0]
        assert hit.media == {"audio": str(tmp_path / "4.mp4"), "visual": str(tmp_path / "4.mp4")}
        changes = index.update()  # the manifest is remembered
        assert (changes.new, changes.changed, changes.removed) == (0, 0, 0)
