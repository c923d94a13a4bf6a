"""CLIP's objective on features: contrastive learning of pairs (Radford et al., ICML 2021).

Reference: Radford et al., Learning transferable visual models from natural language supervision, ICML 2021, https://arxiv.org/abs/2103.00020
"""

from typing import Annotated, Any

from annotated_types import Interval
from torch import Tensor
from torch.nn import functional as F

from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, Layers, Width
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.methods.method import Context
from aadml.methods.networks import heads
from aadml.methods.pairwise.learned_scale import LearnedScale
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Learner
from aadml.objective import Embedded
from aadml.objective.composition import LossSection, Space, compose_objective

SUPCON = LossSection.of("supcon", reduction="mean")


@removing(activation="relu", label_aware=False)
class ContrastiveLearner(LearnedScale, Learner):
    """Projection heads under CLIP's objective of matching clips with their partners (Radford et al., ICML 2021).

        L = mean over directions of  mean over i of
            -log( exp(s cos(x_i, y_i)) / sum over j of exp(s cos(x_i, y_j)) )

    x_i and y_i are the embeddings of clip i in the two modalities of a direction. The scale s is learned, between 1
    and 100. All other clips of the batch are negatives, even clips of the same class. These negatives lower the
    scores of retrieval by class. The table of the AADML paper contains CLIP, but the paper does not describe the
    use of CLIP on features. Heads and schedule are therefore configurable.

    Args:
        context: dimensions and classes.
        dimension: size of the embedding (512: CLIP's base models).
        hidden: hidden layers of the heads; [] for linear heads as in CLIP.
        dropout: share of hidden units dropped.
        temperature: 1 / s at the start (0.07: Radford et al.).

    Raises:
        InputError: features are not vectors, or there is only one modality.
    """

    takes_missing = True
    divides_batches = True

    def __init__(
        self,
        context: Context,
        *,
        dimension: Width = 512,
        hidden: Layers = (1024,),
        dropout: Dropout = 0.1,
        temperature: Annotated[float, Interval(ge=0.01, le=1), Tuning(0.03, 0.07, 0.2)] = 0.07,
    ) -> None:
        super().__init__()
        self.heads = heads(context, "clip", (*hidden, dimension), activation="relu", dropout=dropout)
        space = Space(context.modalities, dimension)
        self.objective = compose_objective(space, loss=SUPCON)
        self.learn_scale(self.objective, temperature)

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Return unit-length embeddings (b, dimension) of features (b, d)."""
        return F.normalize(self.heads[modality](features), dim=1)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        scale, features = self.bounded_scale(), batch.features
        vectors = group.together(len(batch.labels), lambda: {m: self.embed(f, m) for m, f in features.items()})
        embedded = Embedded(vectors, batch.groups, batch.index, "id", present=batch.present)
        return {"loss": self.objective(embedded, batch.generator)["loss"]} | scale


clip = learned(ContrastiveLearner)
