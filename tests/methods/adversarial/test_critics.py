"""Critics: their cost is known for a linear one, and its gradient passes through the slope."""

import torch
from torch import nn

from aadml.methods.adversarial.critics import critic_loss


def points(b=6, d=4):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, b, d, generator=generator, dtype=torch.float64)


def test_a_linear_critic_costs_the_means_and_its_slope():
    real, fake = points()
    critic = nn.Linear(4, 1).double()
    w = critic.weight[0]
    expected = (fake @ w).mean() - (real @ w).mean() + 10 * (w.norm() - 1) ** 2
    found = critic_loss(critic, real, fake, torch.Generator(), penalty=10.0)
    torch.testing.assert_close(found, expected)


def test_no_gradient_reaches_what_is_criticized():
    real, fake = (side.clone().requires_grad_() for side in points())
    critic = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    critic_loss(critic, real, fake, torch.Generator(), penalty=10.0).backward()
    assert real.grad is None
    assert fake.grad is None
    assert all(p.grad is not None for p in critic[0].parameters())


def test_the_gradient_passes_through_the_slope():
    real, fake = points()
    first = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    last = torch.randn(1, 5, dtype=torch.float64, requires_grad=True)

    class Critic(nn.Module):
        def forward(self, x):
            return torch.tanh(x @ first.T) @ last.T

    def cost(*_):
        return critic_loss(Critic(), real, fake, torch.Generator().manual_seed(3), penalty=10.0)

    assert torch.autograd.gradcheck(cost, (first, last))


def test_a_critic_without_slope_has_a_finite_gradient():
    real, fake = points()
    critic = nn.Linear(4, 1).double()
    nn.init.zeros_(critic.weight)
    critic_loss(critic, real, fake, torch.Generator(), penalty=10.0).backward()
    assert torch.isfinite(critic.weight.grad).all()


def test_the_same_draws_give_the_same_cost():
    real, fake = points()
    critic = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    costs = [critic_loss(critic, real, fake, torch.Generator().manual_seed(s), penalty=10.0) for s in (1, 1, 2)]
    assert costs[0] == costs[1] != costs[2]
