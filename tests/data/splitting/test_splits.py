import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aadml.data.splitting.splits import (
    ClassNote,
    clips_of,
    stratified,
    to_splits,
    without_classes,
    without_incomplete_classes,
)
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.ground.errors import InputError

DRAWN = "audio and visual are random numbers (synthetic), not features of recordings"


def test_the_splits_of_the_data_are_kept():
    content = synthetic(classes=3, train=12, valid=6, test=9, dimensions=(2, 3))
    splits = to_splits(content, name="here")
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [12, 6, 9]
    for part, name in ((splits.train, "train"), (splits.valid, "valid"), (splits.test, "test")):
        rows = content.rows(name)
        assert part.ids == tuple(content.ids[row] for row in rows)
        assert torch.equal(part.matrix("visual"), torch.from_numpy(content.features["visual"][rows]))
        assert part.labels.tolist() == content.labels[rows].tolist()
    assert splits.notes == (DRAWN,)
    assert splits.name == "here"


def test_a_validation_split_is_made_of_train_clips_where_there_is_none():
    content = synthetic(classes=4, train=(100, 50, 20, 3), valid=0, test=8, dimensions=(2, 3))
    splits = to_splits(content, seed=1)
    assert torch.bincount(splits.valid.labels).tolist() == [10, 5, 2, 1]
    assert torch.bincount(splits.train.labels).tolist() == [90, 45, 18, 2]
    assert not set(splits.train.ids) & set(splits.valid.ids)
    assert to_splits(content, seed=1).valid.ids == splits.valid.ids
    assert to_splits(content, seed=2).valid.ids != splits.valid.ids
    assert splits.notes == (DRAWN, "18 train clips were set aside for validation (stratified, seed 1)")


def test_drawn_validation_clips_share_no_recording_with_train():
    content = synthetic(classes=4, train=160, valid=0, test=40, dimensions=(2, 3))
    recordings = [f"{label}-{n // 8}" for n, label in enumerate(content.labels)]
    recordings[content.rows("train")[0]] = ""
    content = replace(content, columns={"recording": tuple(recordings)})
    splits = to_splits(content)
    assert (torch.bincount(splits.valid.labels) > 0).all()
    name = dict(zip(content.ids, recordings, strict=True))
    train, valid = ({name[clip] for clip in part.ids} for part in (splits.train, splits.valid))
    assert not train & valid
    note = f"{len(splits.valid)} train clips were set aside for validation (stratified, no recording divided, seed 0)"
    assert splits.notes[1] == note
    assert not any("train-valid" in note for note in splits.notes)


@pytest.mark.parametrize(("modality", "divides"), [("audio", False), ("text", True)])
def test_drawn_validation_clips_share_no_sound_with_train(modality, divides):
    content = synthetic(classes=4, train=160, valid=0, test=40, dimensions=(2, 3))
    sounds = np.arange(200) // 10
    repeated = np.random.default_rng(0).random((20, 2), dtype=np.float32)[sounds]
    content = replace(content, features={modality: repeated, "visual": content.features["visual"]})
    splits = to_splits(content)
    sound_of = dict(zip(content.ids, sounds.tolist(), strict=True))
    train, valid = ({sound_of[clip] for clip in part.ids} for part in (splits.train, splits.valid))
    assert bool(train & valid) is divides
    assert any("no recording divided" in note for note in splits.notes) is not divides


@pytest.mark.parametrize("count", [1, 2])
def test_few_recordings_are_divided_so_that_validation_has_its_share(count):
    content = synthetic(classes=4, train=160, valid=0, test=40, dimensions=(2, 3))
    recordings = tuple(f"{label}-{n % count}" for n, label in enumerate(content.labels.tolist()))
    splits = to_splits(replace(content, columns={"recording": recordings}))
    assert torch.bincount(splits.valid.labels).tolist() == [4, 4, 4, 4]
    assert any(re.search(r"\(stratified, \d recordings divided, seed 0\)", note) for note in splits.notes)
    assert any("recordings have clips in both splits of train-valid" in note for note in splits.notes)


@given(counts=st.lists(st.integers(0, 12), min_size=1, max_size=6), share=st.floats(0.01, 0.99), seed=st.integers(0, 9))
def test_stratified_takes_some_of_every_class_and_never_all(counts, share, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts)).astype(np.int64)
    rows = np.arange(len(labels))
    chosen = stratified(labels, rows, share, seed, [str(row) for row in rows])
    assert len(set(chosen.tolist())) == len(chosen)
    for label, count in enumerate(counts):
        taken = int((labels[chosen] == label).sum())
        assert taken == 0 if count < 2 else 1 <= taken < count
        assert abs(taken - share * count) <= 1 + (count < 2)


def test_large_recordings_are_not_divided_where_other_clips_suffice():
    groups = [0] * 50 + [1] * 50 + list(range(2, 22))
    drawn = stratified(np.zeros(120, np.int64), np.arange(120), 0.1, 0, groups)
    assert len(drawn) == 12
    assert drawn.min() >= 100


@pytest.mark.parametrize("classes", [1, 10])
@pytest.mark.parametrize("seed", range(5))
def test_repeated_rows_leave_the_draw_of_the_other_rows(classes, seed):
    labels, rows = np.arange(2000) % classes, np.arange(2000)
    groups = np.arange(2000)
    before = stratified(labels, rows, 0.1, seed, groups.tolist())
    groups[500:520] = np.arange(20) // 2  # ten groups of three rows, of several classes
    drawn = stratified(labels, rows, 0.1, seed, groups.tolist())
    assert len(set(before) - set(drawn)) < 20
    assert not set(groups[drawn]) & set(groups[np.setdiff1d(rows, drawn)])
    assert np.bincount(labels[drawn]).tolist() == [2000 // classes // 10] * classes


def test_a_class_of_one_clip_stays_in_train_and_is_told(make_content):
    content = make_content([0, 0, 0, 1, 0, 1], ["train"] * 4 + ["test"] * 2)
    splits = to_splits(content)
    assert splits.train.labels.tolist().count(1) == 1
    assert "classes have only one train clip: class 1" in splits.notes


def test_classes_of_one_clip_alone_cannot_validate(make_content):
    content = make_content([0, 1, 0, 1], ["train", "train", "test", "test"])
    with pytest.raises(InputError, match="no class has two train clips"):
        to_splits(content)
    content = make_content([-1, -1], ["train", "test"], class_names=())
    with pytest.raises(InputError, match="there is one train clip, so no clip can be set aside for validation"):
        to_splits(content)


@pytest.mark.parametrize("present", ["train", "test"])
def test_data_without_train_or_test_clips_is_refused(make_content, present):
    content = make_content([0, 1, 0, 1], [present] * 4)
    with pytest.raises(InputError, match=rf"has no .* clips \(clips per split: 4 {present}\)"):
        to_splits(content, name="data.h5")


def test_one_class_only_is_noted_and_cannot_be_left_out(make_content):
    content = make_content([1, 1, 1], ["train", "train", "test"], class_names=("cat", "dog"))
    one_class = "all clips are of one class ('dog')"
    with pytest.raises(InputError, match=f"{re.escape(one_class)}, so fewer than two classes have both train and test"):
        without_incomplete_classes(content, "data.h5")
    assert one_class in to_splits(content).notes


def test_clips_without_a_label_are_pairs_even_where_classes_have_names(make_content):
    content = make_content([-1] * 9, ["train"] * 6 + ["test"] * 3, class_names=("cat", "dog"))
    assert to_splits(content).test.labels.tolist() == [-1] * 3


def incomplete(make_content):
    labels = [0, 0, 1, 1, 2, 2, 0, 1, 3]
    return make_content(labels, ["train"] * 6 + ["test"] * 3, class_names=("a", "b", "c", "d"))


def test_incomplete_classes_are_a_note(make_content):
    splits = to_splits(incomplete(make_content))
    (note,) = (note for note in splits.notes if isinstance(note, ClassNote))
    assert note == "classes are incomplete ('d' has no train clips, 'c' has no test clips)"
    assert splits.test.labels.tolist() == [0, 1, 3]


def test_incomplete_classes_can_be_left_out(make_content):
    content, notes = without_incomplete_classes(incomplete(make_content), "data.h5")
    assert content.class_names == ("a", "b")
    assert set(to_splits(content).test.labels.tolist()) == {0, 1}
    assert notes == ["incomplete classes were left out: 'd' has no train clips, 'c' has no test clips"]


def test_leaving_out_all_but_one_class_is_refused(make_content):
    content = make_content([0, 0, 1, 0], ["train", "train", "train", "test"])
    with pytest.raises(InputError, match="fewer than two classes"):
        without_incomplete_classes(content, "data.h5")


def test_without_classes_renumbers_the_others_in_their_order(make_content):
    content = make_content([2, 0, 1, 3, 2], ["train"] * 5, columns={"caption": tuple("vwxyz")})
    left = without_classes(content, [1, 0])
    assert left.class_names == ("class 2", "class 3")
    assert left.labels.tolist() == [0, 1, 0]
    assert left.ids == ("clip 0", "clip 3", "clip 4")
    assert left.columns["caption"] == ("v", "y", "z")


def test_rows_that_are_selected_keep_together(make_content):
    content = make_content([0, 1, 0], ["train", "valid", "test"])
    some = content.select(np.asarray([2, 0]))
    assert some.splits == ("test", "train")
    assert np.array_equal(some.features["audio"], content.features["audio"][[2, 0]])


def test_notes_of_the_reader_are_passed_on(make_content):
    content = make_content([0, 1, 0, 1, 0, 1], ["train", "train", "valid", "valid", "test", "test"])
    origin = {"audio": {"notes": ["read from afar"]}, "visual": {"notes": ["read from afar"]}}
    told = make_content(content.labels, content.splits, provenance=origin)
    assert to_splits(told).notes == ("read from afar", "classes have only one train clip: class 0, class 1")


def test_several_labels_and_no_labels_are_refused_where_one_is_needed(make_content):
    several = np.asarray([[1, 1], [1, 0], [0, 1], [1, 1], [0, 0]], np.uint8)
    names, splits = ("class 0", "class 1"), ["train", "train", "train", "test", "test"]
    content = make_content([0, 0, 1, 0, -1], splits, all_labels=several, class_names=names)
    refusal = r"a b: 2 clips have several labels, but incomplete_classes=drop needs one .*: `aadml convert IN OUT --f"
    with pytest.raises(InputError, match=refusal):
        without_incomplete_classes(content, "a b")
    content = make_content([-1] * 5, splits, class_names=())
    with pytest.raises(
        InputError, match="a: its clips have no labels, but incomplete_classes=drop needs classes; leave"
    ):
        without_incomplete_classes(content, "a")


def test_clips_of_some_modalities_keep_their_masks_and_labels(make_content):
    several = np.asarray([[1, 1], [1, 0], [0, 1]], np.uint8)
    present = {"visual": np.asarray([True, False, True])}
    content = make_content([0, 0, 1], ["train"] * 3, all_labels=several, present=present)
    clips = clips_of(content)
    assert clips.modalities == ("audio", "visual")
    assert clips.all_labels.tolist() == [[True, True], [True, False], [False, True]]
    assert {m: mask.tolist() for m, mask in clips.present.items()} == {"visual": [True, False, True]}
    assert clips_of(content, ["audio"]).modalities == ("audio",)
    assert clips_of(content, ["audio"]).present == {}
