"""Unseen classes: classes that were never trained on."""

from types import SimpleNamespace

import pytest

import aadml
from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols.disjoint import unseen_classes
from tests.protocols.conftest import clips


def test_unseen_classes_are_those_that_the_model_was_not_trained_on_whatever_the_later_data_train(model):
    for names, seen in (("abc", "a, b, c"), ("cd", "c")):
        with pytest.raises(
            InputError, match=f"unseen-classes: the model was trained on the classes {seen} of the test split"
        ):
            aadml.evaluate(model, data=clips(names), protocol="unseen-classes")
    assert aadml.evaluate(model, data=clips("de"), protocol="unseen-classes").protocol == "unseen-classes"


def test_unseen_classes_are_not_claimed_where_nobody_knows_the_classes(model):
    with pytest.raises(InputError, match="unseen-classes: the test split has no classes"):
        aadml.evaluate(model, data=clips(None), protocol="unseen-classes")
    small = {"network.hidden": [8], "training.batch": 12, "training.criterion": "map"}
    of_pairs = aadml.fit(clips(None), epochs=1, settings=small)
    with pytest.raises(InputError, match="unseen-classes: the model stores no class names"):
        aadml.evaluate(of_pairs, data=clips("de"), protocol="unseen-classes")


def test_five_of_the_classes_that_were_trained_on_are_listed():
    both = clips("abcdefg")
    subject = SimpleNamespace(splits=aadml.Splits(both, both, both), retrain=len)
    with pytest.raises(InputError, match="trained on the classes a, b, c, d, e of the test split; train with --set"):
        unseen_classes(subject, "test")
