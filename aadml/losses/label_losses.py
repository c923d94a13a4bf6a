"""Label losses: distances of outputs from class labels (see LABEL_LOSSES)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.options import Share, Temperature
from aadml.comparison.pairwise import at_least_float32
from aadml.losses.kernels.likelihood import tempered


def row_norm(outputs: Tensor, labels: Tensor) -> Tensor:
    """Compute the mean distance of outputs from their one-hot labels: mean over i of |f(x_i) - Y_i|.

    This loss is the default label loss. The released code of DSCMR (Zhen et al., CVPR 2019) has this form.

    Reference: Zhen et al., Deep supervised cross-modal retrieval, CVPR 2019, https://openaccess.thecvf.com/content_CVPR_2019/html/Zhen_Deep_Supervised_Cross-Modal_Retrieval_CVPR_2019_paper.html

    Args:
        outputs: (b, C), C the number of classes.
        labels: (b,) int64 in 0..C-1.

    Returns:
        A scalar; 0 for an empty batch.
    """
    lengths: Tensor = torch.linalg.vector_norm(_errors(outputs, labels), dim=1)
    return lengths.sum() / max(len(labels), 1)


def frobenius(outputs: Tensor, labels: Tensor) -> Tensor:
    """Compute the Frobenius norm of a batch's error, divided by b: |F - Y|_F / b (AADML, Zeng et al., ICMR 2024).

    The value falls as 1 / sqrt(b): at the paper's batch size of 400, the value is about a twentieth of `row_norm`.

    Reference: Zeng et al., Anchor-aware deep metric learning for audio-visual retrieval, ICMR 2024, https://arxiv.org/abs/2404.13789

    Args:
        outputs: (b, C).
        labels: (b,) int64.

    Returns:
        A scalar; 0 for an empty batch.
    """
    length: Tensor = torch.linalg.vector_norm(_errors(outputs, labels))
    return length / max(len(labels), 1)


def mse(outputs: Tensor, labels: Tensor) -> Tensor:
    """Compute the mean squared error to one-hot labels, over clips and classes.

    Args:
        outputs: (b, C).
        labels: (b,) int64.

    Returns:
        A scalar; 0 for an empty batch.
    """
    return _errors(outputs, labels).square().sum() / max(outputs.numel(), 1)


def ce(outputs: Tensor, labels: Tensor, *, temperature: Temperature = 1.0, label_smoothing: Share = 0.0) -> Tensor:
    """Compute the cross-entropy of softmax(outputs / temperature).

    Reference: Szegedy et al., Rethinking the Inception architecture for computer vision, CVPR 2016, https://doi.org/10.1109/CVPR.2016.308

    Args:
        outputs: (b, C) logits.
        labels: (b,) int64.
        temperature: divisor of the logits (1.0: the value that this project measured as best).
        label_smoothing: share of the target spread evenly over all classes (0.0: also measured as best; Szegedy et al.
            use 0.1).

    Returns:
        A scalar; 0 for an empty batch.

    Raises:
        InputError: the temperature is not above 0.
    """
    logits = tempered(at_least_float32(outputs), temperature)
    cost = F.cross_entropy(logits, labels, label_smoothing=label_smoothing, reduction="sum")
    return cost / max(len(labels), 1)


def _errors(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return outputs minus one-hot labels (b, C), in float32 or better."""
    return at_least_float32(outputs) - F.one_hot(labels, outputs.shape[1])
