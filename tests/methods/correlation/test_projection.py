"""What holds for every method in closed form."""

import pytest
import torch

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from tests.methods.correlation.closed_forms import clips, fitted

CLOSED = ["cca", "kcca", "c-cca"]


@pytest.mark.parametrize("name", CLOSED)
def test_methods_of_vectors_refuse_what_is_made_batch_by_batch_and_modalities_they_do_not_know(name):
    method = fitted(name, clips(40), dimension=3)
    with pytest.raises(InputError, match="needs vectors"):
        method.embed(object(), "audio")
    with pytest.raises((InputError, KeyError), match="text"):
        method.embed(torch.zeros(2, 6), "text")


@pytest.mark.parametrize("name", CLOSED)
def test_of_one_clip_nothing_is_learned_and_nothing_breaks(name):
    method = fitted(name, clips(1), dimension=1)
    for modality, values in clips(5).features.items():
        assert torch.isfinite(method.embed(values, modality)).all()


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize(
    "kind", ["more dimensions than clips", "a constant column", "a repeated column", "an all-zero modality's column"]
)
def test_nothing_breaks_on_deficient_features(name, kind):
    data = clips(12, (40, 60)) if kind == "more dimensions than clips" else clips(60)
    audio = data.matrix("audio").clone()
    if kind == "a constant column":
        audio[:, 0] = 7.0
    elif kind == "a repeated column":
        audio[:, 1] = audio[:, 0]
    elif kind == "an all-zero modality's column":
        audio[:, 2] = 0.0
    data = Clips({"audio": audio, "visual": data["visual"]}, data.labels, data.ids, data.class_names)
    for ridge in (1e-4, 1e-12):
        method = fitted(name, data, dimension=3, ridge=ridge)
        for modality in data.modalities:
            assert torch.isfinite(method.embed(data[modality], modality)).all()


@pytest.mark.parametrize("name", CLOSED)
def test_too_many_dimensions_are_refused_with_what_is_possible(name):
    with pytest.raises(InputError, match="dimension"):
        fitted(name, clips(50), dimension=1000)
