"""Critics of the Wasserstein game with gradient penalty (Gulrajani et al., NeurIPS 2017)."""

import torch
from torch import Tensor, nn


def critic_cost(critic: nn.Module, real: Tensor, fake: Tensor, generator: torch.Generator, *, penalty: float) -> Tensor:
    """Cost of a critic that is to score `real` above `fake` with a slope of 1 between them.

        mean of D(fake) - mean of D(real) + penalty  mean of (|grad D(x)| - 1)^2
        x = s real + (1 - s) fake,   s uniform in 0..1, one a row

    Args:
        critic: (b, d) -> (b, 1).
        real: (b, d), what the critic learns to prefer; no gradient reaches it.
        fake: (b, d), what it learns to reject; likewise.
        generator: draws s.
        penalty: weight of the slope's deviation from 1.

    Returns:
        A scalar, differentiable by the critic's parameters.
    """
    real, fake = real.detach(), fake.detach()
    share = torch.rand(len(real), 1, generator=generator, device=generator.device).to(real.device)
    between = (share * real + (1 - share) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    deviation = torch.linalg.vector_norm(slope, dim=1) - 1
    cost: Tensor = critic(fake).mean() - critic(real).mean() + penalty * deviation.square().mean()
    return cost
