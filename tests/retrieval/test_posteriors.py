"""Second key of rankings by posteriors."""

import numpy as np
import pytest
import torch

from aadml.retrieval.exact_search import Gallery
from aadml.retrieval.posteriors import are_posteriors, second_keys


def certain(count, classes=3, seed=0):
    """Posteriors of clips whose class is certain: inner products within a class are 1 in float32."""
    logits = torch.randn(count, classes, generator=torch.Generator().manual_seed(seed)).double()
    logits[torch.arange(count), torch.arange(count) % classes] += 40
    return torch.softmax(logits, 1).float()


def test_the_second_key_is_the_cosine_of_centered_log_posteriors():
    vectors = certain(20)
    logs = vectors.double().log()
    logs -= logs.mean(1, keepdim=True)
    expected = torch.nn.functional.cosine_similarity(logs[:1], logs).numpy()
    assert second_keys(vectors[:1], vectors, "dot") == pytest.approx(expected, abs=1e-12)


def test_other_vectors_and_similarities_have_no_second_key():
    vectors = certain(20)
    assert second_keys(vectors[:1], vectors, "cosine") is None
    assert second_keys(vectors[:1], 2 * vectors, "dot") is None
    assert second_keys(-vectors[:1], vectors, "dot") is None
    assert not are_posteriors(vectors - 0.1)


def test_zeros_and_uniform_posteriors_have_finite_keys():
    vectors = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    assert second_keys(vectors[:1], vectors, "dot") == pytest.approx([1, 0, -1])


def test_certain_posteriors_are_ranked_without_ties():
    vectors = certain(300)
    rows, scores = Gallery(vectors, "dot").best(vectors[7:8], 50)
    keys = second_keys(vectors[7:8], vectors, "dot")[rows]
    assert len(set(scores.tolist())) == 1  # in float32 all scores tie
    assert len(set(keys.tolist())) == 50
    assert (np.diff(keys) < 0).all()
    assert rows[0] == 7
