"""Two processes that divide the rows of a batch compute what one computes."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from aadml.losses import LOSSES, OF_EACH_ANCHOR
from tests.processes.steps import CASES, steps


@pytest.fixture(scope="module")
def one():
    before = torch.get_rng_state()
    yield steps()
    torch.set_rng_state(before)


@pytest.fixture(scope="module")
def two(job, tmp_path_factory):
    place = tmp_path_factory.mktemp("steps") / "found.safetensors"
    ends = job(Path(__file__).with_name("steps.py"), place)
    assert [code for code, *_ in ends] == [0, 0], ends
    return load_file(place)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES, "pairs", "clip", "graph label-free", "graph of a class"])
def test_two_processes_find_the_losses_gradients_and_lists_of_one(one, two, name):
    keys = [key for key in one if key.startswith(f"{name} | ")]
    assert keys
    for key in keys:
        assert torch.allclose(one[key].double(), two[key].double(), rtol=1e-6, atol=1e-9), key


def test_no_figure_is_missing(one, two):
    assert one.keys() == two.keys()


def test_the_losses_that_are_divided_are_losses():
    assert LOSSES.keys() > OF_EACH_ANCHOR
