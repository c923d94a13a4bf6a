"""Loss of a critic in the Wasserstein game with gradient penalty (Gulrajani et al., NeurIPS 2017).

Reference: Gulrajani et al., Improved training of Wasserstein GANs, NeurIPS 2017, https://arxiv.org/abs/1704.00028
"""

import torch
from torch import Tensor, nn

from aadml.comparison.transfer import sent


def critic_loss(critic: nn.Module, real: Tensor, fake: Tensor, generator: torch.Generator, *, penalty: float) -> Tensor:
    """Compute the loss that trains a critic to score `real` above `fake`, plus a penalty on gradient norms unlike 1.

        mean of D(fake) - mean of D(real) + penalty  mean of (|grad D(x)| - 1)^2
        x = s real + (1 - s) fake,   s uniform in 0..1, one per row

    Args:
        critic: (b, d) -> (b, 1).
        real: (b, d), to be scored high; without gradient.
        fake: (b, d), to be scored low; without gradient.
        generator: generator of s.
        penalty: weight of the deviation of the gradient norm from 1.

    Returns:
        A scalar, differentiable with respect to the critic's parameters.
    """
    real, fake = real.detach(), fake.detach()
    share = sent(torch.rand(len(real), 1, generator=generator, device=generator.device), real.device)
    between = (share * real + (1 - share) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    deviation = torch.linalg.vector_norm(gradient, dim=1) - 1
    loss: Tensor = critic(fake).mean() - critic(real).mean() + penalty * deviation.square().mean()
    return loss
