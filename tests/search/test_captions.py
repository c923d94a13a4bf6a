"""Captions of clips with several captions as items of an index."""

from dataclasses import replace

import numpy as np
import pytest

import aadml
from aadml.cli.search import _lines
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import Texts
from aadml.feature_extraction.feature_file.writing import write_features
from aadml.feature_extraction.ground.errors import InputError
from aadml.search import Index


def captioned(*, labels=True, wrong=()):
    """Sixty clips with three captions each, whose features are those of the sound, turned and with noise."""
    clips = synthetic(classes=3, train=10, valid=40, test=10, dimensions=(6, 6), difficulty=0.1)
    generator = np.random.default_rng(0)
    audio = clips.features["audio"]
    rows = np.repeat(np.arange(60), 3)
    values = (audio[rows] + 0.01 * generator.normal(size=(180, 6))).astype(np.float32)
    columns = {f"caption_{n}": tuple(f"words {clip} {n}" for clip in range(60)) for n in (1, 2, 3)}
    columns |= dict.fromkeys(wrong, ("x",) * 60)
    found = replace(
        clips, features={"audio": audio, "text": values[::3]}, columns=columns, provenance={}, fingerprints={},
        texts=Texts(values, rows.astype(np.int64)),
    )  # fmt: skip
    return found if labels else replace(found, labels=np.full(60, -1), class_names=())


@pytest.fixture
def features(tmp_path):
    write_features(tmp_path / "F.h5", captioned())
    return tmp_path / "F.h5"


@pytest.fixture
def index(features, tmp_path):
    return Index.build(features, tmp_path / "i")


def test_a_caption_is_found_filtered_and_exported(index, tmp_path):
    content = captioned()
    hit = index.search(text=content.texts.values[7], to="text", k=1).hits[0]
    assert (hit.item.clip, hit.id) == (content.ids[2], f"{content.ids[2]}#2")
    assert (hit.item.caption.number, hit.item.caption.text) == (2, "words 2 2")
    assert hit.item.label == content.class_names[content.labels[2]]
    found = index.search(text=content.texts.values[7], to="text", where="caption_of = ?", parameters=[content.ids[4]])
    captions = sorted((hit.item.caption.number, hit.item.caption.text) for hit in found.hits)
    assert captions == [(1, "words 4 1"), (2, "words 4 2"), (3, "words 4 3")]
    assert len(index.search(text=content.texts.values[7], to="text", where="caption_number = 3", k=99).hits) == 60
    index.export(tmp_path / "v")
    assert f"{content.ids[2]}#2" in (tmp_path / "v.text.ids.txt").read_text().splitlines()
    assert len(np.load(tmp_path / "v.text.npy")) == 180
    assert aadml.verify(tmp_path / "i") == []


def test_columns_of_captions_may_have_gaps(tmp_path):
    content = captioned()
    names = {"caption_1": "caption", "caption_2": "caption_2", "caption_3": "caption_10"}
    columns = {names[name]: cells for name, cells in reversed(content.columns.items())}
    write_features(tmp_path / "F.h5", replace(content, columns=columns))
    (hit,) = Index.build(tmp_path / "F.h5", tmp_path / "i").search(text=content.texts.values[8], to="text", k=1).hits
    assert (hit.item.caption.number, hit.item.caption.text) == (3, "words 2 3")


def test_a_changed_or_removed_caption_changes_its_clip(features, index):
    content = captioned()
    values = content.texts.values.copy()
    values[7] += 1
    write_features(features, replace(content, texts=Texts(values, content.texts.rows)))
    changes = index.update()
    assert (changes.items, changes.new, changes.changed, changes.removed) == (60, 0, 1, 0)
    assert index.search(text=values[7], to="text", k=1).hits[0].id == f"{content.ids[2]}#2"
    fewer = np.arange(len(values)) != 7
    write_features(features, replace(content, texts=Texts(values[fewer], content.texts.rows[fewer])))
    changes = index.update()
    assert (changes.changed, changes.removed, dict(changes.vectors)) == (1, 0, {"audio": 60, "text": 179})
    write_features(features, content.select(np.arange(59)))
    changes = index.update()
    assert (changes.items, changes.changed, changes.removed) == (59, 1, 1)
    assert dict(changes.vectors) == {"audio": 59, "text": 177}


def test_captions_do_not_count_as_clips(index):
    assert len(index) == index.browse().total == 60
    assert index.counts() == {"audio": 60, "text": 180}
    content = captioned()
    by_text, by_sound = (_lines(index.like(content.ids[0], m, to=m, k=1))[0] for m in ("text", "audio"))
    assert by_text == "text to text: 1 of 180 captions, by cosine"
    assert by_sound == "audio to audio: 1 of 60 clips, by cosine"


def test_captions_are_left_out_of_an_index_without_text(features, tmp_path):
    content = captioned()
    bare = replace(content, features={"audio": content.features["audio"]}, texts=None)
    write_features(features, bare)
    notes = []
    with Index.build(features, tmp_path / "i", on_note=notes.append) as index:
        write_features(features, content)
        notes.clear()
        changes = index.update(on_note=notes.append)
        assert notes == [f"the index embeds only audio; these modalities of {features} are left out: text"]
        assert (changes.items, changes.new, changes.changed, dict(changes.vectors)) == (60, 0, 0, {"audio": 60})
        assert index.columns() == ["id", "split", "label", "audio", "visual", "caption_1", "caption_2", "caption_3"]


def test_an_id_that_is_not_unicode_is_refused_in_one_line(index):
    for find in (index.item, lambda name: index.like(name, "audio", to="audio")):
        with pytest.raises(
            InputError, match=r"'\\udcff.h5' contains characters that are not Unicode; remove these characters$"
        ):
            find("\udcff.h5")


def test_an_item_in_another_modality_is_that_of_the_clip(index):
    content = captioned()
    caption = index.search(text=content.texts.values[7], to="text", k=1).hits[0]
    clip = index.search(audio=content.features["audio"][2], to="audio", k=1).hits[0]
    assert index.like(caption.number, "audio", to="audio", k=1).hits[0].number == clip.number
    assert index.like(clip.number, "text", to="text", k=1).hits[0].id == f"{clip.id}#1"
    assert index.queries_of([caption.number, clip.number]) == [["audio", "text"]] * 2


def test_a_clip_without_captions_is_not_replaced_by_the_captions_of_the_next_clip(tmp_path):
    content = captioned()
    kept = content.texts.rows != 2
    texts = Texts(content.texts.values[kept], content.texts.rows[kept])
    first, present = texts.first_of_each(60)
    features = {**content.features, "text": first}
    write_features(tmp_path / "F.h5", replace(content, features=features, texts=texts, present={"text": present}))
    index = Index.build(tmp_path / "F.h5", tmp_path / "i")
    clip = index.search(audio=content.features["audio"][2], to="audio", k=1).hits[0]
    with pytest.raises(InputError, match=r"this index has no clip number .* with text; pass a clip with text"):
        index.like(clip.number, "text", to="text")
    assert index.queries_of([clip.number]) == [["audio"]]


@pytest.mark.slow
@pytest.mark.parametrize("labels", [True, False])
def test_the_captions_of_a_clip_fit_it_in_a_calibration(tmp_path, labels):
    write_features(tmp_path / "F.h5", captioned(labels=labels))
    settings = {"network.hidden": [8], "training.batch": 10}
    model = aadml.fit(tmp_path / "F.h5", config="pairs", epochs=1, settings=settings)
    folder = model.save(tmp_path / "model")
    index = Index.build(tmp_path / "F.h5", tmp_path / "i", model=folder)
    by_text = index.search(text=captioned().texts.values[0], to="audio").calibration
    by_sound = index.search(audio=captioned().features["audio"][0], to="text").calibration
    assert by_text.clips == by_sound.clips == 40
    other = Index.build(tmp_path / "F.h5", tmp_path / "j", model=folder, calibrate=tmp_path / "F.h5")
    found = other.search(text=captioned().texts.values[0], to="audio").calibration
    assert (found.clips, found.relevance) == (40, "class" if labels else "pair")
    assert (found.gallery == by_text.gallery) == labels  # without classes, clips of another file query each other


@pytest.mark.parametrize("names", [("caption_of",), ()])
def test_names_that_collide_are_refused(tmp_path, names):
    content = captioned(wrong=names)
    ids = (f"{content.ids[1]}#2", *content.ids[1:]) if not names else content.ids
    write_features(tmp_path / "F.h5", replace(content, ids=ids))
    with pytest.raises(InputError, match=r"rename (the column|clip)"):
        Index.build(tmp_path / "F.h5", tmp_path / "i")
    assert not (tmp_path / "i").exists()
