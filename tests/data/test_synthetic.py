import numpy as np
import pytest

from aadml.data.ave import AVE15
from aadml.data.synthetic import SHAPES, synthetic, synthetic_by_name
from aadml.feature_extraction.feature_file.checks import check
from aadml.feature_extraction.ground.errors import InputError


def test_has_the_sizes_that_were_asked_for():
    content = synthetic(classes=7, train=70, valid=14, test=23, dimensions=(5, 9))
    check(content, "synthetic")
    assert {m: v.shape for m, v in content.features.items()} == {"audio": (107, 5), "visual": (107, 9)}
    assert [content.splits.count(split) for split in ("train", "valid", "test")] == [70, 14, 23]
    assert np.bincount(content.labels[content.rows("test")]).tolist() == [4, 4, 3, 3, 3, 3, 3]


def test_the_shape_of_ave_has_its_counts_class_by_class():
    content = SHAPES["ave"](dimensions=(4, 4))
    for part, split in enumerate(("train", "valid", "test")):
        counts = np.bincount(content.labels[content.rows(split)])
        assert counts.tolist() == [count[part] for count in AVE15.values()]


def test_the_shape_of_vegas_has_its_published_sizes():
    sizes = SHAPES["vegas"].keywords
    assert sizes["train"] + sizes["valid"] == 22_482
    assert sizes["test"] == 5_621


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


def test_a_share_of_what_differs_within_a_class_is_common_to_both_modalities():
    drawn = [
        synthetic(classes=1, train=4000, valid=0, test=0, dimensions=(24, 24), shared=shared, difficulty=1.0)
        for shared in (0.0, 0.25, 0.8, 1.0)
    ]
    found = [largest_correlation(content) for content in drawn]
    assert found[0] < 2.5 * np.sqrt(24 / 4000)  # what chance leaves
    np.testing.assert_allclose(found[1:3], [0.25, 0.8], atol=0.2)
    assert found == sorted(found)
    assert found[-1] > 0.85


def largest_correlation(content):
    """The first canonical correlation, by singular values of whitened modalities."""
    whitened = []
    for values in content.features.values():
        centered = values.astype(np.float64) - values.mean(axis=0)
        whitened.append(np.linalg.svd(centered, full_matrices=False)[0])
    return float(np.linalg.svd(whitened[0].T @ whitened[1], compute_uv=False)[0])


def test_nothing_shared_gives_the_values_it_always_gave():
    """The generators of each modality are those from before there was a share."""
    children = np.random.SeedSequence(5).spawn(3)
    content = synthetic(classes=3, train=20, valid=0, test=0, dimensions=(4, 6), difficulty=0.2, seed=5)
    generator = np.random.default_rng(children[1])
    means = generator.standard_normal((3, 2, 4), dtype=np.float32)
    means[::3, 1] = means[::3, 0]
    mixing = generator.standard_normal((4, 4), dtype=np.float32) / np.float32(2)
    sides = generator.integers(2, size=20)
    spread = np.float32(0.35 + 1.9 * 0.2) * generator.standard_normal((20, 4), dtype=np.float32)
    noise = generator.standard_normal((20, 4), dtype=np.float32)
    wanted = np.tanh((means[content.labels, sides] + spread) / 2) @ mixing + np.float32(0.2) * noise
    np.testing.assert_array_equal(content.features["audio"], wanted)


def test_a_name_says_the_share_the_difficulty_and_the_seed():
    named = synthetic_by_name("pairs:shared=0.25,difficulty=0.3,seed=2")
    made = SHAPES["pairs"](shared=0.25, difficulty=0.3, seed=2)
    assert all(np.array_equal(named.features[m], made.features[m]) for m in made.features)
    assert named.provenance["audio"]["parameters"] == {"difficulty": 0.3, "seed": 2, "shared": 0.25}
    for wrong, message in [
        ("pair", "did you mean 'pairs'"),
        ("pairs:share=1", "did you mean 'shared'"),
        ("pairs:shared", "pass a number, as in shared=0"),
        ("pairs:seed=1.5", "seed is '1.5'; pass a whole number, as in seed=0"),
        ("pairs:shared=nan", "shared is NaN; pass a number from 0 to 1"),
        ("pairs:difficulty=2", "difficulty is 2.0; pass a number from 0 to 1"),
        ("pairs:seed=-1", "seed is -1; pass a whole number from 0"),
    ]:
        with pytest.raises(InputError, match=message):
            synthetic_by_name(wrong)


def test_harder_classes_are_nearer_to_each_other():
    ratios = []
    for difficulty in (0.0, 0.5, 1.0):
        content = synthetic(classes=5, train=1000, valid=0, test=0, difficulty=difficulty)
        values = content.features["visual"]
        means = np.stack([values[content.labels == label].mean(axis=0) for label in range(5)])
        ratios.append(means.var(axis=0).sum() / (values - means[content.labels]).var(axis=0).sum())
    assert ratios[0] > ratios[1] > ratios[2] > 0
