"""Heads: one network of fully connected layers a modality, from its features into a space that all modalities share."""

from collections.abc import Sequence
from itertools import permutations

from torch import nn

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.method import Context
from aadml.methods.networks import layers


def heads(
    context: Context, method: str, sizes: Sequence[int], *, activation: str, dropout: float = 0.0, last: bool = False
) -> nn.ModuleDict:
    """Build a head for every modality.

    Args:
        context: dimensions of the modalities.
        method: who asks, for the message.
        sizes: hidden sizes and the output size.
        activation: a key of ACTIVATIONS, after every hidden layer.
        dropout: share of units dropped after each activation.
        last: whether the output has an activation (and dropout) too.

    Returns:
        modality -> (b, d) to (b, sizes[-1]).

    Raises:
        InputError: a size below 1, or a modality whose features are no vectors.
    """
    if min(sizes) < 1:
        raise InputError(f"method: layers of {', '.join(map(str, sizes))} units asked for; 1 or more is possible")
    context.need_vectors(method)
    return nn.ModuleDict(
        {
            modality: layers((dimension, *sizes), activation=activation, dropout=dropout, last=last)
            for modality, dimension in context.dimensions.items()
        }
    )


def all_directions(context: Context) -> list[str]:
    """Name every ordered pair of modalities as `Objective` takes them ("audio-visual", "visual-audio").

    Raises:
        InputError: there are fewer than two modalities.
    """
    if len(context.modalities) < 2:
        raise InputError(f"two modalities are needed; the data has {', '.join(context.modalities)} alone")
    return ["-".join(two) for two in permutations(context.modalities, 2)]
