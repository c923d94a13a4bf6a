"""Building, asking and updating an index, as a person does it in Python."""

import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
import torch

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.retrieval.scores import score_source
from aadml.search import Index
from aadml.search import index as indexes
from tests.search.small_index import COLUMNS, FACTS, change, create, entry


def content(**changes):
    return replace(synthetic(classes=3, train=40, valid=20, test=30, dimensions=(6, 8), difficulty=0.3), **changes)


def test_an_index_of_features_scales_them_as_the_clips_of_the_first_build(features, tmp_path):
    with Index.build(features, tmp_path / "i") as index:
        for modality, values in read_features(features).features.items():
            scaled = (values - values.mean(0)) / values.std(0)
            vectors = index.encoder.embed(torch.from_numpy(np.array(values)), modality).numpy()
            np.testing.assert_allclose(vectors, scaled, rtol=1e-4, atol=1e-5)
            numbers, gallery = index._state.galleries[modality]
            np.testing.assert_allclose(gallery.vectors, scaled[numbers - 1], rtol=1e-4, atol=1e-5)
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


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
    with pytest.raises(InputError, match="does not compare words with"):
        index.search(text="rain", to="audio")
    with pytest.raises(InputError, match="the modality to search is missing; choose `to` from audio, visual"):
        index.search(visual=stored.features["visual"][5])
    like = index.like(found.hits[1].number, "audio", to="audio", k=1)
    assert like.hits[0].number == found.hits[1].number


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


def test_a_replaced_index_is_opened_anew(features, tmp_path):
    index = Index.build(features, tmp_path / "i")
    query = content().features["audio"][0]
    before = index.search(audio=query, to="audio", k=3)
    other = content(ids=tuple(f"new {name}" for name in content().ids))
    write_features(tmp_path / "other.h5", other)
    Index.build(tmp_path / "other.h5", tmp_path / "j").close()
    (tmp_path / "j").replace(tmp_path / "i")
    after = index.search(audio=query, to="audio", k=3)
    assert [hit.item.id for hit in after.hits] == [f"new {hit.item.id}" for hit in before.hits]
    assert index.like(1, "audio", to="audio", k=1).hits[0].item.id.startswith("new ")
    assert index.item(1)[0].id.startswith("new ")


def test_the_file_of_a_replaced_index_is_closed(features, tmp_path):
    def is_closed(database):
        try:
            database.execute("SELECT 1")
        except sqlite3.ProgrammingError:
            return True
        return False

    with Index.build(features, tmp_path / "i") as index:
        before = index._search.database
        assert len(index) == 90
        assert not is_closed(before)
        shutil.copy(tmp_path / "i", tmp_path / "j")
        (tmp_path / "j").replace(tmp_path / "i")
        index.like(1, "audio", to="audio", k=1)
        assert is_closed(before)
        assert not is_closed(index._search.database)
    assert is_closed(index._search.database)
    assert is_closed(index._pages.database)


def test_a_reader_without_write_permission_reads_the_latest_state(index, monkeypatch):
    permissions = monkeypatch.context
    with permissions() as denied:
        denied.setattr("aadml.search.store.os.access", lambda *_: False)
        reader = Index(index)
        assert len(reader) == 3
    change(index, FACTS, COLUMNS, ["a"], [entry(f"d{n}", 4 + n) for n in range(600)])
    with permissions() as denied, reader:
        denied.setattr("aadml.search.store.os.access", lambda *_: False)
        assert len(reader) == reader.browse().total == 602
        assert reader.nearest({"audio": torch.ones(1, 3)}, "audio", k=700).among == 602
        assert reader.item("d599")[0].id == "d599"


def test_the_encoder_of_a_replaced_index_is_loaded_again_where_its_record_differs(features, tmp_path):
    other = tmp_path / "other.h5"
    write_features(other, content(features={m: 2 * v + 1 for m, v in content().features.items()}))
    with Index.build(features, tmp_path / "i") as index:
        first = index.encoder
        for source, is_kept in ((features, True), (other, False)):
            Index.build(source, tmp_path / "j").close()
            (tmp_path / "j").replace(tmp_path / "i")
            assert len(index) == 90
            assert (index.encoder is first) is is_kept


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda index: index.item(2.5), "clip has type float; pass"),
        (lambda index: index.layout(3), "modality has type int; pass text"),
        (lambda index: index.layout("smell"), "this index has no smell vectors; choose from audio, visual"),
        (lambda index: index.item(10**30), "a number has more than 64 bits"),
        (lambda index: index.item(-1), "clip number -1 is not in this index"),
        (lambda index: index.browse(limit=10**30), "a number has more than 64 bits"),
        (lambda index: index.browse(offset=2.5), "offset has type float; pass a whole number"),
        (lambda index: index.browse(limit=-1), "limit -1 is negative"),
        (lambda index: index.browse(offset=-1), "offset -1 or limit 24 is negative"),
        (lambda index: index.like(10**30, "audio", to="audio"), r"this index has no clip number .* with audio"),
    ],
)
def test_what_no_index_has_is_one_line(features, tmp_path, call, says):
    with Index.build(features, tmp_path / "i") as index, pytest.raises(InputError, match=says):
        call(index)


def test_a_removed_index_answers_nothing(features, tmp_path):
    index = Index.build(features, tmp_path / "i")
    (tmp_path / "i").unlink()
    with pytest.raises(InputError, match="does not exist; build the index"):
        index.search(audio=content().features["audio"][0], to="audio")


def test_a_missing_calibration_file_is_refused_before_work(features, tmp_path):
    with pytest.raises(InputError, match="does not exist; pass a feature file with validation clips"):
        aadml.index(features, tmp_path / "i", calibrate="/nope.h5")
    assert [path.name for path in tmp_path.iterdir()] == []


def test_calibration_clips_of_another_width_are_refused_before_media_are_read(features, tmp_path):
    clips = aadml.sample_data(tmp_path / "clips", clips=2, seconds=0.5, workers=1)
    with pytest.raises(InputError, match="audio has 6 dimensions, but the index has 128"):
        aadml.index(clips, tmp_path / "i", calibrate=features, workers=1)
    assert [path.name for path in tmp_path.iterdir()] == ["clips"]


def test_a_search_parses_facts_and_looks_for_moments_once(timed, timed_features, tmp_path, monkeypatch):
    statements, parsed, read_facts = [], [], indexes.read_facts
    monkeypatch.setattr(indexes, "read_facts", lambda *where: parsed.append(1) or read_facts(*where))
    with Index.build(timed_features, tmp_path / "i", moments=True) as index:
        index.search(audio=timed.features["audio"][7], to="audio", k=10)
        parsed.clear()
        index._search.database.set_trace_callback(statements.append)
        assert any(hit.moment for hit in index.search(audio=timed.features["audio"][7], to="audio", k=10).hits)
        assert not parsed
        assert sum("moment_audio'" in statement and "sqlite_master" in statement for statement in statements) == 1
        assert sum("user_version" in statement for statement in statements) <= 2
        index.update(moments=True)
        write_features(timed_features, timed.select(np.arange(1, 90)))
        index.update()
        parsed.clear()
        index.search(audio=timed.features["audio"][7], to="audio", k=10)
        assert len(parsed) == 1


def test_copies_of_filtered_vectors_are_bounded_and_serve_later_searches(features, tmp_path):
    with Index.build(features, tmp_path / "index") as index:
        vectors = index._state.galleries["audio"][1].vectors
        conditions = ["number % 2 = 0", "number % 2 = 1", "number % 3 = 0", "number > 1", "number % 3 = 0"]
        for where in conditions:
            alone = index.nearest({"audio": vectors[:1]}, "audio", k=5, where=where)
            again = index.nearest({"audio": vectors[:1]}, "audio", k=5, where=where)
            assert [hit.number for hit in alone.hits] == [hit.number for hit in again.hits]
            copies = list(index._state.filters.values())
            assert sum(len(rows) for rows, _ in copies) <= len(vectors)
            assert torch.equal(copies[-1][1].vectors, vectors[torch.from_numpy(copies[-1][0])])
        for number in range(1, 40):
            index.nearest({"audio": vectors[:1]}, "audio", where=f"number = {number}")
        assert len(index._state.filters) == 32


def test_paths_of_an_index_are_relative_to_its_file_also_by_a_symbolic_link(tmp_path, monkeypatch):
    folder = tmp_path / "v1"
    folder.mkdir()
    write_features(folder / "clips.h5", content())
    (folder / "media.csv").write_text("id,media\n" + "".join(f"{clip},{clip}.wav\n" for clip in content().ids))
    model = aadml.fit(folder / "clips.h5", method="cca", settings={"method.dimension": 2}, runs=folder / "runs")
    Index.build(folder / "clips.h5", folder / "i", model=model.folder, media=folder / "media.csv").close()
    before = (folder / "i").read_bytes()
    (tmp_path / "now").symlink_to("v1/i")
    monkeypatch.chdir(tmp_path)
    with Index("now") as index:
        hit = index.search(audio=content().features["audio"][7], to="visual", k=1).hits[0]
        assert hit.media["audio"] == str(folder / f"{hit.id}.wav")
        assert (index.source, index.update().changed) == (str(folder / "clips.h5"), 0)
    assert Index.build("v1/clips.h5", "now", media="v1/media.csv").update().changed == 0
    assert (folder / "i").read_bytes() == before
    Index.build("v1/clips.h5", "now", calibrate="v1/clips.h5").close()
    assert (tmp_path / "now").is_symlink()
    assert Index("now")._state.facts.calibration.data == "clips.h5"


def test_parameters_that_are_equal_in_python_but_not_in_sqlite_find_their_own_rows(tmp_path):
    create(tmp_path / "i", FACTS, COLUMNS, [entry(text, 1, speaker=text) for text in ("1", "1.0", "x")])
    with Index(tmp_path / "i") as index:
        for value in (1, 1.0, "1.0"):
            found = index.nearest({"audio": torch.ones(1, 3)}, "audio", where="speaker = ?", parameters=[value])
            assert [hit.id for hit in found.hits] == ["1.0" if str(value) == "1.0" else "1"]


def test_hits_by_certain_posteriors_are_ordered_by_their_second_key(tmp_path):
    logits = torch.randn(30, 3, generator=torch.Generator().manual_seed(0)).double() + torch.tensor([40, 0, 0])
    vectors = torch.softmax(logits, 1).float().numpy()
    entries = [replace(entry(f"{n:02}"), vectors={"audio": vector}) for n, vector in enumerate(vectors)]
    create(tmp_path / "i", replace(FACTS, state=replace(FACTS.state, similarity="dot")), COLUMNS, entries)
    with Index(tmp_path / "i") as index:
        hits = index.nearest({"audio": torch.from_numpy(vectors[7:8])}, "audio", k=10).hits
    assert hits[0].id == "07"
    assert {hit.score for hit in hits} == {1.0}
    assert np.diff([hit.second_key for hit in hits]).max() < 0
