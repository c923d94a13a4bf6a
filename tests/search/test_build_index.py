"""Updates of an index, and arguments that differ from those of the index."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.feature_file.reading import read_features
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index


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


def test_a_refused_source_leaves_no_folder_behind(tmp_path):
    (tmp_path / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises(InputError):
        Index.build(tmp_path / "cut.h5", tmp_path / "no" / "such" / "i")
    assert [path.name for path in tmp_path.iterdir()] == ["cut.h5"]
