from dataclasses import replace

import numpy as np
import pytest
import torch

from aadml.data.splitting.splits import to_splits
from aadml.data.splitting.subsets import disjoint_classes, few_a_class, without_unlabelled
from aadml.data.synthetic import synthetic
from aadml.feature_extraction.feature_file.content import UNLABELLED
from aadml.feature_extraction.ground.errors import InputError


def content(**options):
    return synthetic(**{"classes": 6, "train": 90, "valid": 18, "test": 30, "dimensions": (4, 5)} | options)


def counts(clips):
    return np.bincount(clips.labels.numpy(), minlength=len(clips.class_names)).tolist()


def test_keeps_so_many_training_clips_of_each_class_and_all_of_a_smaller_one():
    splits = to_splits(content(train=(20, 20, 20, 3, 20, 7)), seed=1)
    few = few_a_class(splits, 5, validation=None, seed=1)
    assert counts(few.train) == [5, 5, 5, 3, 5, 5]
    assert few.test is splits.test
    assert few.valid is splits.valid
    assert any("5 training clips per class" in note for note in few.notes)


def test_validation_clips_drawn_from_train_shrink_too():
    splits = to_splits(content(valid=0), validation=0.5, seed=0)
    assert counts(few_a_class(splits, 4, validation=0.5, seed=0).valid) == [2] * 6
    assert counts(few_a_class(splits, 4, validation=0.01, seed=0).valid) == [1] * 6


def test_validation_clips_without_labels_leave_no_validation_clips():
    splits = to_splits(content())
    unlabeled = replace(splits.valid, labels=torch.full_like(splits.valid.labels, UNLABELLED))
    few = few_a_class(splits.having("valid", unlabeled), 1, validation=0.5, seed=0)
    assert len(few.valid) == 0
    assert few.notes[-2:] == (
        "1 validation clips per class were drawn, 0 in all", "18 validation clips without a label were left out",
    )  # fmt: skip
    assert not any("left out" in note for note in few_a_class(splits, 1, validation=0.5, seed=0).notes)


def test_a_smaller_choice_lies_in_a_larger_one_and_the_seed_decides():
    splits = to_splits(content())
    small, large = (set(few_a_class(splits, count, validation=None, seed=3).train.ids) for count in (3, 8))
    assert small < large
    assert small != set(few_a_class(splits, 3, validation=None, seed=4).train.ids)


def test_no_class_is_in_two_parts_and_every_clip_in_one():
    data = content()
    splits = disjoint_classes(data, 0.3, validation=0.1, seed=5)
    names = [set(splits[part].class_names) for part in ("train", "valid", "test")]
    assert [len(part) for part in names] == [2, 2, 2]
    assert set.union(*names) == set(data.class_names)
    ids = [name for part in ("train", "valid", "test") for name in splits[part].ids]
    assert sorted(ids) == sorted(data.ids)
    label_of = {name: data.class_names[label] for name, label in zip(data.ids, data.labels, strict=True)}
    for part in ("train", "valid", "test"):
        clips = splits[part]
        assert all(
            label_of[i] == clips.class_names[label] for i, label in zip(clips.ids, clips.labels.tolist(), strict=True)
        )
        rows = [data.ids.index(i) for i in clips.ids]
        np.testing.assert_array_equal(clips.matrix("audio").numpy(), data.features["audio"][rows])


def test_recordings_with_clips_of_several_parts_are_noted():
    data = content()
    notes = disjoint_classes(
        replace(data, columns={"recording": ("day 1",) * len(data.ids)}), 0.3, validation=0.1, seed=5
    ).notes
    pairs = ("train-valid", "train-test", "valid-test")
    assert notes[1:] == tuple(f"1 recordings have clips in both splits of {pair} (day 1)" for pair in pairs)


def test_too_few_classes_are_refused():
    with pytest.raises(InputError, match="leaves 1 for training"):
        disjoint_classes(content(classes=5), 0.3, validation=0.1, seed=0)


def test_the_others_are_kept_without_a_label_where_asked():
    splits = to_splits(content())
    few = few_a_class(splits, 4, validation=None, seed=0)
    kept = few_a_class(splits, 4, validation=None, seed=0, keep_unlabelled=True)
    labelled = kept.train.labels != UNLABELLED
    assert kept.train.ids == splits.train.ids
    assert kept.train.select(labelled.nonzero()[:, 0]).ids == few.train.ids
    assert torch.equal(kept.train.labels[labelled], few.train.labels)
    assert f"the other {int((~labelled).sum())} training clips are kept without a label" in kept.notes
    assert without_unlabelled(kept).train.ids == few.train.ids
    assert few_a_class(kept, 2, validation=None, seed=0).train.unlabelled == kept.train.unlabelled
    assert without_unlabelled(splits) is splits


@pytest.mark.parametrize(
    ("classes", "share", "validation", "parts"),
    [(6, 0.01, 0.01, (2, 2, 2)), (10, 0.3, 0.2, (5, 2, 3)), (10, 0.4, 0.3, (3, 3, 4)), (12, 0.1, 0.5, (4, 6, 2))],
)
def test_each_part_has_its_share_of_the_classes_and_two_at_least(classes, share, validation, parts):
    content = synthetic(classes=classes, train=4 * classes, valid=0, test=2 * classes, dimensions=(3, 3))
    splits = disjoint_classes(content, share, validation=validation, seed=0)
    assert tuple(len(part.class_names) for part in (splits.train, splits.valid, splits.test)) == parts
