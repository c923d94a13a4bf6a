"""CLIP's objective on features: contrastive learning of pairs (Radford et al., ICML 2021)."""

import math
from typing import Annotated, Any

import torch
from annotated_types import Interval
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison import Comparison, Terms
from aadml.comparison.features import Modality
from aadml.comparison.options import Dropout, Layers, Width
from aadml.comparison.processes import group
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.losses.supcon import supcon
from aadml.methods.method import Context
from aadml.methods.networks import all_directions, heads
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Learner
from aadml.objective import Embedded, Objective, ObjectiveOptions
from aadml.selections import SELECTIONS

LARGEST_SCALE = math.log(100)


@removing(activation="relu", label_aware=False)
class ContrastiveLearner(Learner):
    """Projection heads under CLIP's objective, which matches clips with their partners (Radford et al., ICML 2021).

        L = mean over directions of  mean over i of  -log( exp(s cos(x_i, y_i)) / sum over j of exp(s cos(x_i, y_j)) )

    The scale s is learned, between 1 and 100. All other clips of the batch are negatives, even clips of the same class,
    which lowers scores of retrieval by class. The AADML paper does not state how CLIP was applied to features for its
    table: heads and schedule are configurable.

    Args:
        context: dimensions and classes.
        dimension: size of the embedding (512: CLIP's base models).
        hidden: hidden layers of the heads; [] for linear heads as in CLIP.
        dropout: share of hidden units dropped.
        temperature: 1 / s at the start (0.07: Radford et al.).
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
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))
        directions = all_directions(context)
        self.objective = Objective(
            self._terms,
            SELECTIONS["all"],
            None,
            directions=directions,
            reduced=ObjectiveOptions(reduction="mean"),
            divided=True,
        )

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Project a batch onto the unit sphere (b, d) -> (b, dimension)."""
        return F.normalize(self.heads[modality](features), dim=1)

    def _terms(self, comparison: Comparison) -> Terms:
        """Compute the cross-entropy of scaled cosines, with the positives as targets among all candidates."""
        loss: Any = supcon
        terms: Terms = loss(comparison, temperature=torch.exp(-self.log_scale))
        return terms

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        with torch.no_grad():  # no clamp in the graph, whose gradient would be zero beyond the bound
            self.log_scale.clamp_(0, LARGEST_SCALE)
        features = batch.features
        vectors = group.together(len(batch.labels), lambda: {m: self.embed(f, m) for m, f in features.items()})
        embedded = Embedded(vectors, batch.index, batch.index, "id", present=batch.present)
        return {"loss": self.objective(embedded, batch.generator)["loss"], "scale": group.portion(self.log_scale.exp())}


clip = learned(ContrastiveLearner)
