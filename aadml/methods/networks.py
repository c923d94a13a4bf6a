"""Networks on feature vectors, shared by several methods."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Generic, TypeVar, cast

import torch
from annotated_types import Interval
from torch import Tensor, nn

from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, SomeLayers
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.option_types import OwnSection
from aadml.feature_extraction.ground.options import removing
from aadml.layers.dropout import DropoutLayer
from aadml.layers.linear import Linear
from aadml.layers.tanh import Tanh
from aadml.methods.method import Context

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": Tanh, "relu": nn.ReLU, "sigmoid": nn.Sigmoid, "gelu": nn.GELU}

Module = TypeVar("Module", bound=nn.Module)


class PerModality(nn.ModuleDict, Generic[Module]):
    """Networks of one type, by modality."""

    def __getitem__(self, modality: Modality) -> Module:
        """Return the network of a modality."""
        return cast(Module, super().__getitem__(modality))


def layers(sizes: Sequence[int], *, activation: str = "relu", dropout: float = 0.0, last: bool = True) -> "Layers":
    """Build linear layers of given sizes, with activation and dropout after each hidden layer.

    Args:
        sizes: input, hidden and output sizes.
        activation: a key of ACTIVATIONS.
        dropout: share of units dropped after each activation.
        last: whether activation and dropout also follow the last layer.

    Returns:
        A module from (b, sizes[0]) to (b, sizes[-1]).
    """
    modules: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        modules.append(Linear(inputs, outputs))
        if last or number < len(sizes) - 2:
            modules.append(ACTIVATIONS[activation]())
            if dropout:
                modules.append(DropoutLayer(dropout))
    return Layers(*modules)


class Layers(nn.Sequential):
    """Linear layers, activations and dropout, one after the other."""

    __call__: Callable[..., Tensor]


@removing(activation="tanh")
@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """The `network` section: hidden layers, dropout and input noise of the encoder of each modality.

    Each hidden layer is followed by tanh. The AADML paper mentions no activation, but code of the paper's first
    author for other methods uses tanh.

    Attributes:
        hidden: sizes of the hidden layers (3 x 1024: AADML, section 5.2).
        dropout: share of hidden units dropped (0.1: AADML, section 5.2).
        input_noise: standard deviation of noise added to the inputs while training (docs/lab/findings.md).
    """

    hidden: SomeLayers = (1024, 1024, 1024)
    dropout: Dropout = 0.1
    input_noise: Annotated[float, Interval(ge=0, le=100)] = 0.0


Network = Annotated[NetworkOptions, OwnSection()]
NETWORK = NetworkOptions()


class LabelSpaceEncoder(nn.Module):
    """Sub-network of AADML (Zeng et al., ICMR 2024, section 5.2): hidden layers, and a linear layer to label space.

    Reference: Zeng et al., Anchor-aware deep metric learning for audio-visual retrieval, ICMR 2024, https://arxiv.org/abs/2404.13789
    """

    __call__: Callable[..., Tensor]

    def __init__(self, dimension: int, outputs: int, options: NetworkOptions) -> None:
        super().__init__()
        sizes = (dimension, *options.hidden)
        self.hidden = layers(sizes, activation="tanh", dropout=options.dropout)
        self.predicted = nn.Linear(sizes[-1], outputs)
        self.input_noise = options.input_noise

    def features(self, inputs: Tensor) -> Tensor:
        """Return the outputs (b, hidden[-1]) of the last hidden layer; inputs (b, d) receive noise in training."""
        if self.training and self.input_noise:
            rows, local = group.drawn_rows(len(inputs))
            inputs = inputs + self.input_noise * torch.randn(rows, inputs.shape[1], device=inputs.device)[local]
        return self.hidden(inputs)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the label-space vectors (b, outputs) of inputs (b, d)."""
        vectors: Tensor = self.predicted(self.features(inputs))
        return vectors


def encoders(context: Context, method: str, outputs: int, options: NetworkOptions) -> PerModality[LabelSpaceEncoder]:
    """Build an encoder from (b, d) to (b, outputs) for every modality.

    Args:
        context: dimensions of the modalities.
        method: name of the method, for the message.
        outputs: size of the last layer.
        options: the `network` section.

    Raises:
        InputError: there are fewer than two modalities, or the features of a modality are not vectors.
    """
    context.need_vectors(method)
    return PerModality({m: LabelSpaceEncoder(size, outputs, options) for m, size in context.dimensions.items()})


def label_space_encoders(context: Context, method: str, network: NetworkOptions) -> PerModality[LabelSpaceEncoder]:
    """Build an encoder into label space for every modality, from (b, d) to (b, C).

    Args:
        context: dimensions and classes.
        method: name of the method, for the message.
        network: layers of the encoders, see `NetworkOptions`.

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """
    return encoders(context, method, context.need_classes(method), network)


def heads(
    context: Context, method: str, sizes: Sequence[int], *, activation: str, dropout: float = 0.0, last: bool = False
) -> PerModality[Layers]:
    """Build a head, a fully connected network on features, for every modality.

    Args:
        context: dimensions of the modalities.
        method: name of the method, for the message.
        sizes: hidden sizes and the output size.
        activation: a key of ACTIVATIONS, after every hidden layer.
        dropout: share of units dropped after each activation.
        last: whether the output has an activation (and dropout) too.

    Returns:
        The network of each modality, from (b, d) to (b, sizes[-1]).

    Raises:
        InputError: there are fewer than two modalities, or the features of a modality are not vectors.
    """
    context.need_vectors(method)
    return PerModality(
        {
            modality: layers((dimension, *sizes), activation=activation, dropout=dropout, last=last)
            for modality, dimension in context.dimensions.items()
        }
    )
