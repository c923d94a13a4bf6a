"""BiC-Net: a vector as a whole and as tokens, ranked in pairs by both."""

import pytest
import torch
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.pairwise.bic_net import TokenTransformer
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 14}, 3)


def learner(**options):
    torch.manual_seed(0)
    small = {"dimension": 16, "tokens": 4, "depth": 1, "hidden": (6,), "dropout": 0.0}
    return METHODS["bic-net"](CONTEXT, Training(), **(small | options)).learner


def batch(b=7):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(20, 20 + b), generator, Epoch("train", 0, 1))


@pytest.mark.parametrize(
    ("dimension", "tokens", "pieces"),
    [(1024, 8, (8, 128)), (128, 8, (8, 16)), (14, 4, (4, 4)), (5, 4, (3, 2)), (3, 8, (3, 1))],
)
def test_a_vector_is_cut_into_equal_pieces(dimension, tokens, pieces):
    one = TokenTransformer(dimension, tokens=tokens, width=4, depth=1, dropout=0.0)
    assert (one.tokens, one.piece) == pieces
    with torch.no_grad():
        assert one(torch.randn(3, dimension)).shape == (3, 4)


def test_positions_tell_pieces_apart():
    torch.manual_seed(0)
    one = TokenTransformer(8, tokens=2, width=4, depth=1, dropout=0.0).eval()
    vector = torch.randn(1, 8)
    swapped = torch.cat([vector[:, 4:], vector[:, :4]], 1)
    with torch.no_grad():
        assert not torch.allclose(one(vector), one(swapped), atol=1e-5)
        one.position.zero_()
        torch.testing.assert_close(one(vector), one(swapped))


def test_positions_begin_small_beside_the_normalized_pieces():
    torch.manual_seed(0)
    position = TokenTransformer(64, tokens=8, width=64, depth=1, dropout=0.0).position.detach()
    assert float(position.std()) == pytest.approx(0.02, rel=0.2)
    assert float(position.mean().abs()) < 0.005


def test_every_piece_is_seen():
    vectors = torch.randn(2, 14, requires_grad=True)
    one = TokenTransformer(14, tokens=4, width=4, depth=1, dropout=0.0)
    (one(vectors) * torch.randn(4)).sum().backward()
    assert (vectors.grad.abs() > 0).all()


@torch.no_grad()
def test_the_loss_ranks_partners_by_both_branches():
    one, given = learner(margin=0.3), batch()
    total = 0.0
    for branch in (one.whole, one.local):
        audio, visual = (F.normalize(branch[m](given.features[m]), dim=1).double() for m in CONTEXT.modalities)
        for s in (audio @ visual.T, visual @ audio.T):
            for i in range(7):
                total += sum(0.5 * max(0.0, float(0.3 - s[i, i] + s[i, n])) for n in range(7) if n != i)
    assert float(one.players()["all"].loss(given)["loss"]) == pytest.approx(total, rel=1e-5)


@torch.no_grad()
def test_the_cosine_of_embeddings_is_the_mean_of_both_cosines():
    one, given = learner(), batch()
    joined = [one.embed(given.features[m], m) for m in CONTEXT.modalities]
    assert joined[0].shape == (7, 16)
    cosines = [
        F.cosine_similarity(*(branch[m](given.features[m]) for m in CONTEXT.modalities))
        for branch in (one.whole, one.local)
    ]
    torch.testing.assert_close(F.cosine_similarity(*joined), sum(cosines) / 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dimension": 12}, "dimension is 12; .* that 8 divides"),
        ({"tokens": 0}, "tokens is 0; pass a whole number from 1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        learner(**vars(checked_options(METHODS["bic-net"], OptionValues(**{"dimension": 16} | options), "method")))
