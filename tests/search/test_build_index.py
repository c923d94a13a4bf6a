"""Updates of an index, and arguments that differ from those of the index."""

import os
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

import aadml
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index, build_index, encoders


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


def test_a_write_protected_index_is_refused_before_media_are_decoded_or_the_index_changes(tmp_path, monkeypatch):
    clips, media = tmp_path / "f.h5", tmp_path / "media"
    content = synthetic(classes=2, train=5, valid=0, test=5, dimensions=(6, 8))
    write_features(clips, content)
    media.mkdir()
    cv2.imwrite(str(media / "a.png"), np.zeros((64, 64, 3), dtype=np.uint8))
    of_clips, of_media = (Index.build(place, tmp_path / f"{place.stem}.i", workers=1) for place in (clips, media))
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).suffix != ".i" and access(path, mode))
    monkeypatch.setattr(build_index, "of_media", None)
    unchanged = of_clips.update()
    assert (unchanged.items, unchanged.new, unchanged.changed, unchanged.removed) == (10, 0, 0, 0)
    write_features(clips, content.select(np.arange(3)))
    for index in (of_clips, of_media):
        with pytest.raises(InputError, match=r"\.i is write-protected; change its permissions"):
            index.update()


def test_another_source_or_model_is_refused(features, model, tmp_path):
    Index.build(features, tmp_path / "i", model=model)
    shutil.copy(features, tmp_path / "other.h5")
    with pytest.raises(InputError, match=r"is the index of .*pass another output"):
        Index.build(tmp_path / "other.h5", tmp_path / "i")
    other = aadml.fit(features, method="cca", settings={"method.dimension": 2}).save(tmp_path / "other model")
    with pytest.raises(InputError, match="is not the model of this index"):
        Index.build(features, tmp_path / "i", model=other)
    Index.build(features, tmp_path / "plain")
    with pytest.raises(InputError, match="was built without a model"):
        Index.build(features, tmp_path / "plain", model=other)


def test_a_moved_model_is_given_anew(features, tmp_path):
    folder = aadml.fit(features, method="cca", settings={"method.dimension": 2}).save(tmp_path / "model")
    Index.build(features, tmp_path / "i", model=folder).close()
    folder.rename(tmp_path / "elsewhere")
    asked = read_features(features).features["audio"][0]
    with Index(tmp_path / "i") as index, pytest.raises(InputError, match="pass --model if the model was moved"):
        index.search(audio=asked, to="visual")
    with Index(tmp_path / "i", model=tmp_path / "elsewhere") as index:
        assert len(index.search(audio=asked, to="visual").hits) == 10


def test_a_manifest_of_media_that_an_update_names_is_kept(features, tmp_path):
    content = read_features(features)
    (tmp_path / "m.csv").write_text(f"id,media,label,split\n{content.ids[4]},a.mp4,x,test\n")
    with Index.build(features, tmp_path / "i") as index:
        for manifest, changed in ((tmp_path / "m.csv", 1), (None, 0)):
            assert index.update(media=manifest).changed == changed
            hit = index.search(audio=content.features["audio"][4], to="audio", k=1).hits[0]
            assert hit.media["audio"] == str(tmp_path / "a.mp4")
        (tmp_path / "m.csv").write_text("id,media,label,split\nother,a.mp4,x,test\n")
        notes = []
        index.update(on_note=notes.append)
    says = f"no clip of {features} has media in {tmp_path}/m.csv; pass the manifest of its clips with --media"
    assert notes[0] == says


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"precision": 0}, "precision: 0 is not between 0 and 1"),
        ({"precision": 1}, "precision: 1 is not between 0 and 1"),
        ({"source": "/nowhere.h5"}, "/nowhere.h5 does not exist; pass a feature file, a manifest or a folder"),
        ({"output": "."}, " is a folder; pass the path of a file to write"),
        ({"weights": "auto", "audio": "log-mel"}, "the source has features already; leave out audio, weights"),
        ({"model": "m", "options": {"audio": {"hop": 1}}}, "the model determines the extractors; leave out options"),
        ({"audio": "none"}, "the source has features already; leave out audio"),
        ({"source": "clips.csv", "media": "clips.csv"}, "the source has the media of its clips; leave out media"),
        ({"allow_other_features": True}, "allow_other_features applies only to a feature file with a model"),
        ({"source": "clips.csv", "model": "m", "allow_other_features": True}, "allow_other_features applies only to"),
    ],
)
def test_arguments_that_are_wrong_or_without_effect_are_refused_before_work(features, tmp_path, choices, says):
    features.with_name("clips.csv").write_text("id,media\na,a.wav\n")
    output, source = (choices.pop(name, default) for name, default in (("output", "i"), ("source", features.name)))
    with pytest.raises(InputError, match=says):
        aadml.index(features.parent / source, tmp_path / output, **choices)
    assert list(tmp_path.iterdir()) == []


def test_arguments_that_differ_from_the_extractors_of_the_index_are_refused(tmp_path):
    folder, place = tmp_path / "clips", tmp_path / "i"
    folder.mkdir()
    for name, value in (("a.png", 50), ("b.png", 200)):
        cv2.imwrite(str(folder / name), np.full((64, 64, 3), value, dtype=np.uint8))
    same = {"visual": "hog-color", "options": {"visual": {"frames_per_second": 5.0}}}
    with Index.build(folder, place, workers=1, **same) as index:
        before = place.read_bytes()
        for choices, says in (
            ({"visual": "hog-color"}, r"visual features would be computed by hog-color with \S*frames_per_second"),
            (
                {"options": {"visual": {"frames_per_second": 2.0}}},
                r"\S*frames_per_second 2.0 instead of 5.0 in .*i; omit",
            ),
            ({"weights": "untrained"}, "weights untrained: none of log-mel, hog-color accepts weights"),
            ({"visual": "none"}, "--visual none: .*i was built with hog-color; omit --visual, or build another index"),
            ({"audio": "log-mel"}, "--audio log-mel: .*i was built without audio; omit --audio, or build another"),
            ({"media": "nowhere.csv"}, "the source has the media of its clips; leave out media"),
        ):
            with pytest.raises(InputError, match=says):
                index.update(workers=1, **choices)
        for choices in ({}, same, {**same, "audio": "none"}):
            assert index.update(workers=1, **choices).changed == 0
        assert place.read_bytes() == before


def test_an_update_builds_its_extractors_once(tmp_path, monkeypatch):
    cv2.imwrite(str(tmp_path / "a.png"), np.zeros((64, 64, 3), dtype=np.uint8))
    with Index.build(tmp_path, tmp_path / "i", workers=1, visual="hog-color") as index:
        monkeypatch.setattr(encoders, "extractor_of", None)
        assert index.update(workers=1, visual="hog-color").changed == 0


@pytest.mark.parametrize(("options", "weights"), [({"visual": {"frames_per_second": 2.0}}, None), (None, "untrained")])
def test_options_and_weights_of_an_update_need_the_extractors_of_the_index(options, weights):
    known = {"visual": {"extractor": "inception-v3", "parameters": {}}}
    extraction = build_index._Extraction({"audio": None, "visual": None}, options, weights)
    with pytest.raises(InputError, match=r"i was built with inception-v3; pass its extractors \(--visual\) with their"):
        build_index._selected(Path("i"), extraction, known)


def test_an_index_of_a_model_accepts_the_arguments_of_a_model_in_updates(features, model, tmp_path):
    folder = model.save(tmp_path / "model")
    Index.build(features, tmp_path / "i", model=folder).close()
    with Index(tmp_path / "i") as index:
        assert index.update(allow_other_features=True).changed == 0
        with pytest.raises(InputError, match="the model determines the extractors; leave out visual"):
            index.update(visual="none")


def test_an_update_by_features_of_another_extractor_or_width_is_refused(features, tmp_path):
    source, place, content = tmp_path / "f.h5", tmp_path / "i", read_features(features)
    origin = {m: {"extractor": "log-mel", "parameters": {"bands": 64}, "about": {}} for m in content.features}
    write_features(source, replace(content, provenance=origin))
    with Index.build(source, place) as index:
        for parts, says in (
            (
                {"provenance": origin | {"audio": origin["audio"] | {"extractor": "vggish"}}},
                "vggish instead of log-mel",
            ),
            ({"provenance": origin | {"visual": origin["visual"] | {"parameters": {"bands": 32}}}}, "bands 32 instead"),
            ({"features": content.features | {"audio": content.features["visual"]}}, "audio has 8 dimensions, but the"),
        ):
            write_features(source, replace(content, **{"provenance": origin, **parts}))
            with pytest.raises(InputError, match=f"{says}.*or build another index"):
                index.update()
        write_features(source, replace(content, provenance={}))
        assert index.update().changed == 0


def test_a_modality_that_an_index_does_not_store_is_noted(features, tmp_path):
    content, notes = read_features(features), []
    write_features(
        tmp_path / "f.h5", replace(content, features={**content.features, "touch": content.features["audio"]})
    )
    with Index.build(tmp_path / "f.h5", tmp_path / "i", on_note=notes.append) as index:
        assert index.counts() == {"audio": 90, "visual": 90}
    assert notes[0] == "an index stores only audio, visual, text; these modalities are left out: touch"
    write_features(tmp_path / "f.h5", replace(content, features={"touch": content.features["audio"]}))
    with pytest.raises(InputError, match="has only touch, but an index stores audio, visual, text; pass features of"):
        aadml.index(tmp_path / "f.h5", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_refused_source_leaves_no_folder_behind(tmp_path):
    (tmp_path / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(InputError):
        Index.build(tmp_path / "cut.h5", tmp_path / "no" / "such" / "i")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.h5"]


def test_files_in_the_folder_of_unfinished_work_are_kept(features, tmp_path):
    (tmp_path / "i.work").mkdir()
    (tmp_path / "i.work" / "mine.txt").write_text("mine")
    aadml.index(features, tmp_path / "i")
    assert (tmp_path / "i.work" / "mine.txt").read_text() == "mine"


def test_an_output_that_cannot_be_a_file_is_refused_before_anything_is_decoded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    (tmp_path / "clips.csv").write_text("id,media\na,a.wav\n")
    with pytest.raises(InputError, match="loop is in a loop of symbolic links; pass the path of a file to write"):
        aadml.index("clips.csv", "loop")
    sqlite3.connect("other.db").execute("CREATE TABLE a (b)").connection.close()
    for other in ("clips.csv", "other.db"):
        with pytest.raises(InputError, match=f"{other} exists and is not an index, so the file is not overwritten; ch"):
            aadml.index("clips.csv", other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clips.csv", "loop", "other.db"]


def test_an_embedding_that_is_not_finite_is_refused_and_the_index_is_unchanged(features, tmp_path):
    source, index = tmp_path / "f.h5", tmp_path / "i"
    made = read_features(features)
    values = made.features["audio"].copy()
    values[70, :2] = 3e38, -3e38  # finite, but their cosine is not
    shutil.copy(features, source)
    model = aadml.fit(features, method="cca", settings={"method.dimension": 2, "inputs.clamp": 0})
    model.method.weights["audio"] *= 1e20
    folder = model.save(tmp_path / "model")
    Index.build(source, index, model=folder).close()
    write_features(source, replace(made, features={**made.features, "audio": values}))
    split = np.where(abs(np.arange(len(made.ids)) - 70) < 20, "valid", np.array(made.splits))
    write_features(tmp_path / "valid.h5", replace(read_features(source), splits=tuple(split)))
    with pytest.raises(InputError, match=rf"the audio embedding of {made.ids[70]} contains NaN or infinity"):
        Index.build(features, tmp_path / "other", model=folder, calibrate=tmp_path / "valid.h5")
    before = sorted(tmp_path.iterdir()), index.read_bytes()
    for output in (index, tmp_path / "new"):
        with pytest.raises(InputError, match=rf"the audio embedding of {made.ids[70]} contains NaN or infinity"):
            Index.build(source, output, model=folder)
        assert (sorted(tmp_path.iterdir()), index.read_bytes()) == before
