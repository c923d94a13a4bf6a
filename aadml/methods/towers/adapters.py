"""Low-rank adapters (LoRA) in the linear layers of a pretrained network, by `peft`."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from torch import nn

from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.import_paths import optional

MARK = ".lora_"
"""Part of the names of an adapter's weights."""


def linear_layers(network: nn.Module, parts: Iterable[nn.Module]) -> tuple[str, ...]:
    """Return the names of those linear layers of a network that are elements of `parts`."""
    chosen = set(parts)
    return tuple(name for name, module in network.named_modules() if type(module) is nn.Linear and module in chosen)


def add_adapters(network: nn.Module, layers: Sequence[str], *, rank: int, alpha: float) -> list[nn.Module]:
    """Add low-rank adapters to linear layers in place (Hu et al., 2021).

    The output of a layer for an input x receives `alpha / rank` times B A x, with new matrices A and B. B is zero
    at the beginning, so that the network at first computes the same vectors as without adapters.

    Reference: Hu et al., LoRA: low-rank adaptation of large language models, 2021, https://arxiv.org/abs/2106.09685

    Args:
        network: network with the layers.
        layers: names of linear layers.
        rank: rank of B A.
        alpha: strength of the adapters.

    Returns:
        The modules with the weights A and B.

    Raises:
        InputError: no layers, a rank of 0, or a name that belongs to no linear layer.
        MissingExtraError: `peft` is not installed.
    """
    peft = optional("peft", "lora_rank", "aadml[lora]")
    modules = dict(network.named_modules())
    if not layers:
        raise InputError(
            f"lora_rank is {rank}, but the trained parts of this network have no linear layers; set blocks to all, or "
            "lora_rank to 0"
        )
    if not rank:
        raise InputError("lora_rank is 0, but the model has adapters; train the model again, or restore its files")
    for name in layers:
        if type(modules.get(name)) is not nn.Linear:
            raise InputError(
                f"{name[:80]!r} is not a linear layer of this network, but has an adapter; train the model again"
            )
    names = "|".join(map(re.escape, layers))  # a list would also match the ends of other names
    config = peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=names)
    peft.inject_adapter_in_model(config, network)
    return [part for name, part in network.named_modules() if MARK in name and isinstance(part, nn.Linear)]


def merge_adapters(network: nn.Module, layers: Sequence[str]) -> None:
    """Add the adapters of linear layers to the weights of the layers, in place."""
    for name in layers:
        layer: Any = network.get_submodule(name)
        layer.merge()
        network.set_submodule(name, layer.base_layer)
