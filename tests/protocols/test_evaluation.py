"""Names of protocols, joined and unknown, and the order of their parts."""

from dataclasses import replace

import pytest
import torch

from aadml.feature_extraction.ground.errors import InputError
from aadml.protocols import PROTOCOLS
from aadml.protocols.evaluation import embed_under, prepare_subject, protocols_of
from aadml.protocols.protocol import Protocol


@pytest.mark.parametrize("name", ["legacy:partnr", "inductive+legacy:partner", "bank+bank"])
def test_protocols_that_do_not_exist_or_do_not_join_are_refused(name):
    with pytest.raises(InputError):
        protocols_of(name)


@pytest.mark.parametrize("name", sorted(name for name in PROTOCOLS if not name.startswith("legacy:")))
def test_only_leaks_are_joined(name):
    with pytest.raises(InputError, match=f"joins {name} with another protocol; join different leaks"):
        protocols_of(f"legacy:partner+{name}")


def test_a_leak_from_outside_is_joined():
    outside = "aadml.protocols.leaks:DROP_LAST"
    assert len(protocols_of(f"{outside}+legacy:partner")) == 2


def test_inputs_are_scaled_by_test_clips_after_training_whatever_the_order_of_the_names(subject):
    retrained = replace(subject, retrain=lambda splits: subject.encoder)
    scaling = subject.encoder.rescaled(subject.splits.test).scaling
    for name in ("legacy:test-selection+legacy:test-scaling", "legacy:test-scaling+legacy:test-selection"):
        prepared, _ = prepare_subject(retrained, name, "test")
        for modality, features in subject.splits.test.features.items():
            scaled = prepared.encoder.scaling.features(features, modality)
            assert torch.equal(scaled, scaling.features(features, modality))


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_nothing_is_joined_with_itself_and_an_unknown_name_is_answered_with_the_nearest(name):
    with pytest.raises(InputError, match="joins equal protocols"):
        protocols_of(f"{name}+{name}")
    with pytest.raises(InputError, match=f"did you mean '{name}'"):
        protocols_of(f"{name}s")


def test_corrections_of_all_parts_are_applied_in_their_order_and_selections_after_them(subject):
    def scaled(of, embeddings):
        assert of is subject
        return replace(embeddings, vectors={m: 2 * v for m, v in embeddings.vectors.items()})

    def moved(_, embeddings):
        assert embeddings.similarity == "cosine"
        return replace(embeddings, vectors={m: v + 1 for m, v in embeddings.vectors.items()})

    def of_dots(embeddings):
        return replace(embeddings, similarity="dot")

    parts = [Protocol(correct=scaled, keep=of_dots), Protocol(correct=moved)]
    plain, found = embed_under(subject, [], "test"), embed_under(subject, parts, "test")
    assert found.similarity == "dot"
    for modality, vectors in plain.vectors.items():
        torch.testing.assert_close(found.vectors[modality], 2 * vectors + 1)
