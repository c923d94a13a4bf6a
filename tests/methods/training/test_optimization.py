"""Optimizers: torch's own steps, without an import of its compiler."""

import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

from aadml.methods.training.learner import Player
from aadml.methods.training.optimization import Optimization, Step, _stepped, build_optimizer
from aadml.methods.training.settings import OPTIMIZERS, Training

TRAINING = """
import sys, aadml
for loss in ("aa-triplet", "proxy-anchor"):
    aadml.fit("synthetic:ave", loss=loss, epochs=1, settings={"network.hidden": [8], "training.train_map": 0})
assert "torch._dynamo" not in sys.modules, "the compiler was imported"
"""


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_and_states_are_those_of_torch(name):
    generator = torch.Generator().manual_seed(0)
    start, gradients = torch.randn(7, 3, generator=generator), torch.randn(4, 7, 3, generator=generator)
    ours, torchs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    settings = Training(optimizer=name, learning_rate=0.01, weight_decay=0.1)
    built = build_optimizer([ours], settings)
    plain = OPTIMIZERS[name](
        [torchs], **{k: built.defaults[k] for k in ("lr", "weight_decay", "fused") if k in built.defaults}
    )
    for step, gradient in enumerate(gradients):
        built.zero_grad(set_to_none=True)
        ours.grad, torchs.grad = gradient.clone(), gradient.clone()
        built.step()
        plain.step()
        assert torch.equal(ours, torchs)
        if step == 1:
            state = built.state_dict()
            built = build_optimizer([ours], settings)
            built.load_state_dict(state)
    assert isinstance(built, OPTIMIZERS[name])


def rates(settings, *steps, own=None):
    """Learning rates of a step, of a parameter of the settings and of a parameter with its own rate."""
    usual, slow = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))
    player = Player([usual, slow], lambda _: {"loss": (usual + slow).sum()}, rates={} if own is None else {slow: own})
    optimization, found = Optimization({"all": player}, settings), []
    for step in steps:
        optimization.set_rates(step, 1.0)
        before = usual.detach().clone(), slow.detach().clone()
        optimization.step("all", player, None)
        found.append([float((b - p.detach())[0]) for b, p in zip(before, (usual, slow), strict=True)])
    return found


def test_plateaus_lower_only_the_rates_of_players_with_that_schedule():
    first, second = (torch.nn.Parameter(torch.zeros(2)) for _ in range(2))
    players = {
        "lowered": Player([first], lambda _: {}),
        "constant": Player([second], lambda _: {}, partial(replace, schedule="constant")),
    }
    optimization = Optimization(players, Training(learning_rate=0.1, schedule="plateau"))
    assert optimization.set_rates(Step(0, 4), 0.5) == pytest.approx(0.05)
    optimization = Optimization(dict(reversed(players.items())), Training(learning_rate=0.1, schedule="plateau"))
    assert optimization.set_rates(Step(0, 4), 0.5) == pytest.approx(0.1)


def test_a_parameter_may_have_its_own_learning_rate_under_the_same_schedule():
    settings = Training(optimizer="sgd", learning_rate=0.1, schedule="step", schedule_every=1, schedule_factor=0.5)
    found = rates(settings, Step(0, 4), Step(1, 4), Step(3, 4), own=0.01)
    for pair, factor in zip(found, (1, 0.5, 0.125), strict=True):
        assert pair == pytest.approx([0.1 * factor, 0.01 * factor])
    assert rates(settings, Step(0, 4))[0] == pytest.approx([0.1, 0.1])


def test_warmup_and_cosine_are_those_of_torch():
    ours = Training(optimizer="sgd", learning_rate=0.1, schedule="cosine", warmup=1.5)
    steps = [Step(epoch, 5, number, 4) for epoch in range(5) for number in range(4)]
    found = [pair[0] for pair in rates(ours, *steps)]
    assert found[:6] == pytest.approx([0.1 * (n + 1) / 6 for n in range(6)], rel=1e-4)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 14)
    for rate in found[6:]:
        assert rate == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-3, abs=1e-6)
        optimizer.step()
        theirs.step()


def test_a_floor_bounds_the_cosine_from_below():
    settings = Training(optimizer="sgd", learning_rate=0.1, schedule="cosine", schedule_floor=0.02)
    assert rates(settings, Step(9, 10, 9, 10))[0][0] == pytest.approx(0.02)


def test_a_training_does_not_import_the_compiler(tmp_path):
    done = subprocess.run([sys.executable, "-c", TRAINING], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_of_a_loss_that_is_not_finite_leaves_weights_and_later_steps_alone(name, waits):
    weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
    settings = Training(optimizer=name, learning_rate=0.01, momentum=0.9)
    optimizers = [build_optimizer([weight], settings) for weight in weights]
    for scale in (torch.inf, 1.0, torch.nan, 1.0):
        finite = torch.isfinite(torch.tensor(scale))
        for number, (weight, optimizer) in enumerate(zip(weights, optimizers, strict=True)):
            weight.grad = torch.full((3,), scale)
            if number == 0:
                _stepped(optimizer, finite, waits=waits)
            elif finite:
                optimizer.step()
        assert torch.equal(*weights)
    assert not torch.equal(weights[0], torch.ones(3))
