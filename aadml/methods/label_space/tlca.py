"""TLCA: triplets in two stages, first semi-hard, then hard among interpolated points (Zeng and Ikeda, 2023).

Reference: Zeng and Ikeda, Two-stage triplet loss training with curriculum augmentation for audio-visual retrieval,
2023, https://arxiv.org/abs/2310.13451
"""

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from aadml.comparison import Comparison
from aadml.comparison.features import Modality
from aadml.comparison.interpolation import BOTH, interpolated
from aadml.comparison.options import Margin, Share
from aadml.feature_extraction.ground.option_types import Tuning
from aadml.feature_extraction.ground.options import removing
from aadml.methods.method import Context
from aadml.methods.networks import NETWORK, Network, label_space_encoders
from aadml.methods.pair_losses import summed_label_loss, triplet_objective
from aadml.methods.training.learned_method import learned
from aadml.methods.training.learner import Batch, Learner, Stage, in_two
from aadml.objective import Embedded
from aadml.objective.composition import ROW_NORM, LabelLossSection, SelectionSection
from aadml.selections import SELECTIONS

FIRST, SECOND = "semi-hard", "hard"
SHARES = (0.25, 0.5, 0.75)
"""Positions of the interpolated points on a line."""


@removing(metric_weight=1.0, shares=SHARES, lines=BOTH)
class CurriculumLearner(Learner):
    """Triplets in label space, first semi-hard, then hard among interpolated points (Zeng and Ikeda, 2023).

        stage 1:  label loss + triplets whose negative is farther than the positive, by less than `margin`
        stage 2:  label loss + triplets of the farthest positive and the nearest negative, both among the candidates
                  and the interpolated points (see `interpolated`)

    Stage 2 starts from the best weights of stage 1 with a new optimizer. No code was released, and the abstract
    names only the stages and the interpolation. Network, margin and label loss are those of AADML, by the same
    group. In stage 2, the nearest negative of an anchor is mostly an interpolated point near the anchor. Stage 2
    therefore does not run out of hard triplets.

    Args:
        context: dimensions and classes.
        network: see `NetworkOptions`.
        label_loss: a name of LABEL_LOSSES, `weight` and options.
        margin: margin of the triplets, in squared distance (1.2: AADML, section 5.2).
        first_share: share of the epochs in stage 1, 0 to 1.

    Raises:
        InputError: clips without exactly one class, features other than vectors, or only one modality.
    """

    def __init__(
        self,
        context: Context,
        *,
        network: Network = NETWORK,
        label_loss: LabelLossSection = ROW_NORM,
        margin: Annotated[Margin, Tuning(0.8, 1.2, 1.6)] = 1.2,
        first_share: Share = 0.5,
    ) -> None:
        super().__init__()
        self.encoders = label_space_encoders(context, "tlca", network)
        self.label_loss = summed_label_loss(label_loss)
        self.share = first_share
        semi_hard = SelectionSection.of("semi-hard", margin=margin, keep="all")
        first = triplet_objective(context, context.classes, margin=margin, selection=semi_hard)
        second = triplet_objective(context, context.classes, margin=margin)
        second.selection = self._hard
        self.objectives = nn.ModuleDict({FIRST: first, SECOND: second})

    def stages(self, epochs: int) -> Sequence[Stage]:
        """Return the stages "semi-hard" and "hard", without a stage that has no epochs."""
        return in_two(epochs, self.share, (FIRST, SECOND))

    def embed(self, features: Any, modality: Modality) -> Tensor:
        """Map features (b, d) of one modality to label-space vectors (b, C)."""
        return self.encoders[modality](features)

    def _hard(self, comparison: Comparison, generator: torch.Generator) -> Comparison:
        """Select the farthest positive and the nearest negative among candidates and interpolated points."""
        return SELECTIONS["batch-hard"](interpolated(comparison, generator, shares=SHARES), generator)

    def _loss(self, batch: Batch) -> dict[str, Tensor]:
        vectors = {m: self.embed(values, m) for m, values in batch.features.items()}
        label = self.label_loss(vectors, batch.labels)
        embedded = Embedded(vectors, batch.labels, batch.index)
        metric = self.objectives[batch.epoch.stage](embedded, batch.generator)
        return {
            "loss": label + metric["loss"],
            "label_loss": label,
            "metric_loss": metric["loss"],
            "active": metric["active"],
        }


tlca = learned(CurriculumLearner)
