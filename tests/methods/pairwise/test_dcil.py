"""DCIL: one classifier of clips for both modalities, then ranking beside it."""

import pytest
import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 7}, 3, clips=12)
SMALL = {"hidden": (6,), "dimension": 4, "dropout": 0.0}


def built(context=CONTEXT, settings=None, **options):
    torch.manual_seed(0)
    return METHODS["dcil"](context, settings or Training(), **(SMALL | options))


def batch(stage, b=6):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b) * 2, generator, Epoch(stage, 0, 1))


def clips(n=12):
    generator = torch.Generator().manual_seed(2)
    features = {m: torch.randn(n, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Clips(features, torch.arange(n) % 3, tuple(map(str, range(n))), tuple("abc"))


def instance_loss(learner, given, targets):
    return sum(
        F.cross_entropy(learner.classifier(learner.heads[m](given.features[m])), targets) for m in given.features
    )


def test_the_first_stage_tells_clips_apart_by_one_classifier():
    learner, given = built().learner, batch("instance")
    assert learner.classifier.out_features == 12
    torch.testing.assert_close(
        learner.players()["all"].loss(given)["loss"], instance_loss(learner, given, torch.arange(6) * 2)
    )


@torch.no_grad()
def test_the_second_stage_adds_the_ranking_of_partners_both_ways():
    learner, given = built(margin=0.8).learner, batch("ranking")
    audio, visual = (F.normalize(learner.heads[m](given.features[m]), dim=1).double() for m in CONTEXT.modalities)
    scores = (audio @ visual.T).tolist()
    total = 0.0
    for i in range(6):
        for n in range(6):
            if n != i:
                total += max(0.0, 0.8 - scores[i][i] + scores[i][n]) + max(0.0, 0.8 - scores[i][i] + scores[n][i])
    found = learner.players()["all"].loss(given)
    assert float(found["ranking_loss"]) == pytest.approx(total / 30, rel=1e-5)
    torch.testing.assert_close(found["loss"], instance_loss(learner, given, given.index) + found["ranking_loss"])


@pytest.mark.parametrize(("share", "stages"), [(0.5, [3, 3]), (1.0, [6, 0]), (0.0, [0, 6])])
def test_the_share_divides_the_epochs(share, stages):
    session = Session()
    built(settings=Training(epochs=6, batch=6), instance_share=share).fit(clips(), clips(), session)
    trained = [record["stage"] for record in session.history]
    assert [trained.count("instance"), trained.count("ranking")] == stages


def test_the_second_stage_starts_from_the_best_weights_of_the_first():
    stages = built().learner.stages(10)
    assert [stage.name for stage in stages] == ["instance", "ranking"]
    assert stages[1].start_from_best


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="one class per training clip"):
        built(Context({"audio": 5, "visual": 7}, 3))
    with pytest.raises(InputError, match=r"instance_share is 2.0"):
        checked_options(METHODS["dcil"], OptionValues(instance_share=2.0), "method")
    with pytest.raises(InputError, match=r"there are 15 training clips, but .* built for 12"):
        built(settings=Training(epochs=2)).fit(clips(15), clips())


def test_more_training_clips_than_it_was_built_for_are_refused():
    built().learner.before_epoch(clips(11), Epoch("instance", 0, 1))
    with pytest.raises(InputError, match=r"there are 13 training clips, but .* built for 12"):
        built().learner.before_epoch(clips(13), Epoch("instance", 0, 1))
