"""Heads: a network of fully connected layers for each modality, from its features into a space shared by all."""

from collections.abc import Sequence
from itertools import permutations

from aadml.feature_extraction.ground.errors import InputError
from aadml.methods.method import Context
from aadml.methods.networks import Layers, PerModality, layers


def heads(
    context: Context, method: str, sizes: Sequence[int], *, activation: str, dropout: float = 0.0, last: bool = False
) -> PerModality[Layers]:
    """Build a head for every modality.

    Args:
        context: dimensions of the modalities.
        method: name of the method, for the message.
        sizes: hidden sizes and the output size.
        activation: a key of ACTIVATIONS, after every hidden layer.
        dropout: share of units dropped after each activation.
        last: whether the output has an activation (and dropout) too.

    Returns:
        modality -> (b, d) to (b, sizes[-1]).

    Raises:
        InputError: the features of a modality are not vectors.
    """
    context.need_vectors(method)
    return PerModality(
        {
            modality: layers((dimension, *sizes), activation=activation, dropout=dropout, last=last)
            for modality, dimension in context.dimensions.items()
        }
    )


def all_directions(context: Context) -> list[str]:
    """Return every ordered pair of modalities in the notation of `Objective` ("audio-visual", "visual-audio").

    Raises:
        InputError: there are fewer than two modalities.
    """
    if len(context.modalities) < 2:
        raise InputError(f"two modalities are needed; the data have {', '.join(context.modalities)} alone")
    return ["-".join(pair) for pair in permutations(context.modalities, 2)]
