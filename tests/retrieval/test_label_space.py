import pytest
import torch

from aadml.retrieval.evaluation import label_space_quality


def test_scores_are_read_through_a_softmax():
    vectors, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 1, 1])
    accuracy, loss = label_space_quality(vectors, labels)
    assert accuracy == pytest.approx(2 / 3)
    assert loss == pytest.approx(float(torch.nn.functional.cross_entropy(vectors.double(), labels)))


def test_probabilities_are_taken_as_they_are():
    vectors, labels = torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([0, 1])
    accuracy, loss = label_space_quality(vectors, labels)
    assert loss == pytest.approx(float(-torch.tensor([0.75, 0.5]).log().mean()))
    assert accuracy == pytest.approx(0.75)  # of two equal values one is right by half


def test_a_certain_mistake_costs_a_finite_amount():
    _, loss = label_space_quality(torch.tensor([[1.0, 0.0]]), torch.tensor([1]))
    assert loss == pytest.approx(27.631, abs=1e-3)
