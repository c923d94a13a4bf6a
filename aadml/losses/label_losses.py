"""Label losses: what it costs to be far from one's class label (see LABEL_LOSSES)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.options import Share, Temperature
from aadml.comparison.pairwise import at_least_float32
from aadml.losses.kernels.likelihood import tempered


def row_norm(outputs: Tensor, labels: Tensor) -> Tensor:
    """Mean distance of an output to its one-hot label: mean over i of |f(x_i) - Y_i|.

    The reading of AADML's label loss of its lineage's code (DSCMR, Zhen et al., CVPR 2019); the toolkit's default.

    Args:
        outputs: (b, C), C the number of classes.
        labels: (b,) int64 in 0..C-1.

    Returns:
        A scalar; 0 for an empty batch.
    """
    lengths: Tensor = torch.linalg.vector_norm(_errors(outputs, labels), dim=1)
    return lengths.sum() / max(len(labels), 1)


def frobenius(outputs: Tensor, labels: Tensor) -> Tensor:
    """Frobenius norm of the whole batch's error over its size: |F - Y|_F / b (AADML, Zeng et al., ICMR 2024, literal).

    It falls as 1 / sqrt(b), so at the paper's batch of 400 it is twenty times smaller than `row_norm`.

    Args:
        outputs: (b, C).
        labels: (b,) int64.

    Returns:
        A scalar; 0 for an empty batch.
    """
    length: Tensor = torch.linalg.vector_norm(_errors(outputs, labels))
    return length / max(len(labels), 1)


def mse(outputs: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error to one-hot labels, over clips and classes.

    Args:
        outputs: (b, C).
        labels: (b,) int64.

    Returns:
        A scalar; 0 for an empty batch.
    """
    return _errors(outputs, labels).square().sum() / max(outputs.numel(), 1)


def ce(outputs: Tensor, labels: Tensor, *, temperature: Temperature = 1.0, label_smoothing: Share = 0.0) -> Tensor:
    """Cross-entropy of softmax(outputs / temperature).

    Args:
        outputs: (b, C) logits.
        labels: (b,) int64.
        temperature: divides the logits (1.0: what the measured recommendation uses).
        label_smoothing: share of the target spread evenly over all classes (0.0: likewise; Szegedy et al. take 0.1).

    Returns:
        A scalar; 0 for an empty batch.
    """
    logits = tempered(at_least_float32(outputs), temperature)
    cost = F.cross_entropy(logits, labels, label_smoothing=label_smoothing, reduction="sum")
    return cost / max(len(labels), 1)


def _errors(outputs: Tensor, labels: Tensor) -> Tensor:
    """Outputs minus one-hot labels (b, C), in float32 or better."""
    return at_least_float32(outputs) - F.one_hot(labels, outputs.shape[1])
