import numpy as np
import pytest

from aadml.retrieval.sorted_hits import sorted_places


@pytest.mark.parametrize("scale", [0.25, 8.0])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_places_and_groups_are_those_of_sorted_rows(kind, scale):
    generator = np.random.default_rng(3)
    scores = (generator.integers(-6, 7, (11, 23)) * scale).astype(kind)
    relevant = generator.random(scores.shape) < 0.3
    hits, starts, sizes = sorted_places(scores, relevant)
    ordered = -np.sort(-scores, axis=1)
    groups = []
    for row, values in enumerate(ordered):
        _, first, size = np.unique(-values, return_index=True, return_counts=True)
        groups += [(row * 23 + start, count) for start, count in zip(first, size, strict=True) if count > 1]
    assert list(zip(starts, sizes, strict=True)) == groups
    assert np.array_equal(np.bincount(hits // 23, minlength=11), relevant.sum(axis=1))
    expected = [-np.sort(-row[flags]) for row, flags in zip(scores, relevant, strict=True)]
    assert np.array_equal(ordered.ravel()[hits], np.concatenate(expected))
