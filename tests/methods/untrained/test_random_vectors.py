"""The random baseline: vectors that know nothing but are always the same."""

import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 8, "visual": 8}, 3, seed=4)
FEATURES = torch.arange(40.0).reshape(5, 8)


def test_an_item_always_has_the_same_vector_and_its_partner_another():
    method = METHODS["random"](CONTEXT, Training(), dimension=6)
    audio = method.embed(FEATURES, "audio")
    assert audio.shape == (5, 6)
    assert torch.equal(method.embed(FEATURES.flip(0), "audio").flip(0), audio)
    assert not torch.equal(method.embed(FEATURES, "visual"), audio)


def test_vectors_are_standard_normal():
    items = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0))
    vectors = METHODS["random"](Context({"audio": 3}, 2), Training()).embed(items, "audio")
    assert float(vectors.mean()) == pytest.approx(0, abs=0.02)
    assert float(vectors.std()) == pytest.approx(1, abs=0.02)
    neighbors = (vectors[:-1] * vectors[1:]).mean()
    assert float(neighbors) == pytest.approx(0, abs=0.02)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(InputError, match="dimension is 0"):
        checked_options(METHODS["random"], OptionValues(dimension=0), "method")
    with pytest.raises(InputError, match="needs vectors"):
        METHODS["random"](CONTEXT, Training()).embed(object(), "audio")
