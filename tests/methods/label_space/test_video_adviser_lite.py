"""VideoAdviser's analogue: the teacher first, then students by its advice; only the students embed."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.options import OptionValues
from aadml.feature_extraction.ground.validation import checked_options
from aadml.losses.label_losses import row_norm
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.networks import NetworkOptions
from aadml.methods.training.learner import Batch, Epoch
from aadml.methods.training.session import Session
from aadml.methods.training.settings import Training

CONTEXT = Context({"audio": 5, "visual": 7}, 3)


def built(settings=None, **options):
    torch.manual_seed(0)
    small = {"network": NetworkOptions(hidden=(8,), dropout=0.0), "hidden": (8,)}
    return METHODS["video-adviser-lite"](CONTEXT, settings or Training(), **(small | options))


def batch(stage, b=7):
    generator = torch.Generator().manual_seed(1)
    features = {m: torch.randn(b, d, generator=generator) for m, d in CONTEXT.dimensions.items()}
    return Batch(features, torch.arange(b) % 3, torch.arange(b), generator, Epoch(stage, 0, 1))


def clips(n=30):
    given = batch("teacher", n)
    return Clips(given.features, given.labels, tuple(map(str, range(n))), ("a", "b", "c"))


def test_the_teacher_is_trained_first_and_the_students_start_from_the_best_one():
    stages = built(teacher_share=0.4).learner.stages(10)
    assert [(s.name, s.epochs, s.players) for s in stages] == [
        ("teacher", 4, ("teacher",)),
        ("students", 6, ("students",)),
    ]
    assert stages[1].start_from_best
    assert [s.name for s in built(teacher_share=0.0).learner.stages(10)] == ["students"]
    with pytest.raises(InputError, match=r"teacher_share is 1.0; pass a number from 0"):
        checked_options(METHODS["video-adviser-lite"], OptionValues(teacher_share=1.0), "method")


def test_the_teacher_distills_its_classes_into_its_regression():
    one, given = built(dropout=0.0).learner, batch("teacher")
    inner = one.teacher["trunk"](torch.cat([given.features["audio"], given.features["visual"]], 1))
    z, r = one.teacher["logits"](inner), one.teacher["regression"](inner)
    expected = F.cross_entropy(z, given.labels) + (r - z.softmax(1)).square().sum(1).mean()
    torch.testing.assert_close(one.players()["teacher"].loss(given)["loss"], expected)


def test_what_the_classes_say_is_no_pupil_of_the_regression():
    one, given = built().learner, batch("teacher")
    one.players()["teacher"].loss(given)["inner_loss"].backward()
    assert one.teacher["logits"].weight.grad is None
    assert one.teacher["regression"].weight.grad is not None


def test_students_follow_labels_and_the_advice_of_a_teacher_without_dropout():
    one, given = built(advice_weight=0.25, dropout=0.9).learner.train(), batch("students")
    one.teacher.eval()
    _, advice = one._advice([given.features[m] for m in CONTEXT.modalities])
    one.train()
    f = {m: one.students[m](given.features[m]) for m in CONTEXT.modalities}
    expected = sum(row_norm(v, given.labels) + 0.25 * (v - advice).square().sum(1).mean() for v in f.values())
    loss = one.players()["students"].loss(given)["loss"]
    torch.testing.assert_close(loss, expected)
    loss.backward()
    assert all(p.grad is None for p in one.teacher.parameters())


def test_the_log_tells_the_teachers_accuracy_and_each_stage_is_chosen_by_its_own_score():
    session = Session()
    settings = Training(epochs=10, batch=15, learning_rate=1e-2)
    built(settings, teacher_share=0.5).fit(clips(), clips().select(torch.arange(12)), session)
    for record in session.history:
        chosen = "teacher_accuracy" if record["stage"] == "teacher" else "map_mean"
        assert record["valid score"] == record[f"valid {chosen}"]
    accuracy = [record["valid teacher_accuracy"] for record in session.history]
    assert accuracy[4] > accuracy[0]
    assert set(accuracy[5:]) == {max(accuracy[:5])}


@pytest.mark.parametrize(
    ("epochs", "options", "warned"),
    [(1, {}, True), (2, {"teacher_share": 0.0}, True), (2, {}, False), (1, {"advice_weight": 0.0}, False)],
)
def test_an_untrained_teacher_is_reported(epochs, options, warned):
    session = Session()
    built(Training(epochs=epochs, batch=15), **options).fit(clips(), clips(), session)
    assert any("the students learn from an untrained teacher" in line for line in session.warnings) == warned


def test_the_teacher_takes_no_part_in_embedding():
    method, alone = built(), clips()
    alone = replace(alone, features={"audio": alone["audio"]})
    before = method.embed_clips(alone).vectors["audio"]
    for parameter in method.learner.teacher.parameters():
        torch.nn.init.normal_(parameter)
    assert torch.equal(method.embed_clips(alone).vectors["audio"], before)
