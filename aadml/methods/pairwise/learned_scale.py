"""A temperature that is learned with the networks (Radford et al., ICML 2021).

Reference: Radford et al., Learning transferable visual models from natural language supervision, ICML 2021, https://arxiv.org/abs/2103.00020
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison, Terms
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.errors import InputError
from aadml.objective import Objective
from aadml.objective.left_out import LeftOut, is_rebuilding

LARGEST = math.log(100)


class LearnedScale(nn.Module):
    """A module that can learn the temperature of losses; the scale s = 1 / temperature stays between 1 and 100.

    Attributes:
        log_scale: log s; None if no temperature is learned.
    """

    def __init__(self) -> None:
        super().__init__()
        self.log_scale: nn.Parameter | None = None

    def learn_scale(self, objective: Objective, temperature: float) -> None:
        """Pass the learned temperature, which starts at `temperature`, to all losses of an objective.

        Raises:
            InputError: in training, the temperature is not between 0.01 and 1, or a loss is a module.
        """
        if not is_rebuilding():
            self._check_scale(objective, temperature)
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))
        objective.losses = tuple(partial(self._scaled, loss) for loss in objective.losses)

    def _check_scale(self, objective: Objective, temperature: float) -> None:
        if not 0.01 <= temperature <= 1:
            raise InputError(
                f"loss.temperature is {temperature:g}, but the learned temperature of this method starts between 0.01 "
                "and 1; choose a number from 0.01 to 1"
            )
        if any(not isinstance(loss, LeftOut) for loss in objective.owned):
            raise InputError(
                "loss: the loss is an nn.Module, which cannot receive the learned temperature of this method in each "
                "call; choose a loss that is a function"
            )

    def bounded_scale(self) -> dict[str, Tensor]:
        """Limit the parameter `log_scale` to its bounds, and return the scale s for the training log.

        The result is empty if no temperature is learned. If rows are divided over workers, the result is s divided
        by the number of workers.
        """
        if self.log_scale is None:
            return {}
        with torch.no_grad():  # no clamp in the graph, whose gradient would be zero beyond the bound
            self.log_scale.clamp_(0, LARGEST)
        return {"scale": group.portion(self.log_scale.exp())}

    def _scaled(self, loss: Any, comparison: Comparison) -> Terms:
        assert self.log_scale is not None
        temperature = torch.exp(-self.log_scale)
        if comparison.shared is not None:  # opposite directions share results of the same temperature
            temperature = comparison.shared.of(self.log_scale, lambda: (temperature, temperature))
        terms: Terms = loss(comparison, temperature=temperature)
        return terms
