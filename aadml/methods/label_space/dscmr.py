"""DSCMR: deep supervised cross-modal retrieval (Zhen et al., CVPR 2019).

Reference: Zhen et al., Deep supervised cross-modal retrieval, CVPR 2019, https://openaccess.thecvf.com/content_CVPR_2019/html/Zhen_Deep_Supervised_Cross-Modal_Retrieval_CVPR_2019_paper.html
"""

from typing import Annotated, Any

import torch
from torch import Tensor, nn

from aadml.comparison.features import Modality
from aadml.comparison.options import SomeLayers, Weight, Width
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.losses.label_losses import row_norm
from aadml.methods.method import Context
from aadml.methods.networks import heads
from aadml.methods.pair_losses import partner_distance, same_class_losses
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Learner


@removing(activation="relu")
class CommonSpaceLearner(Learner):
    """Deep supervised cross-modal retrieval: a common space for classes and pairs (Zhen et al., CVPR 2019).

        J = sum over modalities of mean |p_i - Y_i|
            + alpha (T_aa + T_av + T_vv)      T: see `same_class_loss`
            + beta mean |u_i - w_i|

    p are the outputs of a linear classifier on the common space, and Y the one-hot labels. u and w are the common
    features of a clip in two modalities. All modalities share the classifier and the last layer into the common space.
    The embedding is the common feature. log(1 + exp(x)) can overflow in the released code, but not in the toolkit.

    Args:
        context: dimensions and classes.
        hidden: layers of each modality before the shared layer (2048: released code).
        dimension: size of the common space (1024: same source).
        alpha: weight of the likelihood of pairs (1e-3: same source).
        beta: weight of the distance between partners (0.1: same source).

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """

    def __init__(
        self,
        context: Context,
        *,
        hidden: SomeLayers = (2048,),
        dimension: Width = 1024,
        alpha: Weight = 1e-3,
        beta: Annotated[Weight, Tuning(0.01, 0.1, 1.0)] = 0.1,
    ) -> None:
        super().__init__()
        classes = context.need_classes("dscmr")
        self.own = heads(context, "dscmr", hidden, activation="relu", last=True)
        self.shared = nn.Linear(hidden[-1], dimension)
        self.classifier = nn.Linear(dimension, classes)
        self.alpha, self.beta = alpha, beta

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Map features (b, d) of one modality to vectors (b, dimension) in the common space."""
        common: Tensor = self.shared(self.own[modality](features))
        return common

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        common = {m: self.embed(values, m) for m, values in batch.features.items()}
        label = torch.stack([row_norm(self.classifier(values), batch.labels) for values in common.values()]).sum()
        likelihood = same_class_losses(common, batch.labels)
        apart = partner_distance(common)
        loss = label + self.alpha * likelihood + self.beta * apart
        return {"loss": loss, "label_loss": label, "likelihood": likelihood, "apart": apart}


dscmr = learned(CommonSpaceLearner)
