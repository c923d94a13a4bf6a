"""A deep CCA of the training clips as teacher: neighbors are searched among its vectors (HSC-MAE, 2026).

Reference: Zeng et al., Hierarchical semantic correlation-aware masked autoencoder for unsupervised audio-visual
representation learning, ICME 2026, https://arxiv.org/abs/2604.04229
"""

import torch
from torch import Tensor

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.errors import InputError
from aadml.methods import METHODS
from aadml.methods.method import Context
from aadml.methods.training.settings import Training

TRAINING = Training(epochs=100, batch=200, optimizer="rmsprop", learning_rate=0.001, drop_last=True)
"""Schedule of the config `dcca`; the teacher has no validation clips, so its last epoch is chosen."""


def smaller_batch(clips: int) -> list[str]:
    """Return a list with a warning if there are fewer clips than in a batch of the teacher, else an empty list."""
    if clips >= TRAINING.batch:
        return []
    message = f"the DCCA teacher trains on one batch of all {clips} clips, as there are fewer than {TRAINING.batch}"
    return [f"neighbors.space: {message}"]


def dcca_space(train: Clips, *, seed: int) -> dict[Modality, Tensor]:
    """Train a DCCA on only the training clips, and return the embeddings of these clips.

    Args:
        train: n clips of two modalities, scaled as for the student; labels are not used.
        seed: seed of the teacher's weights and batches.

    Returns:
        The embeddings (n, 10) of each modality, on the device of the clips.

    Raises:
        InputError: the clips do not have exactly two modalities of vectors, or there are several workers.
    """
    if group.count() > 1:
        raise InputError(
            "neighbors.space is dcca, but a training run of several processes cannot train the DCCA teacher; set "
            "neighbors.space to embedding"
        )
    device = train.labels.device
    context = Context({m: train.dimension(m) for m in train.modalities}, 0, seed, device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        teacher = METHODS["dcca"](context, TRAINING)
        teacher.fit(train, train.select(torch.arange(0)))
    return {m: teacher.embed_all(train[m], m).to(device) for m in train.modalities}
