"""Evaluation of models on data of every kind."""

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError
from tests.protocols.conftest import clips


def test_clips_are_scored_whole():
    model = aadml.fit(clips("abc"), epochs=1, settings={"network.hidden": [8], "training.batch": 12})
    later = clips("abc")
    none = later.select(np.arange(0))
    found, as_test = (aadml.evaluate(model, data=data) for data in (later, aadml.Splits(none, none, later)))
    assert (found.split, found.map_mean) == ("all", as_test.map_mean)
    assert found.record().directions.keys() == {"audio-visual", "visual-audio"}
    with pytest.raises(InputError, match="split 'test' given, but Clips are scored whole; leave it out"):
        aadml.evaluate(model, data=later, split="test")
