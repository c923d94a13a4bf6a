"""Tensors of published Inception-V3 files, which have a classifier and may have an auxiliary head."""

import torch

from aadml.feature_extraction.backbones.inception_v3 import InceptionV3
from aadml.feature_extraction.frontends.inference import seeded

HEADS = {
    "AuxLogits.conv0.conv.weight": (128, 768, 1, 1),
    "AuxLogits.conv1.conv.weight": (768, 128, 5, 5),
    **{f"AuxLogits.conv0.bn.{name}": (128,) for name in ("weight", "bias", "running_mean", "running_var")},
    **{f"AuxLogits.conv1.bn.{name}": (768,) for name in ("weight", "bias", "running_mean", "running_var")},
    **{f"AuxLogits.conv{number}.bn.num_batches_tracked": () for number in (0, 1)},
}


def heads(classes: int = 1000, *, auxiliary: bool = True) -> dict[str, torch.Tensor]:
    """Return the tensors that torchvision's file has beside those of the features; the values are zeros."""
    shapes = {"fc.weight": (classes, 2048), "fc.bias": (classes,)} if classes else {}
    if auxiliary:
        shapes |= HEADS | {"AuxLogits.fc.weight": (classes, 768), "AuxLogits.fc.bias": (classes,)}
    return {name: torch.zeros(shape) for name, shape in shapes.items()}


def published_tensors(classes: int = 1000, *, auxiliary: bool = True, seed: int = 0) -> dict[str, torch.Tensor]:
    return {**seeded(InceptionV3, seed=seed).state_dict(), **heads(classes, auxiliary=auxiliary)}
