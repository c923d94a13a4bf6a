"""DCIL: dual-path embeddings with an instance loss (Zheng et al., ACM TOMM 2020).

Reference: Zheng et al., Dual-path convolutional image-text embeddings with instance loss, ACM TOMM 2020, https://doi.org/10.1145/3383184
"""

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison.clips import Clips
from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, Layers, Margin, Share, Width
from aadml.feature_extraction.ground.errors import InputError
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.layers.dropout import DropoutLayer
from aadml.methods.method import Context
from aadml.methods.networks import heads
from aadml.methods.pair_losses import triplet_objective
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Epoch, Learner, Stage, in_two
from aadml.objective import Embedded
from aadml.objective.composition import ALL_PAIRS, SelectionSection

FIRST, SECOND = "instance", "ranking"


@removing(activation="relu", instance="clip", ranking_weight=1.0)
class InstanceLearner(Learner):
    """Embeddings that are trained first to classify clips, and then also to rank partners (Zheng et al., 2020).

        stage 1:  L = sum over modalities of CE(W x_i, i)            all modalities share W
        stage 2:  L + sum over directions of  mean of max(0, margin - cos(x_i, y_i) + cos(x_i, y_j))

    x_i and y_i are the embeddings of clip i in two modalities. Every training clip is a class, so that partners
    share a row of W. Rows with equal ids, such as captions, are one clip. No code in PyTorch was released, and the
    AADML paper does not describe the use of the method on features. Sizes, dropout and schedule are therefore
    configurable. The classifier has a row for each training clip and is not used for embedding.

    Args:
        context: dimensions, classes, number of training clips.
        dimension: size of the embedding (512 to 2048 are usual).
        hidden: hidden layers of the heads; [] for linear heads.
        dropout: share of units dropped, in hidden layers and between the embedding and the classifier.
        instance_share: share of the epochs in stage 1.
        margin: margin of the ranking loss (1: Zheng et al.).
        selection: the `selection` section: "all" negatives of a batch, "hardest", "random", ... (see SELECTIONS).

    Raises:
        InputError: an unknown number of training clips, features other than vectors, or only one modality.
    """

    def __init__(
        self,
        context: Context,
        *,
        dimension: Width = 512,
        hidden: Layers = (1024,),
        dropout: Dropout = 0.5,
        instance_share: Share = 0.5,
        margin: Annotated[Margin, Tuning(0.5, 1.0, 1.5)] = 1.0,
        selection: SelectionSection = ALL_PAIRS,
    ) -> None:
        super().__init__()
        if not context.clips:
            raise InputError(
                "dcil has one class per training clip, but the number of training clips is unknown; set clips in the "
                "Context"
            )
        self.share = instance_share
        self.heads = heads(context, "dcil", (*hidden, dimension), activation="relu", dropout=dropout)
        self.dropout = DropoutLayer(dropout)
        self.classifier = nn.Linear(dimension, context.clips)
        self.objective = triplet_objective(
            context, dimension, selection=selection, score="cosine", margin=margin, reduction="mean", combine="sum"
        )

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Return the stages "instance" (only the instance loss) and "ranking", without a stage that has no epochs."""
        return in_two(epochs, self.share, (FIRST, SECOND))

    def before_epoch(self, train: Clips, epoch: Epoch) -> None:
        """Raise InputError if the training clips outnumber the rows of the classifier."""
        if len(train) > self.classifier.out_features:
            raise InputError(
                f"dcil: there are {len(train)} training clips, but the method was built for "
                f"{self.classifier.out_features} clips; set clips to {len(train)} in the Context"
            )

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Embed a batch (b, d) -> (b, dimension)."""
        return self.heads[modality](features)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        losses = [F.cross_entropy(self.classifier(self.dropout(values)), batch.groups) for values in vectors.values()]
        instance = torch.stack(losses).sum()
        if batch.epoch.stage == FIRST:
            return {"loss": instance, "instance_loss": instance}
        embedded = Embedded(vectors, batch.groups, batch.index, "id")
        ranking = self.objective(embedded, batch.generator)["loss"]
        return {"loss": instance + ranking, "instance_loss": instance, "ranking_loss": ranking}


dcil = learned(InstanceLearner)
