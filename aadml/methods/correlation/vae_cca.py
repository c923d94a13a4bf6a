"""VAE-CCA: variational auto-encoders with correlated, label-aware latents (Zhang et al., ACM TOMM 2023).

Reference: Zhang et al., Variational autoencoder with CCA for audio-visual cross-modal retrieval, ACM TOMM 2023, https://doi.org/10.1145/3575658
"""

from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.features import Modality
from aadml.comparison.options import Fidelity, Weight, Width
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.losses.label_losses import row_norm
from aadml.methods.method import Context
from aadml.methods.networks import heads
from aadml.methods.pair_losses import partner_distance, same_class_losses, weighted_loss
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Learner

LOG_VARIANCE_LIMIT = 10.0
"""Largest absolute value of a log-variance; larger values could overflow in the variance."""

CENTER_FACTOR = 0.25
"""Factor of the squared distance: 1/2 of the squared distance times lambda = 0.5, as in the released center loss."""

WEIGHTS = {"vae": 1e-4, "label": 1.0, "correlation": 1e-3, "apart": 0.1}
"""Weights of the terms besides the center loss (released code)."""


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Compute the Kullback-Leibler divergence of N(mean, variance) from N(0, 1), summed over clips and dimensions.

        KL = -1/2 sum of  1 + log var - mean^2 - var

    Args:
        mean: (b, d).
        log_variance: (b, d).

    Returns:
        A scalar, never negative.
    """
    total: Tensor = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
    return total


def center_loss(vectors: Tensor, labels: Tensor, centers: Tensor) -> Tensor:
    """Compute the squared distance of vectors to their class center, with equal weight per class of a batch.

        J = 1/4 mean over i of |z_i - c_i|^2 / n_i,   c_i the center and n_i the batch count of i's class

    Args:
        vectors: z (b, d).
        labels: (b,) int64.
        centers: (C, d).

    Returns:
        A scalar.
    """
    count = labels.new_zeros(len(centers)).index_add_(0, labels, torch.ones_like(labels))[labels]
    return CENTER_FACTOR * ((vectors - centers[labels]).square().sum(1) / count).mean()


@removing(vae_weight=1e-4, label_weight=1.0, correlation_weight=1e-3, apart_weight=0.1)
class VariationalLearner(Learner):
    """Variational auto-encoders with latents for correlation, classes and pairs (Zhang et al., ACM TOMM 2023).

        x_m -> layer of m, ReLU -> shared layer -> mean, log variance;   z = mean + noise * deviation
        z -> shared decoder layer -> layer of m -> reconstruction of x_m
        J = 1e-4 sum over modalities of [mean squared error of x_m + sum over clips and dimensions of KL]
            + sum over modalities of mean |p_i - Y_i|    p: linear classifier on z,  Y: one-hot labels
            + 1e-3 (T_aa + T_av + T_vv)                                      T: see `same_class_loss`, centered latents
            + 0.1 mean |z_v - z_a|
            + center_weight mean over modalities of 1/4 mean of |z_i - center of its class|^2 / n_i

    n_i is the number of clips of the batch with the class of i. Despite the name, the released code does not solve
    CCA: the correlation is a likelihood of pairs. Each latent is centered over its dimensions. The code redraws the
    class centers at every call, so the center loss only shrinks norms (`fidelity: source`). The toolkit learns the
    centers (`repaired`). KL is summed over the batch as in the released code, and therefore grows with the batch
    size. The embedding is the mean, without noise. ReLU follows only the unshared layers of the encoder, as in the
    released network.

    Args:
        context: dimensions and classes.
        dimension: size of the latent (64: released code).
        hidden: size of each encoder's unshared layer, and of the shared decoder layer (512: same source).
        inner: size of the shared encoder layer before mean and variance (64: same source).
        center_weight: weight of the distance to the class centers (0.01: same source).
        fidelity: "repaired" for learned centers, "source" for centers that are redrawn for every batch.

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """

    def __init__(
        self,
        context: Context,
        *,
        dimension: Width = 64,
        hidden: Width = 512,
        inner: Width = 64,
        center_weight: Annotated[Weight, Tuning(0.001, 0.01, 0.1)] = 0.01,
        fidelity: Fidelity = "repaired",
    ) -> None:
        super().__init__()
        classes = context.need_classes("vae-cca")
        self.own = heads(context, "vae-cca", (hidden,), activation="relu", last=True)
        self.shared = nn.Linear(hidden, inner)
        self.mean = nn.Linear(inner, dimension)
        self.log_variance = nn.Linear(inner, dimension)
        self.classifier = nn.Linear(dimension, classes)
        self.decoder = nn.Linear(dimension, hidden)
        self.outputs = nn.ModuleDict({m: nn.Linear(hidden, size) for m, size in context.dimensions.items()})
        self.centers = None if fidelity == "source" else nn.Parameter(torch.randn(classes, dimension))
        self.weights = WEIGHTS | {"center": center_weight}

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Return the means (b, dimension) of the latents of a batch (b, d), as embeddings."""
        return self._latent(features, modality)[0]

    def _latent(self, features: Tensor, modality: Modality) -> tuple[Tensor, Tensor]:
        inner = self.shared(self.own[modality](features))
        return self.mean(inner), self.log_variance(inner).clamp(-LOG_VARIANCE_LIMIT, LOG_VARIANCE_LIMIT)

    def _centers(self, latent: Tensor) -> Tensor:
        """Return the class centers (C, d): learned, or drawn anew with "source"."""
        if self.centers is not None:
            return self.centers
        return torch.randn(self.classifier.out_features, latent.shape[1], dtype=latent.dtype, device=latent.device)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        latents: dict[Modality, Tensor] = {}
        variational, label, center = [], [], []
        for modality, features in batch.features.items():
            mean, log_variance = self._latent(features, modality)
            latent = mean + torch.randn_like(mean) * (log_variance / 2).exp()
            rebuilt = self.outputs[modality](self.decoder(latent))
            variational.append(F.mse_loss(rebuilt, features) + divergence(mean, log_variance))
            label.append(row_norm(self.classifier(latent), batch.labels))
            center.append(center_loss(latent, batch.labels, self._centers(latent)))
            latents[modality] = latent
        centered = {m: latent - latent.mean(1, keepdim=True) for m, latent in latents.items()}
        parts = {
            "vae": torch.stack(variational).sum(),
            "label": torch.stack(label).sum(),
            "correlation": same_class_losses(centered, batch.labels),
            "apart": partner_distance(latents),
            "center": torch.stack(center).mean(),
        }
        return weighted_loss(parts, self.weights)


vae_cca = learned(VariationalLearner)
