"""Classification quality of one modality whose vectors have one dimension per class."""

import numpy as np
import torch
from torch import Tensor


def label_space_quality(vectors: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return accuracy and log-loss of label-space vectors as classifiers.

    Args:
        vectors: (n, C): probabilities (rows of non-negative values that sum to 1), or any scores, which a softmax
            normalizes.
        labels: (n,) int64 in 0..C-1.

    Returns:
        Accuracy (of k classes that share the highest value, each counts 1/k), and log-loss in nats (probabilities
        below 1e-12 count as 1e-12).
    """
    wide = vectors.double()
    scores = wide.gather(1, labels[:, None])
    best = (wide == wide.amax(1, keepdim=True)).double()
    accuracy = (best.gather(1, labels[:, None])[:, 0] / best.sum(1)).mean()
    probable = bool((wide >= 0).all()) and bool(torch.allclose(wide.sum(1), torch.ones(1).double(), atol=1e-4))
    log = scores.log() if probable else scores - torch.logsumexp(wide, 1, keepdim=True)
    return float(accuracy), float(-log.clamp_min(np.log(1e-12)).mean())
