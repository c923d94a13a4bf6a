"""CLIP's objective on features: contrastive learning of pairs (Radford et al., ICML 2021)."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aadml.comparison import Comparison, Terms
from aadml.comparison.types import Modality
from aadml.losses.kernels.likelihood import mean_over_positives
from aadml.methods.heads import all_directions, heads
from aadml.methods.learned import LearnedMethod
from aadml.methods.learner import Batch, Learner, Player
from aadml.methods.method import Context, Method
from aadml.methods.settings import Training
from aadml.objective import Embedded, Objective
from aadml.selections import SELECTIONS
from feature_extraction.ground.errors import InputError

LARGEST_SCALE = math.log(100)


class ContrastiveLearner(Learner):
    """See `clip`.

    Args:
        context: dimensions and classes.
        hidden: hidden layers of the projection heads; none for linear ones.
        dimension: size of the embedding.
        activation: after hidden layers.
        dropout: share of hidden units dropped.
        temperature: that the learned one starts from.
        label_aware: whether all clips of a class are positives.
    """

    def __init__(
        self,
        context: Context,
        *,
        hidden: tuple[int, ...],
        dimension: int,
        activation: str,
        dropout: float,
        temperature: float,
        label_aware: bool,
    ) -> None:
        super().__init__()
        if not 0.01 <= temperature <= 1:
            raise InputError(f"method.temperature: {temperature:g} given; 0.01 to 1 is possible")
        self.heads = heads(context, "clip", (*hidden, dimension), activation=activation, dropout=dropout)
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))
        self.label_aware = label_aware
        directions = all_directions(context)
        self.objective = Objective(self._terms, SELECTIONS["all"], None, directions=directions, reduction="mean")

    def players(self) -> Mapping[str, Player]:
        """Train heads and scale for one loss."""
        return {"all": Player(list(self.parameters()), self._loss)}

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Project a batch onto the unit sphere (b, d) -> (b, dimension)."""
        return F.normalize(self.heads[modality](features), dim=1)

    def _terms(self, comparison: Comparison) -> Terms:
        """Cross-entropy of scaled cosines: targets are the positives, all of the comparison compete."""
        everyone = comparison.positives | comparison.negatives
        return mean_over_positives(self.log_scale.exp() * comparison.cosine, comparison.positives, everyone)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        with torch.no_grad():  # the bound is held by resetting, as a clamp in the graph would have no way back
            self.log_scale.clamp_(0, LARGEST_SCALE)
        vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        groups = batch.labels if self.label_aware else batch.index
        relation = "label" if self.label_aware else "id"
        embedded = Embedded(vectors, groups, batch.index, relation)  # type: ignore[arg-type]
        return {"loss": self.objective(embedded, batch.generator)["loss"], "scale": self.log_scale.exp()}


def clip(
    context: Context,
    settings: Training,
    *,
    dimension: int = 512,
    hidden: tuple[int, ...] = (1024,),
    activation: str = "relu",
    dropout: float = 0.1,
    temperature: float = 0.07,
    label_aware: bool = False,
) -> Method:
    """Match clips with their own partners by CLIP's objective, on projection heads (Radford et al., ICML 2021).

        L = mean over directions of  mean over i of  -log( exp(s cos(x_i, y_i)) / sum over j of exp(s cos(x_i, y_j)) )

    The scale s is learned, and held between 1 and 100. All other clips of the batch are negatives, those of the same
    class too, which is why retrieval by class suffers. With `label_aware` all clips of a class are positives with equal
    targets (the supervised contrastive loss of Khosla et al., 2020, across modalities). How CLIP was put on features
    for the AADML paper's table is not published: heads and schedule are configuration.

    Args:
        context: dimensions and classes.
        settings: the `training` section.
        dimension: size of the embedding (512: CLIP's base models).
        hidden: hidden layers of the heads; [] for linear heads as in CLIP.
        activation: after hidden layers.
        dropout: share of hidden units dropped.
        temperature: 1 / s at the start (0.07: Radford et al.).
        label_aware: whether labels say who matches, instead of pairs alone.
    """
    learner = ContrastiveLearner(
        context,
        hidden=hidden,
        dimension=dimension,
        activation=activation,
        dropout=dropout,
        temperature=temperature,
        label_aware=label_aware,
    )
    return LearnedMethod(learner, context, settings)
