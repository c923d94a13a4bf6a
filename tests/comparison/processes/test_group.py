"""Two processes that divide the rows of a batch compute what one computes."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from aadml.losses import LOSSES, OF_EACH_ANCHOR
from tests.comparison.processes.steps import GRAPHS, LEARNERS, steps

SAMPLE = ("aa-triplet", "aa-triplet, live", "xbm-triplet", "cross-clr, both", "n-pair, one pair a class", "hdml",
          "pairs", "clip", "graph label-free", "graph of a class")  # fmt: skip


def by_one(*names):
    before = torch.get_rng_state()
    try:
        return steps(*names)
    finally:
        torch.set_rng_state(before)


def by_two(job, folder, *names):
    place = folder / "found.safetensors"
    ends = job(Path(__file__).with_name("steps.py"), place, *names)
    assert [code for code, *_ in ends] == [0, 0], ends
    return load_file(place)


def check(one, two, name):
    keys = [key for key in one if key.startswith(f"{name} | ")]
    assert keys
    for key in keys:
        assert torch.allclose(one[key].double(), two[key].double(), rtol=1e-6, atol=1e-9), key


@pytest.mark.slow
def test_two_processes_find_a_sample_of_what_one_finds(job, tmp_path):
    one, two = by_one(*SAMPLE), by_two(job, tmp_path, *SAMPLE)
    assert one.keys() == two.keys()
    for name in SAMPLE:
        check(one, two, name)


@pytest.fixture(scope="module")
def one():
    return by_one()


@pytest.fixture(scope="module")
def two(job, tmp_path_factory):
    return by_two(job, tmp_path_factory.mktemp("steps"))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LEARNERS, *GRAPHS])
def test_two_processes_find_the_losses_gradients_and_lists_of_one(one, two, name):
    check(one, two, name)


@pytest.mark.slow
def test_no_figure_is_missing(one, two):
    assert one.keys() == two.keys()


def test_the_losses_that_are_divided_are_losses():
    assert LOSSES.keys() > OF_EACH_ANCHOR
