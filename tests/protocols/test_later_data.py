"""Protocols on clips that a model was not trained on: what they need is there, or they are refused."""

import numpy as np
import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError

NUMBERS = np.random.default_rng(0)
BANKS = ["bank", "bank-expansion", "csls", "inverted-softmax"]


def clips(names, count=40):
    labels = None if names is None else [names[row % len(names)] for row in range(count)]
    return aadml.Clips.of(labels, audio=NUMBERS.normal(size=(count, 5)), visual=NUMBERS.normal(size=(count, 6)))


@pytest.fixture(scope="module")
def model():
    return aadml.fit(clips("abc"), epochs=1, settings={"network.hidden": [8], "training.batch": 12})


@pytest.mark.parametrize("protocol", BANKS)
def test_a_bank_is_of_training_clips_and_chosen_on_validation_clips_so_both_are_needed(model, protocol):
    none = clips("abc").select(np.arange(0))
    for train, valid, lacking in ((none, none, "train"), (clips("abc"), none, "valid"), (none, clips("abc"), "train")):
        with pytest.raises(InputError, match=f"{protocol}: needs {lacking} clips, and the data have none"):
            aadml.evaluate(model, data=aadml.Splits(train, valid, clips("abc")), protocol=protocol)
    with pytest.raises(InputError, match=f"{protocol}: needs train clips"):
        aadml.evaluate(model, data=clips("abc"), protocol=protocol)


def test_unseen_classes_are_those_that_the_model_was_not_trained_on_whatever_the_later_data_train(model):
    for names, seen in (("abc", "a, b, c"), ("cd", "c")):
        with pytest.raises(InputError, match=f"unseen-classes: {seen} of the test split were trained on"):
            aadml.evaluate(model, data=clips(names), protocol="unseen-classes")
    assert aadml.evaluate(model, data=clips("de"), protocol="unseen-classes").protocol == "unseen-classes"


def test_unseen_classes_are_not_claimed_where_nobody_knows_the_classes(model):
    with pytest.raises(InputError, match="unseen-classes: the test split has no classes"):
        aadml.evaluate(model, data=clips(None), protocol="unseen-classes")
    small = {"network.hidden": [8], "training.batch": 12, "training.criterion": "map"}
    of_pairs = aadml.fit(clips(None), epochs=1, settings=small)
    with pytest.raises(InputError, match="unseen-classes: the model was trained without classes"):
        aadml.evaluate(of_pairs, data=clips("de"), protocol="unseen-classes")


def test_clips_are_scored_whole(model):
    later = clips("abc")
    none = later.select(np.arange(0))
    found, as_test = (aadml.evaluate(model, data=data) for data in (later, aadml.Splits(none, none, later)))
    assert (found.split, found.map_mean) == ("all", as_test.map_mean)
    assert found.record().directions.keys() == {"audio-visual", "visual-audio"}
    with pytest.raises(InputError, match="split 'test' given, but Clips have none: they are scored whole"):
        aadml.evaluate(model, data=later, split="test")
