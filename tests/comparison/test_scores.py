import pytest
import torch

from aadml.comparison import Comparison
from aadml.comparison.scores import SCORES, dissimilarity
from aadml.feature_extraction.ground.errors import InputError


@pytest.mark.parametrize("score", sorted(SCORES))
def test_smaller_is_nearer(score):
    x = torch.tensor([[1.0, 0.0]])
    r = torch.tensor([[0.9, 0.1], [0.0, 1.0], [-1.0, 0.0]])
    c = Comparison.of_labels(x, r, torch.zeros(1), torch.zeros(3))
    assert dissimilarity(c, score)[0].argsort().tolist() == [0, 1, 2]


def test_an_unknown_score_is_answered_with_the_nearest():
    c = Comparison.of_labels(torch.ones(1, 2), torch.ones(1, 2), torch.zeros(1), torch.zeros(1))
    with pytest.raises(InputError, match="no score 'euclid'; did you mean 'euclidean'"):
        dissimilarity(c, "euclid")
