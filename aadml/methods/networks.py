"""Small networks of vectors that several methods build on."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from feature_extraction.ground.tables import lookup

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "sigmoid": nn.Sigmoid, "gelu": nn.GELU}


def layers(sizes: Sequence[int], *, activation: str = "relu", dropout: float = 0.0, last: bool = True) -> nn.Sequential:
    """Build linear layers of the given sizes, each followed by activation and dropout.

    Args:
        sizes: input, hidden and output sizes.
        activation: a key of ACTIVATIONS.
        dropout: share of units dropped after each activation.
        last: whether the last layer has an activation (and dropout) too.

    Returns:
        A module (b, sizes[0]) -> (b, sizes[-1]).
    """
    modules: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        modules.append(nn.Linear(inputs, outputs))
        if last or number < len(sizes) - 2:
            modules.append(lookup(ACTIVATIONS, activation, "activation")())
            if dropout:
                modules.append(nn.Dropout(dropout))
    return nn.Sequential(*modules)


def label_space_network(
    *,
    hidden: tuple[int, ...] = (1024, 1024, 1024),
    activation: str = "tanh",
    dropout: float = 0.1,
    input_noise: float = 0.0,
) -> dict[str, Any]:
    """Name the options of the `network` section.

    Args:
        hidden: sizes of the hidden layers (3 x 1024: AADML, section 5.2).
        activation: after each hidden layer; the paper names none, the first author's other code uses tanh.
        dropout: share of hidden units dropped (0.1: AADML, section 5.2).
        input_noise: standard deviation of noise added to the inputs while training (docs/findings.md).
    """
    return {"hidden": hidden, "activation": activation, "dropout": dropout, "input_noise": input_noise}


class LabelSpaceEncoder(nn.Module):
    """AADML's sub-network (Zeng et al., ICMR 2024, section 5.2): hidden layers and a linear one to label space."""

    def __init__(
        self,
        dimension: int,
        outputs: int,
        *,
        hidden: Sequence[int],
        activation: str,
        dropout: float,
        input_noise: float,
    ) -> None:
        super().__init__()
        self.hidden = layers((dimension, *hidden), activation=activation, dropout=dropout)
        self.predicted = nn.Linear((dimension, *hidden)[-1], outputs)
        self.input_noise = input_noise

    def features(self, inputs: Tensor) -> Tensor:
        """Return the last hidden layer (b, hidden[-1]) of inputs (b, d), to which noise is added while training."""
        if self.training and self.input_noise:
            inputs = inputs + self.input_noise * torch.randn_like(inputs)
        hidden = self.hidden(inputs)
        assert isinstance(hidden, Tensor)
        return hidden

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the label-space vectors (b, outputs) of inputs (b, d)."""
        predicted = self.predicted(self.features(inputs))
        assert isinstance(predicted, Tensor)
        return predicted
