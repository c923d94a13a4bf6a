"""EICS: explicit and implicit dual common subspaces (Zeng et al., ACM TOMM 2023).

Reference: Zeng et al., Learning explicit and implicit dual common subspaces for audio-visual cross-modal retrieval, ACM
TOMM 2023, https://doi.org/10.1145/3564608
"""

from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.features import Modality
from aadml.comparison.options import Layers, Margin, Width
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.losses.label_losses import row_norm
from aadml.methods.method import Context
from aadml.methods.networks import NETWORK, Network, heads, label_space_encoders
from aadml.methods.pair_losses import (
    partner_distance,
    same_class_losses,
    summed_label_loss,
    triplet_objective,
    weighted_loss,
)
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Learner
from aadml.objective import Embedded
from aadml.objective.composition import ROW_NORM, LabelLossSection

WEIGHTS = {"explicit": 1.0, "correlation": 1e-3, "apart": 0.1, "triplet": 1.0}
"""Weights of the terms besides the label loss: those of DSCMR in the explicit subspace, 1 in the implicit subspace."""


@removing(explicit_weight=1.0, correlation_weight=1e-3, apart_weight=0.1, triplet_weight=1.0)
class DualSubspaceLearner(Learner):
    """An explicit common subspace by shared weights, and an implicit subspace by labels (Zeng et al., 2023).

        explicit u:  separate layers per modality, then one layer shared by all modalities
        implicit f:  separate network per modality, into label space
        J = label loss of f + triplets of f in all directions
            + sum over modalities of mean |p_i - Y_i|
            + 1e-3 (T_aa + T_av + T_vv)      T: see `same_class_loss`, on u
            + 0.1 mean |u_i - w_i|
        embedding = [u / |u|, f / |f|]: the cosine of two embeddings is the mean of the cosines of u and of f

    p are the outputs of one linear classifier on u, and Y are the one-hot labels. u_i and w_i are the explicit
    vectors of a clip in two modalities.

    No code was released. The abstract names the two subspaces and their purposes, and states that retrieval joins
    the subspaces. Terms and weights follow DSCMR in the explicit subspace, and AADML in the implicit subspace. With
    C classes, the embedding has explicit + C dimensions.

    Args:
        context: dimensions and classes.
        network: network of the implicit subspace, see `NetworkOptions`.
        label_loss: label loss of the implicit subspace: a name of LABEL_LOSSES, `weight` and options.
        explicit: size of the explicit subspace.
        hidden: layers of each modality below the explicit subspace.
        margin: margin of the triplets, in squared distance.

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """

    def __init__(
        self,
        context: Context,
        *,
        network: Network = NETWORK,
        label_loss: LabelLossSection = ROW_NORM,
        explicit: Width = 256,
        hidden: Layers = (1024,),
        margin: Annotated[Margin, Tuning(0.5, 1.0, 1.5)] = 1.0,
    ) -> None:
        super().__init__()
        classes = context.need_classes("eics")
        self.own = heads(context, "eics", (*hidden, explicit), activation="relu")
        self.shared = nn.Linear(explicit, explicit)
        self.classifier = nn.Linear(explicit, classes)
        self.implicit = label_space_encoders(context, "eics", network)
        self.label_loss = summed_label_loss(label_loss)
        self.weights = WEIGHTS
        self.objective = triplet_objective(context, classes, margin=margin)

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Return the joined vectors (b, explicit + C) of features (b, d); each subspace's part has unit length."""
        parts = (self._explicit(features, modality), self.implicit[modality](features))
        return torch.cat([F.normalize(part, dim=1) for part in parts], 1)

    def _explicit(self, features: Tensor, modality: Modality) -> Tensor:
        common: Tensor = self.shared(F.relu(self.own[modality](features)))
        return common

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        explicit = {m: self._explicit(values, m) for m, values in batch.features.items()}
        implicit = {m: self.implicit[m](values) for m, values in batch.features.items()}
        embedded = Embedded(implicit, batch.labels, batch.index)
        parts = {
            "explicit": torch.stack([row_norm(self.classifier(v), batch.labels) for v in explicit.values()]).sum(),
            "correlation": same_class_losses(explicit, batch.labels),
            "apart": partner_distance(explicit),
            "triplet": self.objective(embedded, batch.generator)["loss"],
        }
        label = self.label_loss(implicit, batch.labels)
        weighted = weighted_loss(parts, self.weights)
        return {"loss": label + weighted.pop("loss"), "label_loss": label} | weighted


eics = learned(DualSubspaceLearner)
