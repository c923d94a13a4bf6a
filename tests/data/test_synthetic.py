import numpy as np
import pytest

from aadml.data.ave import AVE15
from aadml.data.synthetic import SHAPES, synthetic
from feature_extraction.feature_file import check
from feature_extraction.ground.errors import InputError


def test_has_the_sizes_that_were_asked_for():
    content = synthetic(classes=7, train=70, valid=14, test=23, dimensions=(5, 9))
    check(content, "synthetic")
    assert {m: v.shape for m, v in content.features.items()} == {"audio": (107, 5), "visual": (107, 9)}
    assert [content.splits.count(split) for split in ("train", "valid", "test")] == [70, 14, 23]
    assert np.bincount(content.labels[content.rows("test")]).tolist() == [4, 4, 3, 3, 3, 3, 3]


def test_the_shape_of_ave_has_its_counts_class_by_class():
    content = synthetic(**SHAPES["ave"], dimensions=(4, 4))
    for part, split in enumerate(("train", "valid", "test")):
        counts = np.bincount(content.labels[content.rows(split)])
        assert counts.tolist() == [count[part] for count in AVE15.values()]


def test_the_shape_of_vegas_has_its_published_sizes():
    assert SHAPES["vegas"]["train"] + SHAPES["vegas"]["valid"] == 22_482
    assert SHAPES["vegas"]["test"] == 5_621


def test_the_same_seed_gives_the_same_values_and_another_one_others():
    one, same, other = (synthetic(train=50, valid=10, test=10, seed=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(one.features[m], same.features[m]) for m in one.features)
    assert not np.array_equal(one.features["audio"], other.features["audio"])


def test_audio_and_visual_share_nothing_but_the_class():
    content = synthetic(classes=3, train=3000, valid=0, test=0, dimensions=(6, 6))
    parts = []
    for values in content.features.values():
        means = np.stack([values[content.labels == label].mean(axis=0) for label in range(3)])
        parts.append(values - means[content.labels])
    within = [
        np.corrcoef(parts[0][content.labels == label].T, parts[1][content.labels == label].T)[:6, 6:]
        for label in range(3)
    ]
    assert np.abs(within).max() < 5 / np.sqrt(1000)


def test_harder_classes_are_nearer_to_each_other():
    ratios = []
    for difficulty in (0.0, 0.5, 1.0):
        content = synthetic(classes=5, train=1000, valid=0, test=0, difficulty=difficulty)
        values = content.features["visual"]
        means = np.stack([values[content.labels == label].mean(axis=0) for label in range(5)])
        ratios.append(means.var(axis=0).sum() / (values - means[content.labels]).var(axis=0).sum())
    assert ratios[0] > ratios[1] > ratios[2] > 0


@pytest.mark.parametrize("wrong", [{"classes": 0}, {"dimensions": (0, 3)}, {"train": (1, 2)}, {"difficulty": 2.0}])
def test_sizes_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError, match="synthetic"):
        synthetic(**wrong)
