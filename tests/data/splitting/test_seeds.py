"""Equal seeds draw equal data and splits in every version: draws of a small synthetic set, written out."""

import pytest

from aadml.data.splitting.splits import to_splits
from aadml.data.splitting.subsets import disjoint_classes, few_a_class
from aadml.data.synthetic import synthetic

CONTENT = synthetic(classes=8, train=40, valid=0, test=16, dimensions=(3, 20), seed=2)
VALID = [2, 31, 34, 36, 43, 50, 52, 55]


def rows(clips):
    return [int(name.removeprefix("synthetic-")) for name in clips.ids]


@pytest.mark.parametrize(
    ("options", "audio", "visual"),
    [
        ({}, [-0.26662236, 0.24197191, -0.1303069], [0.09748195, -0.03719293, 0.27286574]),
        (
            {"shared": 0.5, "difficulty": 0.1},
            [0.01780131, 0.22668794, -0.10738328],
            [0.49522936, 0.17792717, 0.01023812],
        ),
    ],
)
def test_features_of_a_seed(options, audio, visual):
    content = synthetic(classes=8, train=40, valid=0, test=16, dimensions=(3, 20), seed=2, **options)
    assert content.features["audio"][0].tolist() == pytest.approx(audio, rel=1e-5)
    assert content.features["visual"][0, :3].tolist() == pytest.approx(visual, rel=1e-5)
    assert content.labels[:8].tolist() == [4, 6, 2, 0, 0, 7, 2, 2]
    assert content.splits[:6] == ("train",) * 5 + ("test",)


def test_validation_clips_of_a_seed():
    splits = to_splits(CONTENT, validation=0.2, seed=3)
    assert rows(splits.valid) == VALID
    assert splits.notes[1:] == ("8 train clips were set aside for validation (stratified, seed 3)",)


def test_unseen_classes_of_a_seed():
    splits = disjoint_classes(CONTENT, 0.3, validation=0.2, seed=3)
    names = [
        {f"class {CONTENT.labels[row]}" for row in rows(part)} for part in (splits.train, splits.valid, splits.test)
    ]
    assert names == [{"class 1", "class 2", "class 6", "class 7"}, {"class 4", "class 5"}, {"class 0", "class 3"}]
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [28, 14, 14]


def test_few_clips_a_class_of_a_seed():
    splits = to_splits(CONTENT, validation=0.2, seed=3)
    few = few_a_class(splits, 2, validation=0.5, seed=3)
    chosen = [0, 1, 7, 8, 13, 15, 17, 19, 21, 22, 37, 38, 45, 46, 49, 53]
    assert (rows(few.train), rows(few.valid)) == (chosen, VALID)
    drawn = "2 training clips per class were drawn, 16 in all (seed 3)"
    assert few.notes[2:] == (drawn, "1 validation clips per class were drawn, 8 in all")
    kept = few_a_class(splits, 2, validation=None, seed=3, keep_unlabelled=True)
    assert rows(kept.train) == rows(splits.train)
    assert [
        row for row, label in zip(rows(kept.train), kept.train.labels.tolist(), strict=True) if label >= 0
    ] == chosen
    assert kept.notes[2:] == (drawn, "the other 16 training clips are kept without a label")
