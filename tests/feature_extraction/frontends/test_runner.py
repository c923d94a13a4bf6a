"""Batches of one size across clips, lazy items, and padding."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from aadml.feature_extraction.frontends.inference import Runner

BATCH = 4


class Doubling:
    """Double the inputs; record the shape of every batch."""

    def __init__(self):
        self.shapes, self.through = [], 0

    def __call__(self, _, items):
        self.shapes.append(tuple(items["values"].shape))
        self.through += len(items["values"])
        return 2 * items["values"][:, :2]


@pytest.fixture
def pool():
    return Doubling()


@pytest.fixture
def run(pool):
    return Runner(SimpleNamespace(), pool, torch.device("cpu"), False, BATCH)


def clip(*values, width=2):
    return [{"values": np.full(width, value, dtype=np.float32)} for value in values]


def test_batches_have_one_size_across_clips(run, pool):
    found = run([clip(1), clip(2, 3), clip(4, 5, 6), clip(7)])
    assert pool.shapes == [(BATCH, 2), (BATCH, 2)]
    assert [rows[:, 0].tolist() for rows in found] == [[2], [4, 6], [8, 10, 12], [14]]


def test_items_of_different_shapes_are_in_different_batches(run, pool):
    found = run([clip(1, width=3), clip(2), clip(3, width=3)])
    assert sorted(pool.shapes) == [(BATCH, 2), (BATCH, 3)]
    assert [rows[:, 0].tolist() for rows in found] == [[2], [4], [6]]


def test_items_without_a_fixed_shape_are_run_one_by_one(run, pool):
    replace(run, batch=1)([clip(1, 2), clip(3)])
    assert pool.shapes == [(1, 2)] * 3


def test_clips_are_prepared_lazily(run, pool):
    ahead = []

    def clips():
        for number in range(20):
            ahead.append(3 * number - pool.through)
            yield clip(*[number] * 3)

    assert len(run(clips())) == 20
    assert max(ahead) < BATCH
