"""The checks of a context, and what a method without another model refuses."""

import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.method import Context, as_vectors
from aadml.methods.training.settings import Training


def test_a_method_of_two_views_needs_exactly_two_modalities_of_vectors():
    assert Context({"audio": 5, "visual": 7}, 0).need_pair("cca") == ("audio", "visual")
    with pytest.raises(InputError, match=r"two modalities, but the clips have audio, visual, text.*modalities=audio,"):
        Context({"audio": 5, "visual": 7, "text": 3}, 0).need_pair("cca")
    with pytest.raises(InputError, match="the data have only audio; pass data of at least two modalities"):
        Context({"audio": 5}, 0).need_pair("cca")
    with pytest.raises(InputError, match="the audio features are computed batch by batch"):
        Context({"audio": 0, "visual": 7}, 0).need_pair("cca")


def test_a_method_of_classes_needs_one_class_a_clip_unless_it_learns_from_some():
    with pytest.raises(InputError, match="have no class or several classes"):
        Context({"audio": 5}, 0).need_classes("dscmr")
    some = Context({"audio": 5}, 3, unlabelled=2)
    with pytest.raises(InputError, match="2 training or validation clips have no label"):
        some.need_classes("dscmr")
    assert some.need_classes("few-labels", of_all=False) == 3


@pytest.mark.parametrize("method", ["aadml", "cctl", "video-adviser-lite", "dscmr", "vae-cca", "pairs", "few-labels"])
def test_a_method_of_vectors_needs_two_modalities(method):
    with pytest.raises(InputError, match="the data have only audio; pass data of at least two modalities"):
        METHODS[method](Context({"audio": 5}, 3), Training())


def test_features_that_are_vectors_are_returned_and_others_refused():
    vectors = torch.zeros(2, 3)
    assert as_vectors(vectors, "cca") is vectors
    with pytest.raises(InputError, match="cca needs vectors"):
        as_vectors(object(), "cca")


def test_a_method_that_needs_no_other_model_refuses_one():
    method = METHODS["random"](Context({"audio": 5}, 0), Training())
    assert method.prior() is None
    with pytest.raises(InputError, match="needs no other model"):
        method.take_prior(method)
