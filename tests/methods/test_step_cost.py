import pytest
import torch

from aadml.comparison import Terms
from aadml.losses.triplet import triplet
from aadml.methods.step_cost import estimate


def test_an_estimate_grows_with_the_square_of_the_batch_and_covers_what_the_graph_keeps():
    small, large = (estimate(triplet, batch, 8) for batch in (512, 2048))
    assert large.bytes == pytest.approx(16 * small.bytes, rel=1e-3)
    assert small.seconds > 0
    assert 2 * 4 * 512**2 < small.bytes < 20 * 4 * 512**2


@pytest.mark.parametrize(("batch", "growth"), [(100, 1), (256, 1), (512, 4)])
def test_the_memory_of_a_loss_is_what_its_graph_keeps_and_four_matrices_of_scores(batch, growth):
    calls = []

    def loss(comparison):
        calls.append(comparison)
        total = comparison.anchors.exp().sum(1)  # keeps what it gives, and nothing else
        return Terms(total, torch.ones(len(total)), torch.ones(len(total)))

    found = estimate(loss, batch, 8)
    assert found.bytes == growth * min(batch, 256) * 8 * 4 + 4 * 4 * batch * batch
    for comparison in calls:
        assert comparison.anchors.shape == comparison.candidates.shape == (min(batch, 256), 8)
        assert not comparison.within.any()
        assert float(comparison.positives.float().mean()) == pytest.approx(0.1, abs=0.01)
    three = []
    estimate(lambda comparison: three.append(comparison) or loss(comparison), 60, 8, classes=3, features=7)
    assert (three[0].positives.sum(1) == 20).all()
    assert three[0].anchor_features.shape == three[0].candidate_features.shape == (60, 7)
    assert three[0].candidate_head(three[0].candidate_features).shape == (60, 8)
