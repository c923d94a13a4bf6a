import itertools

import numpy as np
import pytest

from aadml.retrieval.legacy_running_map import running_by_chance


def running_by_loops(relevant):
    """The running variant of one order: the mean over all ranks of the mean precision at the hits so far."""
    hits, precisions, total = 0, 0.0, 0.0
    for place, own in enumerate(relevant, 1):
        hits += own
        precisions += own * hits / place
        total += precisions / hits if hits else 0.0
    return total / len(relevant)


def test_the_running_variant_of_chance_is_its_mean_over_all_orders():
    for items in range(1, 7):
        for count in range(1, items + 1):
            order = [True] * count + [False] * (items - count)
            wanted = np.mean([running_by_loops(one) for one in itertools.permutations(order)])
            assert running_by_chance(np.array([count, count]), items) == pytest.approx([wanted, wanted], abs=1e-12)
