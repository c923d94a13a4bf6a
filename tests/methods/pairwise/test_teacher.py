"""The DCCA of the training clips as a teacher."""

import pytest
import torch
from torch.nn import functional as F

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.pairwise.teacher import dcca_space
from aadml.methods.training.learner import Epoch
from aadml.methods.training.settings import Training
from aadml.objective.neighbor_positives import NeighborOptions
from tests.methods.pairwise.pairs_on_features import (
    CONTEXT,
    clips,
    learner,
)


@pytest.fixture
def short_teacher(monkeypatch):
    monkeypatch.setattr("aadml.methods.pairwise.teacher.TRAINING", Training(epochs=2, batch=20, optimizer="rmsprop"))


def test_a_teacher_knows_the_training_clips_alone_and_finds_the_neighbors(short_teacher):
    one, given = learner(neighbors=NeighborOptions(positives="own", k=2, space="dcca")), clips(40)
    one.before_epoch(given, Epoch("train", 0, 2))
    space = dcca_space(given, seed=CONTEXT.seed)
    for modality, vectors in space.items():
        found = one.matching.neighbors.among(torch.arange(40), modality, torch.arange(40)).mask
        scores = F.normalize(vectors.double(), dim=1) @ F.normalize(vectors.double(), dim=1).T
        for clip, row in enumerate(scores):
            row[clip] = -2
            assert set(found[clip].nonzero()[:, 0].tolist()) == set(row.topk(2).indices.tolist())
    before = one.matching.neighbors.among(torch.arange(40), "audio", torch.arange(40)).mask
    one.before_epoch(given, Epoch("train", 1, 2))
    assert torch.equal(before, one.matching.neighbors.among(torch.arange(40), "audio", torch.arange(40)).mask)


def test_a_teacher_is_drawn_by_its_seed_and_disturbs_no_other_draw(short_teacher):
    given = clips(40)
    torch.manual_seed(5)
    first = dcca_space(given, seed=1)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(3))
    assert torch.equal(first["audio"], dcca_space(given, seed=1)["audio"])
    assert not torch.equal(first["audio"], dcca_space(given, seed=2)["audio"])


def test_a_teacher_of_three_modalities_is_refused_before_anything_is_trained():
    context = Context({"audio": 5, "visual": 7, "text": 3}, 0)
    with pytest.raises(InputError, match="which needs exactly two modalities, but the clips have audio, visual, text"):
        METHODS["pairs"](context, Training(), neighbors=NeighborOptions(positives="own", space="dcca"))
